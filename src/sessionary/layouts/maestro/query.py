"""The breadcrumbs of one session, from all of its folders, in order; and their totals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.errors import Invalid
from sessionary.layouts.maestro.breadcrumbs import Distinct, crumb_files, read_crumb
from sessionary.layouts.maestro.records import Breadcrumb, sort_key
from sessionary.layouts.maestro.times import parse_time
from sessionary.model import Problem

DateRange = tuple[datetime | str | None, datetime | str | None]


@dataclass(slots=True)
class Breadcrumbs:
    """The breadcrumbs of a session.

    Attributes:
        breadcrumbs: the readable ones, ordered by time, depth and id.
        problems: damage, and oddities.
    """

    breadcrumbs: list[Breadcrumb] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def gather(
    fs: Fs,
    folders: Iterable[str],
    *,
    depth: int | None = None,
    date_range: DateRange | None = None,
    zone: tzinfo = UTC,
) -> Breadcrumbs:
    """Read the breadcrumbs below these session folders; a damaged one, or an unreadable folder, hides no other.

    Args:
        fs: the file system.
        folders: the folders, see `paths.mailboxes`.
        depth: only those of this depth, as stated in the breadcrumb.
        date_range: only those from the first instant to the second, to the second; either may be None.
        zone: the zone of their times; see `times.session_zone`.

    Raises:
        Invalid: an end of the range is not a time.
    """
    first, last = (None, None) if date_range is None else (_instant(end) for end in date_range)
    found: list[Breadcrumb] = []
    problems: list[Problem] = []
    distinct = Distinct()
    for folder in folders:
        for file in crumb_files(fs, folder, problems):
            crumb = read_crumb(fs, file)
            problems += crumb.problems
            if crumb.breadcrumb is not None and distinct.is_new(crumb.breadcrumb):
                found.append(crumb.breadcrumb)
    if depth is not None:
        found = [crumb for crumb in found if crumb.depth_level == depth]
    if first is not None or last is not None:
        found = [crumb for crumb in found if _is_within(crumb, zone, first, last)]
    found.sort(key=sort_key)
    return Breadcrumbs(found, problems)


def summarise(crumbs: Sequence[Breadcrumb]) -> dict[str, Any]:
    """Return the totals of breadcrumbs.

    Returns:
        ``total_breadcrumbs``, ``total_tokens`` (``input``, ``output``), ``total_cost`` in US dollars of those
        whose cost is known, ``breadcrumbs_without_cost`` (the number left out of it), and ``duration`` in
        whole seconds from the first to the last.
    """
    times = [moment for crumb in crumbs if (moment := parse_time(crumb.timestamp)) is not None]
    seconds = [moment.replace(microsecond=0) for moment in times]
    return {
        "total_breadcrumbs": len(crumbs),
        "total_tokens": {name: sum(tokens(crumb, name) for crumb in crumbs) for name in ("input", "output")},
        "total_cost": round(sum(crumb.cost for crumb in crumbs if crumb.cost is not None), 6)
        if crumbs
        else 0.0,
        "breadcrumbs_without_cost": sum(crumb.cost is None for crumb in crumbs),
        "duration": (max(seconds) - min(seconds)).total_seconds() if seconds else 0,
    }


def tokens(crumb: Breadcrumb, name: str) -> int:
    """The number of tokens, ``input`` or ``output``; 0 if the breadcrumb does not state it."""
    count: Any = crumb.token_count.get(name, 0)
    return count if type(count) is int else 0


def _is_within(crumb: Breadcrumb, zone: tzinfo, first: datetime | None, last: datetime | None) -> bool:
    moment = parse_time(crumb.timestamp, zone)
    if moment is None:
        return False
    moment = moment.replace(microsecond=0)  # the original program compares whole seconds
    return (first is None or moment >= first) and (last is None or moment <= last)


def _instant(end: datetime | str | None) -> datetime | None:
    if end is None:
        return None
    moment = parse_time(end)  # the original program compares with local time
    if moment is None:
        raise Invalid(f"{end!r} is not a time", hint="use ISO 8601, or a datetime")
    return moment
