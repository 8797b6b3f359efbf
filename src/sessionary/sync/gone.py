"""Sessions that were here and are not any more: what a push tells the other devices of.

The files are the only witnesses. A session counts as trashed if its folder is not there, though the folder that held it
is: else its disk has gone with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping

from sessionary.disk.fs import Fs, is_there, stat_or_none
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import age_cleanup
from sessionary.sync.heads import Head
from sessionary.sync.remote import HeadRecord
from sessionary.sync.shown import is_before
from sessionary.sync.state import States, SyncedState

Named = tuple[str, SyncedState]
"""The name of a head, and what was agreed about its session."""


class Gone:
    """Finds them.

    Args:
        fs: the file system.
        layout: the sessions here.
        states: what was agreed.
        concerns: whether a session of this head is carried here.
    """

    def __init__(self, fs: Fs, layout: SyncLayout, states: States, concerns: Callable[[Head], bool]) -> None:
        self._fs = fs
        self._layout = layout
        self._states = states
        self._concerns = concerns

    def since(self, here: Container[str]) -> tuple[list[Named], int]:
        """Those that are gone since they were agreed, and how many there were."""
        gone: list[Named] = []
        known = 0
        for name in self._states.names():
            agreed = None if name in here else self._states.agreed(name)
            if name in here or (agreed is not None and not agreed.head.deleted):
                known += 1
            if agreed is None or agreed.head.deleted or not self._concerns(agreed.head):
                continue
            if all(self._layout.rule(part.name).policy is Policy.MANUAL for part in agreed.head.parts):
                continue  # nobody but a person decides about it, nor that it is to go
            if self._is_deleted(agreed):
                gone.append((name, agreed))
        return gone, known

    def of(self, names: Iterable[str]) -> list[Named]:
        """Those of these sessions, which are not here, that the other side still has as far as is known."""
        known = [(name, self._states.agreed(name)) for name in sorted(names)]
        return [
            (name, agreed)
            for name, agreed in known
            if agreed is not None and not agreed.head.deleted and self._is_deleted(agreed)
        ]

    def back_again(self, here: Container[str], heads: Mapping[str, HeadRecord]) -> list[Named]:
        """Those that the other side was told of, and has lost that since."""
        known = (name for name in self._states.names() if name not in here)
        found = [(name, agreed) for name in known if (agreed := self._states.agreed(name)) is not None]
        return [
            (name, agreed)
            for name, agreed in found
            if agreed.head.deleted
            and self._concerns(agreed.head)
            and not is_there(self._fs, agreed.folder)
            and is_before(heads.get(name), agreed)
        ]

    def _is_deleted(self, agreed: SyncedState) -> bool:
        """True for a session that is gone, unless it was merely too old for this device."""
        gone = is_gone(self._fs, agreed.folder, os.path.dirname(agreed.folder))
        head = agreed.head
        ref = SessionRef(head.kind, head.session, agreed.folder, head.project)
        return gone and age_cleanup.last_activity(self._fs, ref) is None


def is_gone(fs: Fs, folder: str, parent: str) -> bool:
    """True if a session's folder is not there, though the folder that held it is: its disk has not gone with it.

    A link is there, whether what it leads to is or not.
    """
    return not is_there(fs, folder) and stat_or_none(fs, parent) is not None
