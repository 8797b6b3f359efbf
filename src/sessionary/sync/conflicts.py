"""Files with two versions that only the user can merge.

A pull never drops what one side has and the other lacks. Where a file cannot hold both, one version is kept in place
and the other beside it as ``<file>.conflict-<mark>``. Status commands report both.

The user decides which version is kept, of such files and of damaged ones: first here, and then on the remote.
"""

from __future__ import annotations

import re

from sessionary.disk.fs import stat_or_none
from sessionary.errors import Invalid
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.apply import name_beside
from sessionary.sync.context import Context, Step
from sessionary.sync.download import Theirs
from sessionary.sync.guard import MINE, THEIRS, Guard
from sessionary.sync.heads import decode
from sessionary.sync.install import refuse_strangers
from sessionary.sync.local_files import LocalPart, opened
from sessionary.sync.pulling import Puller
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import FOR_USER, Beside, Hold, Outcome, SyncStatus, Where, outcome_for
from sessionary.sync.state import SyncedState

_ASIDE = re.compile(r"(.+)\.conflict-[^/]+", re.DOTALL)


def is_for_user(layout: SyncLayout, ref: SessionRef) -> bool:
    """True if a session is a single file whose conflicts only the user may resolve."""
    only = layout.single_file(ref.session_id)
    return only is not None and layout.rule(only).policy is Policy.MANUAL


def versions_beside(layout: SyncLayout, ref: SessionRef) -> list[Beside]:
    """Return the files of a session that have another version beside them.

    Excluded are conversations, which a pull never puts into this state (`undo` lists those that a save displaced),
    and files whose conflicts only the user may resolve: the files do not show whether that was done, see
    `Engine.awaiting`.
    """
    if layout.single_file(ref.session_id) is not None:
        return []  # it forks, or the user decides
    found = []
    for part in layout.parts(ref):
        match = _ASIDE.fullmatch(part.name)
        if match is None or layout.part_kind(match[1]) is None:
            continue
        if layout.rule(match[1]).policy is not Policy.FORK:
            found.append(Beside(match[1], layout.path_of(ref, match[1]), part.path))
    return found


class ConflictFinder(Step):
    """Finds sessions of one layout that wait for the user. Changes nothing, here or on the remote.

    The other version is beside the local one only if a pull has put it there.
    """

    def held(self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord | None) -> Outcome | None:
        """Return the outcome of a session that waits for the user; None otherwise. Raises as `files`."""
        if record is None or not is_for_user(self._layout, ref):
            return None
        beside = tuple(self.files(ref, agreed, record))
        project = self._projects.identity(ref)
        return outcome_for(ref, project, SyncStatus.HELD_BACK, FOR_USER, beside) if beside else None

    def files(self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord) -> list[Beside]:
        """Return the files of a session that both sides have changed and only the user may merge.

        Raises:
            RemoteError: the remote cannot be read.
            Corrupt, Unsupported, Invalid: the remote data cannot be read, or names a file that no such session has.
        """
        head = decode(record.name, record.data)
        refuse_strangers(self._layout, head)
        mine = self._surveyor.survey(ref)
        with self._states.spool() as spool:
            found, _ = self._compare(ref, mine, agreed, head, spool)
            names = found.for_user(self._rule)
            return [self._beside(ref, mine[name], found.theirs[name]) for name in names]

    def _beside(self, ref: SessionRef, mine: LocalPart, theirs: Theirs) -> Beside:
        path = self._layout.path_of(ref, mine.name)
        with opened(self._fs, mine) as file:
            other = name_beside(path, b"".join(theirs.all(file)))
        return Beside(mine.name, path, other if stat_or_none(self._fs, other) is not None else None)


def nothing_to_decide(ref: SessionRef) -> Invalid:
    """Return the error for a decision where there is nothing to decide."""
    return Invalid(
        f"there is nothing to decide about {ref.session_id}",
        operation="resolve",
        session=ref.session_id,
        hint="use `mine` or `theirs` for a session that `sessionary sync resolve` lists; of all others a pull keeps "
        "both versions",
    )


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
            return self._puller.pull(record, head, ref, keep=keep)
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
        pulled = self._puller.pull(record, head, ref, keep=keep)
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
