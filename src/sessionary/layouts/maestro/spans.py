"""Start and end of a work session, and the times of its breadcrumbs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sessionary.disk.fs import Fs
from sessionary.layouts.maestro.breadcrumbs import crumb_files
from sessionary.layouts.maestro.paths import mailboxes
from sessionary.layouts.maestro.session_file import session_in, zone_in
from sessionary.layouts.maestro.times import is_instant, parse_time


@dataclass(frozen=True, slots=True)
class WorkSpan:
    """The time of one work session.

    Attributes:
        kind: its type, such as ``work_task``; None if its document cannot be read.
        status: ``running``, ``paused``, ``completed``, ``interrupted``, ``failed``, or another word; None as `kind`.
        begun: when it began (UTC); None if that is unknown.
        ended: when it was closed; None if it is open, or if that is unknown.
        crumbs: the times of its breadcrumbs, by the names of their files, in order.
    """

    kind: str | None
    status: str | None
    begun: datetime | None
    ended: datetime | None
    crumbs: list[datetime]


def span_of(fs: Fs, root: str, session_id: str, folder: str) -> WorkSpan:
    """The time of the work session in a folder. Reads its document, and the names of its breadcrumbs."""
    session = session_in(fs, folder)
    zone = zone_in(fs, folder)
    files = (one for box in mailboxes(fs, root, session_id, folder) for one in crumb_files(fs, box))
    names = (one.name.removesuffix(".json") for one in files)
    crumbs = sorted(
        time for name in names if is_instant(name) and (time := parse_time(name, zone)) is not None
    )
    if session is None:
        return WorkSpan(None, None, None, None, crumbs)
    ended = session.closed_at or (session.modified if session.is_closed else None)
    begun = parse_time(session.created)
    return WorkSpan(session.session_type, session.status, begun, parse_time(ended), crumbs)
