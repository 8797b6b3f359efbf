"""Clean-ups by age are local to a device: not sent as deletions, and not undone by the next pull.

The layouts record them, see `layouts.cleaned_up`.
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
    """Return when a session that a local clean-up removed was last active; None if there was none.

    Raises:
        StorageFailed: the record cannot be read.
    """
    return cleaned_up.last_activity(fs, os.path.dirname(ref.locator), ref.session_id)


def forget(fs: Fs, ref: SessionRef) -> None:
    """Forget the clean-up of a session that exists again: if it vanishes later, it was deleted.

    Raises:
        StorageFailed: the record cannot be removed.
    """
    cleaned_up.forget(fs, os.path.dirname(ref.locator), ref.session_id)


def forget_those_here(fs: Fs, here: Iterable[SessionRef]) -> None:
    """As `forget` for all of these sessions, reading each folder of sessions once.

    Raises:
        StorageFailed: a record cannot be removed.
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

    Raises:
        StorageFailed: the record cannot be read.
    """
    if stat_or_none(fs, ref.locator) is not None:
        return False
    cleaned = last_activity(fs, ref)
    if cleaned is None:
        return False
    if agreed is not None:
        return _contents(agreed.head) == _contents(head)
    active = activity.last_active(head, now)
    return active is None or active <= cleaned


def _contents(head: Head) -> dict[str, str]:
    return {part.name: part.chain for part in head.parts}
