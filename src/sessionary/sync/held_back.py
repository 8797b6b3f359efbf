"""Search for versions that are held back, without synchronising. Changes nothing, here or on the remote."""

from __future__ import annotations

from sessionary.disk.fs import stat_or_none
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.context import Step
from sessionary.sync.heads import Head, decode, kind_of
from sessionary.sync.holds import holds_of
from sessionary.sync.local_files import match
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import Hold
from sessionary.sync.state import Held, SyncedState


class HeldBack(Step):
    """Finds damaged versions of the sessions of one layout."""

    def is_possible(self, agreed: SyncedState | None) -> bool:
        """True if a version of the session was held back at the last synchronisation."""
        return agreed is not None and bool(agreed.held or agreed.refused or agreed.head.held)

    def lacks_bytes(self, ref: SessionRef, agreed: SyncedState) -> bool:
        """True if a local file is smaller than agreed, by its stat only: most damage shows in that."""
        if agreed.head.deleted:
            return False
        for part in agreed.head.parts:
            if part.redacted or part.name == bundles.NAME or not self._rules.carries(kind_of(part)):
                continue
            found = stat_or_none(self._fs, self._layout.path_of(ref, part.name))
            if found is not None and found.st_size < part.size:
                return True
        return False

    def find(
        self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord | None
    ) -> tuple[Hold, ...]:
        """Return the versions of a session's files that are not synchronised because they are damaged.

        Args:
            ref: the session.
            agreed: its agreed state.
            record: its head.

        Raises:
            RemoteError, Corrupt, Unsupported, StorageFailed: this cannot be determined.
        """
        head = self._head(agreed, record)
        if head is None or head.deleted:
            return ()
        held: dict[str, Held] = {}
        refused: dict[str, Held] = {}
        if agreed is not None and stat_or_none(self._fs, ref.locator) is not None:
            held = self._held(ref, agreed)
            there = {part.name: part.chain for part in head.parts}
            refused = {name: one for name, one in agreed.refused.items() if there.get(name) == one.chain}
        return holds_of(self._layout, ref, head, self._states.known_device(), held, refused)

    def _head(self, agreed: SyncedState | None, record: HeadRecord | None) -> Head | None:
        if record is None or (agreed is not None and agreed.etag == record.etag):
            return None if agreed is None else agreed.head
        return decode(record.name, record.data)

    def _held(self, ref: SessionRef, agreed: SyncedState) -> dict[str, Held]:
        mine = self._surveyor.survey(ref)
        matched = {
            name: match(self._fs, here, agreed.pieces.get(name), agreed.seen.get(name))
            for name, here in mine.items()
        }
        return self._guard.sendable(ref, mine, agreed, matched).held
