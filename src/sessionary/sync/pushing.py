"""Push of single sessions: rounds of blocks, each committed by the swap of the head.

The swap replaces the agreed head by its etag, so a push without a competitor reads nothing from the remote first. If
another device was faster, its head is compared with the local files: if all of it is here too, for instance after a
push of ours whose answer was lost, the push continues from it. Otherwise the push changes nothing and reports it;
merging is left to a pull.

The agreed state is what the remote had, not what it has: it may have been emptied, or restored to an earlier state.
Heads are never removed, so a missing head was lost; an ancestor of the agreed head is an earlier state of the store,
or of a lagging replica. In both cases the agreed state is put again. The swap decides which it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from typing import NamedTuple

import msgspec

from sessionary.disk.fs import stat_or_none
from sessionary.errors import RemoteError, SessionaryError
from sessionary.layouts import ledger_owner
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy
from sessionary.model import SessionRef
from sessionary.sync import activity, rewinds
from sessionary.sync.blocks import FORMAT, Piece
from sessionary.sync.context import Context, Step
from sessionary.sync.diff import Comparison, Verdict, moved
from sessionary.sync.guard import Guard
from sessionary.sync.heads import Head, PartHead, decode, encode, head_name, is_older
from sessionary.sync.install import refuse_strangers
from sessionary.sync.local_files import LocalPart, Matched, match, matched_all, settled
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import (
    FOR_USER,
    Outcome,
    SyncStatus,
    Undo,
    holds_of,
    marks_of,
    outcome_of,
    with_holds,
    with_undo,
)
from sessionary.sync.shown import Shown
from sessionary.sync.state import Held, SyncedState
from sessionary.sync.upload_plan import (
    REST,
    Claims,
    Draft,
    Numbers,
    Stamp,
    assumed,
    draft_all,
    in_blocks,
    named,
    next_head,
    put_missing,
    put_numbers,
    together,
    versions_kept,
)

TRIES = 4


SENT_AGAIN = "the remote had lost it, or was restored to an earlier state; it was sent again"


class _Basis(NamedTuple):
    """The state that a push starts from."""

    agreed: SyncedState
    shared: Mapping[str, list[Piece]]
    again: bool = False
    note: str = ""

    @property
    def etag(self) -> str | None:
        return self.agreed.etag or None


class Pusher(Step):
    """Pushes single sessions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._guard = Guard(context)

    def above(self, name: str, ref: SessionRef) -> str:
        """Return the head name of the parent of a new session, whose blocks it shares; "" without one."""
        parent = self._parent(ref) if self._states.agreed(name) is None else None
        return self._name_beside(ref, parent) if parent else ""

    def push(
        self,
        name: str,
        ref: SessionRef,
        agreed: SyncedState | None,
        allowed: Collection[str] = (),
        ended: Collection[str] = (),
        shown: Shown | None = None,
    ) -> Outcome:
        """Send the changes of a session, and what the remote has lost of it, but no damaged copy of sent files.

        Args:
            agreed: its agreed state; None if it was never pushed from here.
            allowed: files that the user sends regardless of damage.
            ended: files of which no other device holds a version back any more, by the user's decision.
            shown: what the remote shows of it, if it was listed.

        Raises:
            RemoteError: the remote failed, or other devices were faster every time.
            NotFound, StorageFailed: the session cannot be read.
            Unsupported: it is outside the store.
        """
        basis = self._first(name, ref) if agreed is None else _Basis(agreed, {})
        if shown is None and agreed is None:
            shown = Shown(self._remote.read_head(name))
        for _ in range(TRIES):
            found = basis if shown is None else self._look(name, ref, basis, shown.record)
            if isinstance(found, _Basis):
                basis, outcome = found, self._rounds(name, ref, found, allowed, ended)
            else:
                outcome = found
            if outcome is not None:
                return self._surveyor.with_left_out(ref, outcome, None if agreed is None else agreed.head)
            shown = Shown(self._remote.read_head(name))
        raise RemoteError(f"other devices keep pushing {ref.session_id}", retryable=True)

    def bury(self, name: str, agreed: SyncedState, shown: Shown | None = None) -> Outcome:
        """Put a tombstone for a session that was trashed here, unless it was continued elsewhere."""
        etag: str | None = agreed.etag
        for _ in range(TRIES):
            if shown is not None:
                etag = self._etag_before(agreed, shown.record)
                if etag == "":
                    note = "another device has changed it; a pull restores it"
                    return outcome_of(agreed.head, SyncStatus.BEHIND, note)
            buried = self._tombstone(name, agreed, emptied=etag != agreed.etag)
            won = self._swap(name, buried, etag)
            if won is not None:
                self._states.agree(name, msgspec.structs.replace(buried, etag=won))
                return outcome_of(buried.head, SyncStatus.TRASHED)
            shown = Shown(self._remote.read_head(name))
        raise RemoteError(f"other devices keep pushing {agreed.head.session}", retryable=True)

    def _etag_before(self, agreed: SyncedState, record: HeadRecord | None) -> str | None:
        """Return the etag to replace, if the remote shows the agreed state or an ancestor of it.

        Returns:
            None if the remote shows nothing; "" if it shows another state.
        """
        if record is None or record.etag == agreed.etag:
            return record and record.etag
        return record.etag if is_older(decode(record.name, record.data), agreed.head) else ""

    def _tombstone(self, name: str, agreed: SyncedState, *, emptied: bool) -> SyncedState:
        """Return the state to agree on for a trashed session.

        If the remote has lost the agreed state, only the name is kept: the blocks are not here any more.
        """
        stamp, active = self._stamp({}), agreed.head.active
        head = next_head(agreed.head, {}, {}, stamp, Claims(above=self._states.above(name)))
        head = msgspec.structs.replace(head, deleted=True, active=active)
        if emptied:
            head = msgspec.structs.replace(head, parts=(), history=())
        return msgspec.structs.replace(agreed, head=head, etag="", seen={}, pieces=named(head, agreed.pieces))

    # -- what the remote shows

    def _look(self, name: str, ref: SessionRef, basis: _Basis, record: HeadRecord | None) -> _Basis | Outcome:
        """Return the state to continue from, by what the remote shows; or an outcome, if the push must stop."""
        agreed = basis.agreed
        if record is None:
            return self.put_back(name, ref, agreed, None, None) if basis.etag else basis
        if basis.etag == record.etag:
            return basis
        head = decode(name, record.data)
        if basis.etag and is_older(head, agreed.head):
            return self.put_back(name, ref, agreed, record.etag, head)
        return self.adopt(name, ref, agreed if basis.etag else None, record)

    def put_back(
        self, name: str, ref: SessionRef, agreed: SyncedState, etag: str | None, held: Head | None
    ) -> _Basis:
        """Put the agreed state again: blocks, and the head as it was.

        Files that have changed here, and of which the remote shows nothing, are left to the rounds. If the swap is
        refused, the remote has another state, and nothing has changed.

        Args:
            etag: the etag of the head on the remote; None without one.
            held: that head, an earlier one; None if it is missing or unreadable.

        Raises:
            RemoteError, Invalid: as `push`.
        """
        if held is not None:
            refuse_strangers(self._layout, held)
        mine = self._surveyor.survey(ref)
        parts, pieces, wanted = self._still_whole(agreed, held, mine)
        count = max(agreed.head.count, held.count + 1 if held else 0)
        head = msgspec.structs.replace(agreed.head, parts=parts, count=count)
        intended = msgspec.structs.replace(agreed, head=head, etag="", pieces=pieces, unsure=wanted)
        self._put_missing(mine, intended, wanted)
        won = self._swap(name, intended, etag)
        if won is None:
            return _Basis(agreed, {})
        self._put_missing(mine, intended, wanted)  # a garbage collection may not have seen the head
        found = msgspec.structs.replace(intended, etag=won, unsure={})
        self._states.agree(name, found)
        return _Basis(found, {}, again=True)

    def _still_whole(
        self, agreed: SyncedState, held: Head | None, mine: Mapping[str, LocalPart]
    ) -> tuple[tuple[PartHead, ...], dict[str, list[Piece]], dict[str, list[int]]]:
        """Return the agreed files that can be put again, with their pieces, and the blocks to put.

        Files whose blocks are not here any more are kept as the remote has them.
        """
        there = {part.name: part for part in held.parts} if held else {}
        parts: list[PartHead] = []
        known: dict[str, list[Piece]] = {}
        wanted: dict[str, list[int]] = {}
        for part in agreed.head.parts:
            pieces, old = agreed.pieces.get(part.name, []), there.get(part.name)
            if part.data is None and (old is None or old.chain != part.chain):
                here = mine.get(part.name)
                if here is None or match(self._fs, here, pieces, agreed.seen.get(part.name)).pieces < part.n:
                    if old is not None:
                        parts.append(old)
                        is_begun = 0 < old.n <= len(pieces) and pieces[old.n - 1].chain == old.chain
                        known[part.name] = pieces[: old.n] if is_begun else []
                    continue
                wanted[part.name] = list(range(part.n))
            parts.append(part)
            known[part.name] = pieces
        return tuple(parts), known, wanted

    def _parent(self, ref: SessionRef) -> str | None:
        try:
            return self._layout.parent(ref) if self._surveyor.is_open(ref) else None
        except SessionaryError:
            return None

    def _name_beside(self, ref: SessionRef, session: str) -> str:
        return head_name(self._layout.name, self._projects.identity(ref), session)

    def _stamp(self, mine: Mapping[str, LocalPart]) -> Stamp:
        now = self._now()
        active = activity.text(activity.latest(mine.values(), now))
        return Stamp(self._device, now.astimezone(UTC).isoformat(timespec="seconds"), active)

    def _first(self, name: str, ref: SessionRef) -> _Basis:
        """Return the starting state of a session that was never pushed: empty, or the blocks of its parent."""
        parent = self._parent(ref)
        family = self._states.agreed(self._name_beside(ref, parent)) if parent else None
        head = Head(
            v=FORMAT,
            kind=self._layout.name,
            project=self._projects.identity(ref),
            session=ref.session_id,
            space=family.head.space if family else name,
            gen=0,
            count=0,
            device="",
            at="",
            parent=parent,
        )
        return _Basis(SyncedState(head, "", {}, ref.locator), family.pieces if family else {})

    def _rounds(
        self, name: str, ref: SessionRef, basis: _Basis, allowed: Collection[str], ended: Collection[str]
    ) -> Outcome | None:
        """Push rounds until the remote is complete; None if another device was faster."""
        standing, sent, undo = (SyncStatus.PUSHED if basis.again else SyncStatus.IN_STEP), False, None
        note = SENT_AGAIN if basis.again else basis.note
        while True:
            agreed = basis.agreed
            mine = self._surveyor.survey(ref)
            if not mine and self._surveyor.left_out(ref):
                return outcome_of(agreed.head, standing, note)
            taken = self._taken(ref, agreed.head, mine)
            known = {**basis.shared, **agreed.pieces}
            matched = matched_all(self._fs, mine, known, agreed.seen)
            mine, matched, held, items = self._guard.sendable(ref, mine, agreed, matched, allowed)
            marks = marks_of(agreed.head, self._device, held, ended)
            if _is_sent(agreed, mine, matched) and not taken and marks == agreed.head.held:
                self._remember(name, agreed, mine, held)
                outcome = with_undo(outcome_of(agreed.head, standing), undo, note)
                holds = holds_of(self._layout, ref, agreed.head, self._device, held, agreed.refused)
                return with_holds(outcome, holds, sent=sent)
            drafts = draft_all(self._fs, mine, in_blocks(agreed.head, known), matched, self._block)
            began = self._now()
            versioned, above = self._versioned(drafts), self._states.above(name)
            claims = Claims(taken, marks, allowed, items, versioned, above, self._rules.history)
            intended, doubted = self._send(ref, agreed, drafts, matched, self._stamp(mine), claims)
            if not note:
                undo, note = rewinds.by_push(self._layout, agreed.head, intended.head, mine)
            etag = self._swap(name, intended, basis.etag)
            if etag is None:
                return None
            for block, data in doubted:
                self._remote.put_block(intended.head.space, block, data)
            rested = abs((self._now() - began).total_seconds()) > REST
            if rested:
                self._put_versions(agreed, intended)
            wanted = intended.unsure if rested else assumed(agreed.head, drafts, matched)
            self._put_missing(mine, intended, wanted)
            basis = _Basis(msgspec.structs.replace(intended, etag=etag, unsure={}), {}, basis.again)
            self._states.agree(name, basis.agreed)
            self._remember_taken(name, undo, agreed, basis.agreed)
            self._settle_owners(ref, basis.agreed.head.owners)
            standing, sent = SyncStatus.PUSHED, sent or intended.head.parts != agreed.head.parts

    def _taken(self, ref: SessionRef, head: Head, mine: Mapping[str, LocalPart]) -> list[str]:
        """Return the ledgers that this device owns from now on: without an owner so far, or taken over."""
        taken = []
        for name in mine:
            if self._rule(name).policy is Policy.LEDGER and head.owners.get(name) != self._device:
                claim = ledger_owner.owner_of(self._layout.path_of(ref, name), self._fs)
                if name not in head.owners or (claim is not None and claim.here):
                    taken.append(name)
        return taken

    def _send(
        self,
        ref: SessionRef,
        agreed: SyncedState,
        drafts: Mapping[str, Draft],
        matched: Mapping[str, Matched],
        stamp: Stamp,
        claims: Claims,
    ) -> tuple[SyncedState, list[tuple[str, bytes]]]:
        """Put the blocks of a round.

        Returns:
            The state to agree on after the swap, and the blocks that existed already, which may be removed meanwhile.
        """
        head = next_head(agreed.head, drafts, matched, stamp, claims)
        doubted = []
        for block, data in [
            *(put for one in drafts.values() for put in one.puts),
            *versions_kept(agreed.head, head),
        ]:
            if not self._remote.put_block(head.space, block, data):
                doubted.append((block, data))
        chains = head.chains()
        sent = {name: one.pieces for name, one in drafts.items() if chains.get(name) == one.part.chain}
        unsure = together(assumed(agreed.head, drafts, matched), put_numbers(drafts))
        pieces = {**agreed.pieces, **sent}
        return SyncedState(head, "", pieces, ref.locator, unsure=unsure, held=agreed.held), doubted

    def _remember_taken(self, name: str, undo: Undo | None, before: SyncedState, after: SyncedState) -> None:
        if undo is not None:
            if after.head.gen > before.head.gen:
                self._states.taken.put(name, {undo.file: before.pieces[undo.file]})
            return
        old, new = before.head.chains(), after.head.chains()
        if any(old.get(file) != new.get(file) for file in self._states.taken.get(name) or ()):
            self._states.taken.forget(name)

    def _versioned(self, names: Iterable[str]) -> list[str]:
        """Return the documents whose earlier versions are kept: those that are conversations."""
        kind = self._layout.part_kind
        return [
            name
            for name in names
            if kind(name) is PartKind.DOCUMENT and self._rule(name).policy is Policy.FORK
        ]

    def assure(self, ref: SessionRef, intent: SyncedState, before: SyncedState | None = None) -> None:
        """After an interrupted push: put again the blocks that it relied on, if the local files still have them.

        Args:
            before: the agreed state before it.
        """
        if intent.unsure and stat_or_none(self._fs, ref.locator) is not None:  # else it was deleted since
            self._put_missing(self._surveyor.survey(ref), intent, intent.unsure)
        if before is not None:
            self._put_versions(before, intent)

    def _put_versions(self, before: SyncedState, intended: SyncedState) -> None:
        for block, data in versions_kept(before.head, intended.head):
            self._remote.put_block(intended.head.space, block, data)

    def _put_missing(self, mine: Mapping[str, LocalPart], intended: SyncedState, wanted: Numbers) -> None:
        """Put missing blocks from local files; those that have changed are left out."""
        for file, numbers in wanted.items():
            if file in mine and file in intended.pieces:
                space, pieces = intended.head.space, intended.pieces[file]
                put_missing(self._fs, self._remote, space, mine[file], pieces, numbers)

    def _swap(self, name: str, intended: SyncedState, etag: str | None) -> str | None:
        """Swap the head, after storing the intent. None if another device was faster."""
        data = encode(intended.head)
        self._states.intend(name, intended)
        won = self._remote.swap_head(name, data, etag)
        if won is None:
            found = self._remote.read_head(name)
            if found is not None and found.data == data:
                return found.etag  # an earlier attempt was carried out, and its answer was lost
            self._states.give_up(name, intended)
        return won

    def adopt(
        self, name: str, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord
    ) -> _Basis | Outcome:
        """Continue from a remote head that this machine has not seen, if all of it is here too.

        Returns:
            The new agreed state; or the outcome.

        Raises:
            RemoteError, Corrupt, Invalid, StorageFailed: nothing was changed.
        """
        head = decode(name, record.data)
        refuse_strangers(self._layout, head)
        mine = self._surveyor.survey(ref)
        with self._states.spool() as spool:
            found, closed = self._compare(ref, mine, agreed, head, spool)
            judged = self._guard.judge(mine, agreed, head, found)
        waits = judged.waits or moved(head, agreed, self._rules, closed)
        refused = self._refused(found, head, waits=waits)
        if refused is not None:
            holds = holds_of(self._layout, ref, head, self._device, judged.held, judged.refused)
            return with_holds(refused, holds)
        pieces = named(head, {**(agreed.pieces if agreed else {}), **found.pieces})
        adopted = SyncedState(head, record.etag, pieces, ref.locator, held=judged.held)
        self._states.agree(name, adopted)
        return _Basis(adopted, {}, note=rewinds.met(self._layout, found, mine, agreed))

    def _refused(self, found: Comparison, head: Head, *, waits: bool) -> Outcome | None:
        """Return the outcome if a push must not continue from a head; None if it may."""
        if waits:
            return outcome_of(head, SyncStatus.BEHIND)
        if found.for_user(self._rule):
            return outcome_of(head, SyncStatus.HELD_BACK, FOR_USER)
        if found.is_diverged(self._rule):
            return outcome_of(head, SyncStatus.DIVERGED, "another device has continued it; a pull keeps both")
        if head.deleted or not found.all_are(Verdict.SAME, Verdict.OURS, Verdict.HELD):
            return outcome_of(head, SyncStatus.BEHIND, "another device has changed it; pull first")
        return None

    def _remember(
        self, name: str, agreed: SyncedState, mine: Mapping[str, LocalPart], held: dict[str, Held]
    ) -> None:
        """Store the stamps of unchanged files, so that the next push need not read them."""
        seen = settled(mine, list(mine), self._now().timestamp())
        if (seen, held) != (agreed.seen, agreed.held):
            self._states.agree(name, msgspec.structs.replace(agreed, seen=seen, held=held))


def _is_sent(agreed: SyncedState, mine: Mapping[str, LocalPart], matched: Mapping[str, Matched]) -> bool:
    """True if the remote has everything that is here."""
    if not agreed.etag or agreed.head.deleted:
        return False
    return all(matched[part].same and part in agreed.pieces for part in mine)
