"""Time of the last activity of a session, sent with it, so that a pull keeps its age.

Lists sort by file times, and clean-ups use them. Files written by a pull would have the current time. So a head
states when the session was last active, and the times of pulled files are set to that, as the last step. A time later
than the clock of the reading device is reduced to that clock.

Only times of files and of the session's own folder are set: readers of a mailbox detect new messages by the times of
its folders.

Clean-ups by age are local to a device: not sent as deletions, and not undone by the next pull. The layouts record
them, see `layouts.cleaned_up`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sessionary.codec.times import parse_iso
from sessionary.disk.fs import Fs, stat_or_none
from sessionary.layouts import cleaned_up
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.heads import Head
from sessionary.sync.links import Links
from sessionary.sync.local_files import LocalPart
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState

CLEANED_UP = "cleaned up here by age; it stays on the remote and on other devices"
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
    moment = parse_iso(head.active or head.at)
    return moment and min(moment, now.astimezone(UTC))


def restore(
    fs: Fs, layout: SyncLayout, rules: Rules, links: Links, ref: SessionRef, active: datetime
) -> None:
    """Set file times of a session to its time of activity elsewhere: of newer files, and of its own folder.

    An event log that is not synchronised keeps its time, and the folder is not older than that log. If times cannot
    be set, the session is only sorted too high in lists.

    Durability: none. After a power cut the times may be those of the pull.
    """
    newest = kept = max(0, (active - _EPOCH) // _TICK * 1000)
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


def forget_cleanups(fs: Fs, here: Iterable[SessionRef]) -> None:
    """Forget clean-ups of sessions that exist again: if one vanishes later, it was deleted.

    Reads each folder of sessions once.
    """
    by_root: dict[str, set[str]] = {}
    for ref in here:
        by_root.setdefault(os.path.dirname(ref.locator), set()).add(ref.session_id)
    for root, sessions in by_root.items():
        for session in sessions.intersection(cleaned_up.noted(fs, root)):
            cleaned_up.forget(fs, root, session)


def stays_away(fs: Fs, ref: SessionRef, head: Head, agreed: SyncedState | None, now: datetime) -> bool:
    """True for a session that a local clean-up removed, unless another device has continued it since.

    If the earlier remote state is known, the result does not depend on any clock.
    """
    if stat_or_none(fs, ref.locator) is not None:
        return False
    cleaned = cleaned_up.last_activity(fs, os.path.dirname(ref.locator), ref.session_id)
    if cleaned is None:
        return False
    if agreed is not None:
        return agreed.head.chains() == head.chains()
    active = last_active(head, now)
    return active is None or active <= cleaned


def _set(fs: Fs, path: str, mtime_ns: int) -> None:
    with suppress(OSError):
        fs.utime(path, mtime_ns)
