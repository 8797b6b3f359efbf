"""User decisions about a session: which version of a file is kept, first here and then on the remote."""

from __future__ import annotations

from sessionary.model import SessionRef
from sessionary.sync.conflicts import ConflictFinder, is_for_user, nothing_to_decide
from sessionary.sync.context import Context, Step
from sessionary.sync.guard import MINE, THEIRS, Guard
from sessionary.sync.heads import decode
from sessionary.sync.pulling import Puller
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import Hold, Outcome, SyncStatus, Where
from sessionary.sync.state import SyncedState


class Decider(Step):
    """Carries out decisions about single sessions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._conflicts = ConflictFinder(context)
        self._guard = Guard(context)
        self._pusher = Pusher(context)
        self._puller = Puller(context)

    def decide(
        self, name: str, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord | None, keep: str
    ) -> Outcome:
        """Make one version of what is held back the version of all devices.

        Args:
            name: the name of the session's head.
            ref: the session.
            agreed: its agreed state.
            record: its head.
            keep: `MINE` or `THEIRS`.

        Raises:
            Invalid: `keep` is neither, or there is nothing to decide.
            RemoteError, Corrupt, Unsupported, Locked, StorageFailed: as a push or a pull.
        """
        if keep not in (MINE, THEIRS) or record is None:
            raise nothing_to_decide(ref)
        if not is_for_user(self._layout, ref) or not self._conflicts.files(ref, agreed, record):
            return self._settle(name, ref, agreed, record, keep)
        head = decode(name, record.data)
        if keep == THEIRS:
            return self._puller.pull(record, head, ref, self._states.device(), keep=keep)
        self._states.agree(name, SyncedState(head, record.etag, {}, ref.locator))
        return self._pusher.push(name, ref, self._states.agreed(name), [part.name for part in head.parts])

    def _settle(
        self, name: str, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord, keep: str
    ) -> Outcome:
        """Carry out a decision about damaged versions."""
        holds = self._holds(name, ref, agreed, record)
        elsewhere = {hold.file for hold in holds if hold.where is Where.ELSEWHERE}
        is_ours = any(hold.where is not Where.ELSEWHERE for hold in holds)
        if not is_ours and (not elsewhere or keep == THEIRS):
            raise nothing_to_decide(ref)
        head = decode(name, record.data)
        pulled = self._puller.pull(record, head, ref, self._states.device(), keep=keep)
        if is_ours and not _is_carried_out(pulled):
            return pulled
        allowed = [hold.file for hold in holds if hold.where is Where.HERE and keep == MINE]
        ended = elsewhere if keep == MINE and not is_ours else ()
        pushed = self._pusher.push(name, ref, self._states.agreed(name), allowed, ended)
        return pulled if pushed.standing is SyncStatus.IN_STEP else pushed

    def _holds(
        self, name: str, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord
    ) -> tuple[Hold, ...]:
        known = self._guard.find(ref, agreed, record)
        is_news = agreed is None or agreed.etag != record.etag
        if not is_news or any(hold.where is not Where.ELSEWHERE for hold in known):
            return known
        found = self._pusher.adopt(name, ref, agreed, record)  # the remote version was never compared
        return found.held if isinstance(found, Outcome) else known


def _is_carried_out(pulled: Outcome) -> bool:
    """True if a pull has carried out the decision; versions that another device holds back are irrelevant."""
    if pulled.standing is SyncStatus.HELD_BACK:
        return bool(pulled.held) and all(hold.where is Where.ELSEWHERE for hold in pulled.held)
    return pulled.standing in (SyncStatus.PULLED, SyncStatus.IN_STEP)
