"""What a pull changes here: new sessions, longer ones, ones that were rewound or trashed elsewhere, and conflicts.

The network comes first, the lock second: what is fetched is compared with the files as they were, and under the lock
they are looked at again. If they have changed meanwhile, it begins anew.

A new session appears whole, by the rename of a folder that was filled beside it. So does the other side's version when
what is here gives way: the folder here is *moved* to the sibling's name, not copied, so that no word of it is ever
there twice, whenever it is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_there, stat_or_none
from sessionary.disk.spooled_file import Spool
from sessionary.errors import AlreadyExists, Locked
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import activity, age_cleanup, rewinds
from sessionary.sync.apply import Writer
from sessionary.sync.blocks import Piece
from sessionary.sync.conflicts import FOR_A_PERSON
from sessionary.sync.diff import Comparison, Verdict, compare, fetch_rest, moved
from sessionary.sync.guard import THEIRS, Guard, Judged
from sessionary.sync.heads import Head
from sessionary.sync.holds import holds_of, taken_back, with_holds, with_undo
from sessionary.sync.install import Placer, refuse_strangers
from sessionary.sync.local_files import LocalPart, Surveyor, begins_with, tip
from sessionary.sync.merging import instant
from sessionary.sync.owners import settle_owners
from sessionary.sync.remote import HeadRecord, Remote
from sessionary.sync.report import Outcome, SyncStatus, Undo, outcome_of
from sessionary.sync.rules import Rules, rule_of
from sessionary.sync.state import Held, Moving, States, SyncedState, digest, sibling_id
from sessionary.sync.verify_blocks import named

TRIES = 3
SIBLINGS = 100
"""So many times the same bytes of a session may give way, with another session in the place of each sibling."""

InUse = Callable[[SessionRef], str | bool | None]
"""Whether a running agent has a session open, or why it must be taken for that, in a sentence."""


def open_here(why: str | bool) -> str:
    """What is told of a session that is open, and newer on the other side."""
    return f"newer on the other side; here {why if isinstance(why, str) else 'it is open in a running agent'}"


class Puller:
    """Brings single sessions here."""

    def __init__(
        self,
        fs: Fs,
        layout: SyncLayout,
        remote: Remote,
        states: States,
        rules: Rules,
        now: Callable[[], datetime],
        in_use: InUse = lambda ref: None,
    ) -> None:
        self._fs = fs
        self._in_use = in_use
        self._layout = layout
        self._remote = remote
        self._states = states
        self._rules = rules
        self._now = now
        self._rule = rule_of(layout)
        self._surveyor = Surveyor(fs, layout, rules, states.copies)
        self._placer = Placer(fs, layout)
        self._guard = Guard(fs, layout, remote, states, now)

    def pull(
        self, record: HeadRecord, head: Head, ref: SessionRef, device: str, *, keep: str | None = None
    ) -> Outcome:
        """Make a session here what the other side has, without losing what only this side has.

        With `keep` the user has said which version stands where only a user may say it, or where one is damaged.

        Raises:
            Invalid: a file of the head can be no file of such a session.
            Locked: somebody writes to the session all the time.
            RemoteError, Corrupt, StorageFailed: nothing was changed, or the next pull does the rest.
            Unsupported: the session lies out of the store.
        """
        refuse_strangers(self._layout, head)
        self._surveyor.links.refuse(ref)
        agreed = self._states.agreed(record.name)
        if self._layout.ref_for_path(ref.path) is None:
            if head.deleted:
                self._agree(record, head, ref, Comparison(), agreed)
                return outcome_of(head, SyncStatus.IN_STEP, "trashed elsewhere")
            return self._place(record, head, ref, device)
        for _ in range(TRIES):
            with self._states.spool() as spool:
                outcome = self._merge(record, head, ref, agreed, device, keep, spool)
            if outcome is not None:
                return self._surveyor.told(ref, outcome, head)
        raise Locked(f"{ref.folder} changes all the time", operation="pull", session=ref.session_id)

    def settle_move(self, name: str) -> None:
        """Finish what a pull was doing that was cut off while a session gave way."""
        moving = self._states.moving(name)
        if moving is None:
            return
        sibling = self._layout.ref_for_path(Path(moving.sibling))
        if sibling is not None:
            with self._layout.lock(sibling):
                self._relabel(sibling, moving.session, moving.at)
            if (
                stat_or_none(self._fs, moving.folder) is None
                and stat_or_none(self._fs, moving.staged) is not None
            ):
                self._placer.enter(
                    moving.staged, SessionRef(self._layout.name, moving.session, moving.folder, None)
                )
            self._states.forget(name)  # what is here now is compared with the head byte by byte
        self._placer.clear(moving.staged)
        self._states.forget_move(name)

    # -- a session that is not here

    def _place(self, record: HeadRecord, head: Head, ref: SessionRef, device: str) -> Outcome:
        with self._states.spool() as spool:
            found = compare(self._fs, self._remote, {}, None, head, self._rules, self._rule, spool)
            staged = self._placer.stage(record.name, ref, head, found, {}, device)
        self._placer.enter(staged, ref)
        self._set_times(ref, activity.told(head, self._now()))
        age_cleanup.forget(self._fs, ref)
        self._agree(record, head, ref, found, None)
        return outcome_of(head, SyncStatus.PULLED)

    # -- a session that is here

    def _merge(
        self,
        record: HeadRecord,
        head: Head,
        ref: SessionRef,
        agreed: SyncedState | None,
        device: str,
        keep: str | None,
        spool: Spool,
    ) -> Outcome | None:
        """Compare, fetch, take the session, look again, write. None if it has changed in between."""
        mine = self._surveyor.survey(ref)
        closed = self._surveyor.closed(ref, (part.name for part in head.parts))
        found = compare(self._fs, self._remote, mine, agreed, head, self._rules, self._rule, spool, closed)
        judged = self._guard.judge(mine, agreed, head, found, keep)
        diverged = not head.deleted and found.is_diverged(self._rule)
        # What lies out of the store is neither replaced nor given a new label.
        judged.waits |= moved(head, agreed, self._rules, closed) or (diverged and bool(closed))
        writer = Writer(
            self._fs, self._layout, self._surveyor, self._rules, self._now(), ref, head, device, keep
        )
        if diverged and judged.waits:
            beside = writer.lay_beside(found, mine, judged.refused)
            outcome = outcome_of(head, SyncStatus.DIVERGED)
            return self._wait(record.name, head, ref, agreed, device, judged, outcome, beside)
        if diverged:
            fetch_rest(self._remote, found, agreed, head, self._rules)
        with self._layout.lock(ref):
            again = self._surveyor.survey(ref)
            if {part.name: part.stamp for part in again.values()} != {
                part.name: part.stamp for part in mine.values()
            }:
                return None
            if keep is None and (why := self._in_use(ref)):  # opened while the other side was being asked
                return outcome_of(head, SyncStatus.HELD_BACK, open_here(why))
            if head.deleted:
                return self._follow_deletion(record, head, ref, found, agreed)
            if diverged:
                return self._give_way(record, head, ref, found, agreed, mine, device)
            if keep == THEIRS:
                writer.give_up_ours(found, judged.decided)
            if found.awaits_person(self._rule):
                writer.show(found, mine)
                return outcome_of(head, SyncStatus.HELD_BACK, FOR_A_PERSON)
            writer.prove(found, mine)
            settle_owners(self._fs, self._layout, ref, head.owners, device)
            undo, taken = self._taken_back(head, found, mine, agreed)
            taken = taken or rewinds.met(self._layout, found, mine, agreed)
            noted = writer.write(found, mine, agreed)
            taken = taken or self._come_back(record.name, ref, found)
            beside = writer.lay_beside(found, mine, judged.refused)
            self._set_times(ref, self._active(head, found, mine))
        changed = {Verdict.THEIRS, Verdict.MERGE} & set(found.verdicts.values()) or noted
        unchanged = SyncStatus.AHEAD if taken else SyncStatus.IN_STEP  # what is in step is not printed
        outcome = outcome_of(head, SyncStatus.PULLED if changed else unchanged, noted)
        held = {**judged.held, **writer.held}
        if judged.waits:
            return self._wait(record.name, head, ref, agreed, device, judged, outcome, beside)
        self._agree(record, head, ref, found, agreed, held)
        self._remember_taken(record.name, undo, taken, agreed)
        holds = holds_of(self._layout, ref, head, device, held, judged.refused, beside.get)
        return with_holds(with_undo(outcome, undo, taken), holds)

    def _wait(
        self,
        name: str,
        head: Head,
        ref: SessionRef,
        agreed: SyncedState | None,
        device: str,
        judged: Judged,
        outcome: Outcome,
        beside: Mapping[str, str],
    ) -> Outcome:
        """A damaged version keeps both sides from agreeing: remember which, so that a status need not look."""
        if agreed is not None and (judged.held, judged.refused) != (agreed.held, agreed.refused):
            noted = msgspec.structs.replace(agreed, held=judged.held, refused=judged.refused)
            self._states.agree(name, noted)
        holds = holds_of(self._layout, ref, head, device, judged.held, judged.refused, beside.get)
        return with_holds(outcome, holds)

    def _come_back(self, name: str, ref: SessionRef, found: Comparison) -> str:
        before = self._states.taken(name)
        return rewinds.come_back(self._fs, found, self._surveyor.survey(ref), before) if before else ""

    def _remember_taken(self, name: str, undo: Undo | None, words: str, agreed: SyncedState | None) -> None:
        if undo is not None and agreed is not None:
            self._states.note_taken(name, undo.file, agreed.pieces[undo.file])
        elif words:
            self._states.forget_taken(name)

    def _taken_back(
        self, head: Head, found: Comparison, mine: Mapping[str, LocalPart], agreed: SyncedState | None
    ) -> tuple[Undo | None, str]:
        """What a pull takes away of journals because another device did, and how to bring it back."""
        if agreed is None:
            return None, ""
        for name, theirs in found.theirs.items():
            here, pieces = mine.get(name), agreed.pieces.get(name)
            if here is None or not pieces or found.verdicts[name] is not Verdict.THEIRS:
                continue
            had_all = found.matched[name].pieces == len(pieces)
            if not had_all or theirs.pieces[: len(pieces)] == pieces:
                continue
            if taken_back(self._layout, name, here.kind, here.size, theirs.part.size):
                past = (one.gen for one in head.history if name in one.tips and one.gen >= agreed.head.gen)
                generation = min(past, default=None)
                undo = None if generation is None else Undo(name, generation)
                words = f"{name} was taken back on another device"
                return undo, f"{words} from {here.size:,} to {theirs.part.size:,} bytes"
        return None, ""

    def _follow_deletion(
        self, record: HeadRecord, head: Head, ref: SessionRef, found: Comparison, agreed: SyncedState | None
    ) -> Outcome:
        """Trash here what was trashed elsewhere, unless something here was never seen there, or a person decides."""
        for_a_person = any(self._rule(name).policy is Policy.MANUAL for name in found.verdicts)
        ours = for_a_person or not found.all_are(Verdict.SAME, Verdict.THEIRS)
        if not ours:
            self._layout.trash(ref, self._now())
        self._agree(record, head, ref, found, agreed)
        if ours:
            why = "only a person may take it away" if for_a_person else "but changed here"
            return outcome_of(head, SyncStatus.HELD_BACK, f"trashed elsewhere, {why}: it stays")
        return outcome_of(head, SyncStatus.TRASHED, "trashed elsewhere")

    def _give_way(
        self,
        record: HeadRecord,
        head: Head,
        ref: SessionRef,
        found: Comparison,
        agreed: SyncedState | None,
        mine: Mapping[str, LocalPart],
        device: str,
    ) -> Outcome:
        """Move what is here to a sibling, and the other side's version to its place. Hold the session.

        What is here may be what several devices had agreed, and a remote has lost since. It is the same sibling then,
        whichever of them comes to that; where it is here already, what is here goes to the trash. So it does where the
        same bytes gave way before and the sibling still begins with them. Where it does not, they get another sibling.
        """
        pieces: Mapping[str, list[Piece]] = agreed.pieces if agreed else {}
        tips = {
            name: tip(self._fs, part, pieces.get(name, [])[: found.matched[name].pieces])
            for name, part in mine.items()
        }
        shared = agreed is not None and all(found.matched[name].same for name in mine)
        whose, at = (agreed.head.device, agreed.head.at) if agreed and shared else (device, "")
        sibling, is_kept = self._sibling(record.name, ref, whose, digest(tips), mine, shared=shared)
        new_id = sibling.session_id
        staged = self._placer.stage(record.name, ref, head, found, mine, device)
        moving = Moving(ref.folder, sibling.folder, new_id, ref.session_id, head.project, staged, at)
        self._states.move(record.name, moving)
        if is_kept:
            self._layout.trash(ref, self._now())
        else:
            atomic.move_folder(ref.folder, sibling.folder, fs=self._fs)
            self._relabel(sibling, ref.session_id, at)
        self._placer.enter(staged, ref)
        self._set_times(ref, activity.told(head, self._now()))
        self._agree(record, head, ref, found, None)
        self._states.forget_move(record.name)
        note = f"another device has continued it; what was here is {new_id} now"
        return Outcome(head.session, head.project, SyncStatus.DIVERGED, note, sibling=new_id)

    def _sibling(
        self,
        name: str,
        ref: SessionRef,
        whose: str,
        tips: str,
        mine: Mapping[str, LocalPart],
        *,
        shared: bool,
    ) -> tuple[SessionRef, bool]:
        """Where what is here moves to; True with it if it is there already, from when it gave way before."""
        for number in range(1, SIBLINGS):
            new_id = sibling_id(name, whose, tips if number == 1 else f"{tips} {number}")
            sibling = self._layout.place(ref.project, new_id)
            if not is_there(self._fs, sibling.folder):
                return sibling, False
            if shared or self._begins_with(sibling, mine):
                return sibling, True
        raise AlreadyExists(f"{sibling.folder} exists already", path=sibling.folder, session=ref.session_id)

    def _begins_with(self, sibling: SessionRef, mine: Mapping[str, LocalPart]) -> bool:
        """True if the conversation of a session begins with the one here."""
        there = self._surveyor.survey(sibling) if self._layout.ref_for_path(sibling.path) is not None else {}
        talks = [part for part in mine.values() if self._rule(part.name).policy is Policy.FORK]
        for part in talks:
            other = there.get(part.name)
            if other is None or not begins_with(self._fs, part, other):
                return False
        return bool(talks)

    def _relabel(self, sibling: SessionRef, session: str, at: str) -> None:
        """Make what gave way say what it is now. Nobody has worked on it, so it is no newer than before."""
        active = activity.latest(self._surveyor.survey(sibling).values(), self._now())
        self._layout.set_parent(sibling, session, instant(at) or self._now())
        self._set_times(sibling, active)

    def _active(self, head: Head, found: Comparison, mine: Mapping[str, LocalPart]) -> datetime | None:
        """The time that a session is to have after a pull; None if what is here is newer and stays as it is."""
        active = activity.told(head, self._now())
        if found.all_are(Verdict.SAME, Verdict.THEIRS):
            return active  # also after a pull that was cut off before it came to the times
        if found.all_are(Verdict.SAME, Verdict.OURS):
            return None
        here = activity.latest(mine.values(), self._now())
        return max(filter(None, (active, here)), default=None)

    def _set_times(self, ref: SessionRef, active: datetime | None) -> None:
        if active is not None:
            activity.restore(self._fs, self._layout, self._rules, ref, active)

    def _agree(
        self,
        record: HeadRecord,
        head: Head,
        ref: SessionRef,
        found: Comparison,
        agreed: SyncedState | None,
        held: Mapping[str, Held] | None = None,
    ) -> None:
        """Remember what the other side has, last of all."""
        pieces = named(head, {**(agreed.pieces if agreed else {}), **found.pieces})
        pieces.update({name: theirs.pieces for name, theirs in found.theirs.items()})
        self._states.agree(
            record.name, SyncedState(head, record.etag, pieces, ref.folder, held=dict(held or {}))
        )
