"""Detection of sessions that were trashed here, so that a push can report it to other devices.

A session counts as trashed if its folder is missing and the parent folder exists. Otherwise its
disk is missing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping

from sessionary.disk.fs import is_there, stat_or_none
from sessionary.layouts import cleaned_up
from sessionary.layouts.sync import Policy
from sessionary.sync.context import Step
from sessionary.sync.remote import HeadRecord
from sessionary.sync.shown import is_before
from sessionary.sync.state import SyncedState

Named = tuple[str, SyncedState]
"""The name of a head, and the agreed state of its session."""


class Gone(Step):
    """Finds trashed sessions."""

    def since(self, here: Container[str]) -> tuple[list[Named], int]:
        """Return the sessions that vanished since they were agreed, and the number of agreed sessions."""
        gone: list[Named] = []
        known = 0
        for name in self._states.names():
            agreed = None if name in here else self._states.agreed(name)
            if name in here or (agreed is not None and not agreed.head.deleted):
                known += 1
            if agreed is None or agreed.head.deleted or not self._concerns(agreed.head):
                continue
            if all(self._layout.rule(part.name).policy is Policy.MANUAL for part in agreed.head.parts):
                continue  # only the user decides about it, including its deletion
            if self._is_deleted(agreed):
                gone.append((name, agreed))
        return gone, known

    def of(self, names: Iterable[str]) -> list[Named]:
        """Return those of these missing sessions that the remote still has, as far as known."""
        return [
            (name, agreed)
            for name in sorted(names)
            if (agreed := self._states.agreed(name)) is not None
            and not agreed.head.deleted
            and self._is_deleted(agreed)
        ]

    def back_again(self, here: Container[str], heads: Mapping[str, HeadRecord]) -> list[Named]:
        """Return sessions whose tombstone the remote has lost."""
        return [
            (name, agreed)
            for name in self._states.names()
            if name not in here
            and (agreed := self._states.agreed(name)) is not None
            and agreed.head.deleted
            and self._concerns(agreed.head)
            and not is_there(self._fs, agreed.folder)
            and is_before(heads.get(name), agreed)
        ]

    def _is_deleted(self, agreed: SyncedState) -> bool:
        """True for a trashed session, but not for one that a local clean-up by age removed."""
        parent = os.path.dirname(agreed.folder)
        if is_there(self._fs, agreed.folder) or stat_or_none(self._fs, parent) is None:
            return False  # a symbolic link counts as existing, even if it is dangling
        return cleaned_up.last_activity(self._fs, parent, agreed.head.session) is None
