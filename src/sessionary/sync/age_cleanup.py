"""Clean-ups by age, which are of one device: not sent as deletions, and not undone by the next pull.

The layouts note what they clean up, see `layouts.cleaned_up`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.layouts import cleaned_up
from sessionary.model import SessionRef
from sessionary.sync import activity
from sessionary.sync.heads import Head
from sessionary.sync.state import SyncedState

CLEANED_UP = "cleaned up here by age; it stays on the remote and on other devices"


def last_activity(fs: Fs, ref: SessionRef) -> datetime | None:
    """When a session was active last that a clean-up has taken from this device; None if none has.

    Raises:
        StorageFailed: the system does not tell.
    """
    return cleaned_up.last_activity(fs, os.path.dirname(ref.folder), ref.session_id)


def forget(fs: Fs, ref: SessionRef) -> None:
    """The session is here again: if it is gone the next time, somebody has deleted it.

    Raises:
        StorageFailed: the note could not be removed.
    """
    cleaned_up.forget(fs, os.path.dirname(ref.folder), ref.session_id)


def forget_those_here(fs: Fs, here: Iterable[SessionRef]) -> None:
    """As `forget` of all of these sessions, for one look at each folder of sessions.

    Raises:
        StorageFailed: a note could not be removed.
    """
    by_root: dict[str, set[str]] = {}
    for ref in here:
        by_root.setdefault(os.path.dirname(ref.folder), set()).add(ref.session_id)
    for root, sessions in by_root.items():
        for session in sessions.intersection(cleaned_up.noted(fs, root)):
            cleaned_up.forget(fs, root, session)


def stays_away(fs: Fs, ref: SessionRef, head: Head, agreed: SyncedState | None, now: datetime) -> bool:
    """True for a session that was cleaned up here, unless another device has gone on with it since.

    Where it is known what the remote had before, no clock has to be right for this.

    Raises:
        StorageFailed: the system does not tell.
    """
    if stat_or_none(fs, ref.folder) is not None:
        return False
    cleaned = last_activity(fs, ref)
    if cleaned is None:
        return False
    if agreed is not None:
        return _contents(agreed.head) == _contents(head)
    active = activity.told(head, now)
    return active is None or active <= cleaned


def _contents(head: Head) -> dict[str, str]:
    return {part.name: part.chain for part in head.parts}
