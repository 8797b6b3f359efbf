"""Time of the last activity of a session, sent with it, so that a pull keeps its age.

Lists sort by file times, and clean-ups use them. Files written by a pull would have the current time. So a head
states when the session was last active, and the times of pulled files are set to that, as the last step. A time later
than the clock of the reading device is reduced to that clock.

Only times of files and of the session's own folder are set: readers of a mailbox detect new messages by the times of
its folders.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.heads import Head
from sessionary.sync.links import Links
from sessionary.sync.local_files import LocalPart
from sessionary.sync.rules import Rules

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def latest(parts: Iterable[LocalPart], now: datetime) -> datetime | None:
    """Return the newest mtime of these files, at most `now`; None without files."""
    newest = max((part.stamp[2] for part in parts), default=None)
    if newest is None:
        return None
    return _EPOCH + _TICK * min(newest // 1000, (now.astimezone(UTC) - _EPOCH) // _TICK)


def text(moment: datetime | None) -> str:
    """Format the field `active` of a head."""
    return "" if moment is None else moment.isoformat(timespec="microseconds")


def last_active(head: Head, now: datetime) -> datetime | None:
    """Return when the session of a head was last active, at most `now`; None if unknown.

    Heads of earlier versions state only the time of the push.
    """
    try:
        moment = datetime.fromisoformat(head.active or head.at)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return min(moment, now.astimezone(UTC))


def restore(fs: Fs, layout: SyncLayout, rules: Rules, ref: SessionRef, active: datetime) -> None:
    """Set file times of a session to its time of activity elsewhere: of newer files, and of its own folder.

    An event log that is not synchronised keeps its time, and the folder is not older than that log. If times cannot
    be set, the session is only sorted too high in lists.

    Durability: none. After a power cut the times may be those of the pull.

    Raises:
        StorageFailed: the folder cannot be read.
    """
    newest = kept = max(0, (active - _EPOCH) // _TICK * 1000)
    links = Links(fs, layout)
    for part in layout.parts(ref):
        if layout.rule(part.name).policy is Policy.IMMUTABLE or links.of(ref, part.path) is not None:
            continue
        found = stat_or_none(fs, part.path)
        if found is None:
            continue
        if part.kind is PartKind.LOG and not rules.carries(part.kind):
            kept = max(kept, found.st_mtime_ns)
        elif found.st_mtime_ns > newest:
            _set(fs, part.path, newest)
    folder = stat_or_none(fs, ref.locator)
    if folder is not None and folder.st_mtime_ns != kept:
        _set(fs, ref.locator, kept)


def _set(fs: Fs, path: str, mtime_ns: int) -> None:
    with suppress(OSError):
        fs.utime(path, mtime_ns)
