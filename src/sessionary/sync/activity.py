"""When a session was last worked on: carried with it, so that a pull leaves it as old as it is elsewhere.

Lists are sorted by the times of files, and clean-ups go by them. What a pull writes would be of now. So a head says
when the session was active last, and the times of what the pull has written are set to that, last of all. A time never
counts as later than the clock of the device that reads it.

Times are set only on files, and on the folder of the session itself: the folders of a mailbox tell their readers by
their times that something has come.
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
    """The newest mtime of these files, but not later than now; None if there are no files."""
    newest = max((part.stamp[2] for part in parts), default=None)
    if newest is None:
        return None
    return _EPOCH + _TICK * min(newest // 1000, (now.astimezone(UTC) - _EPOCH) // _TICK)


def text(moment: datetime | None) -> str:
    """The field `active` of a head."""
    return "" if moment is None else moment.isoformat(timespec="microseconds")


def told(head: Head, now: datetime) -> datetime | None:
    """When the session of a head was active last, but not later than now; None if it does not say.

    A head of an earlier version says only when it was pushed.
    """
    try:
        moment = datetime.fromisoformat(head.active or head.at)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return min(moment, now.astimezone(UTC))


def restore(fs: Fs, layout: SyncLayout, rules: Rules, ref: SessionRef, active: datetime) -> None:
    """Set the times of a session to what they were elsewhere: of its files that are newer, and of its own folder.

    An event log that is not carried keeps its time, and the folder is not older than it. Where times may not be set,
    the session only stands too far up in lists.

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
    folder = stat_or_none(fs, ref.folder)
    if folder is not None and folder.st_mtime_ns != kept:
        _set(fs, ref.folder, kept)


def _set(fs: Fs, path: str, mtime_ns: int) -> None:
    with suppress(OSError):
        fs.utime(path, mtime_ns)
