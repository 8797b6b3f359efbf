"""The breadcrumbs of one session, from every folder in which some may lie, in order; and what they add up to."""

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
    """What a look at the breadcrumbs of a session found.

    Attributes:
        breadcrumbs: those that can be read, ordered by time, depth and id.
        problems: what could not be read, and what is odd.
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
    """Read the breadcrumbs below these session folders; one that is bad, or a closed folder, hides none of the others.

    Args:
        fs: the file system.
        folders: the folders, see `paths.mailboxes`.
        depth: only those of this depth, by what they say themselves.
        date_range: only those from the first instant to the second, to the second; either may be None.
        zone: that of their times; see `times.session_zone`.

    Raises:
        Invalid: an end of the range is no time.
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
    """What breadcrumbs add up to.

    Returns:
        ``total_breadcrumbs``, ``total_tokens`` (``input``, ``output``), ``total_cost`` in US dollars of those whose
        cost is known, ``breadcrumbs_without_cost`` (how many that leaves out), and ``duration`` in whole seconds from
        the first to the last.
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
    """How many tokens went ``input`` or ``output``; 0 where the breadcrumb does not say."""
    count: Any = crumb.token_count.get(name, 0)
    return count if type(count) is int else 0


def _is_within(crumb: Breadcrumb, zone: tzinfo, first: datetime | None, last: datetime | None) -> bool:
    moment = parse_time(crumb.timestamp, zone)
    if moment is None:
        return False
    moment = moment.replace(microsecond=0)  # the original compares whole seconds
    return (first is None or moment >= first) and (last is None or moment <= last)


def _instant(end: datetime | str | None) -> datetime | None:
    if end is None:
        return None
    moment = parse_time(end)  # the original compares with the clock on the wall
    if moment is None:
        raise Invalid(f"{end!r} is no time", hint="use ISO 8601, or a datetime")
    return moment
