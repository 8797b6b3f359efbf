"""Pull of single sessions: new, continued, rewound and trashed ones, and conflicts.

Fetched data is compared with the local files first, without the lock; under the lock the files are checked again. If
they have changed meanwhile, the pull starts over.

A new session appears at once, by the rename of a staged folder. So does the remote version when the local one gives
way: the local folder is *moved* to the sibling's name, not copied, so that no message exists twice, wherever it is
interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from sessionary.codec.times import parse_iso
from sessionary.disk import atomic
from sessionary.disk.fs import is_there, stat_or_none
from sessionary.disk.spooled_file import Spool
from sessionary.errors import AlreadyExists, Corrupt, Locked, RemoteError
from sessionary.layouts.sync import Policy
from sessionary.model import SessionRef
from sessionary.sync import activity, rewinds
from sessionary.sync.apply import Writer
from sessionary.sync.blocks import Piece
from sessionary.sync.context import Context, Step
from sessionary.sync.diff import Comparison, Verdict, fetch_rest, moved
from sessionary.sync.download import MISSING
from sessionary.sync.guard import THEIRS, Guard, Judged
from sessionary.sync.heads import SHORT, Head
from sessionary.sync.install import Placer, refuse_strangers
from sessionary.sync.local_files import LocalPart, Stamp, begins_with, tip
from sessionary.sync.remote import HeadRecord, is_unreadable
from sessionary.sync.report import (
    FOR_USER,
    Outcome,
    SyncStatus,
    Undo,
    holds_of,
    outcome_of,
    with_holds,
    with_undo,
)
from sessionary.sync.state import Held, Hole, Moving, SyncedState, digest, sibling_id
from sessionary.sync.upload_plan import named

TRIES = 3

LATE: Final = timedelta(minutes=5)
"""Time after which a block that is not found is missing: far more than any store needs to show what was put."""

SIBLINGS = 100
"""Number of siblings for the same bytes of a session, if other sessions have taken their names."""


class _Case(NamedTuple):
    """A session to pull: its head, its place here, and its agreed state."""

    record: HeadRecord
    head: Head
    ref: SessionRef
    agreed: SyncedState | None


def open_here(why: str | bool) -> str:
    """Return the note for a session that is open, and newer on the remote."""
    return f"newer on the remote; here {why if isinstance(why, str) else 'it is open in a running agent'}"


class Puller(Step):
    """Pulls single sessions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._guard = Guard(context)
        self._placer = Placer(context)

    def pull(self, record: HeadRecord, head: Head, ref: SessionRef, *, keep: str | None = None) -> Outcome:
        """Bring a session to the remote version, without losing what only this side has.

        With `keep` the user has decided which version is kept, where only the user may, or where one is damaged.

        Raises:
            Invalid: the head names a file that no such session can have.
            Locked: the session keeps changing.
            RemoteError, Corrupt, StorageFailed: nothing was changed, or the next pull does the rest.
            Unsupported: the session is outside the store.
        """
        refuse_strangers(self._layout, head)
        self._links.refuse(ref)
        one = _Case(record, head, ref, self._states.agreed(record.name))
        if self._layout.ref_for_path(ref.path) is None:
            if head.deleted:
                self._agree(one, Comparison())
                return outcome_of(head, SyncStatus.IN_STEP, "trashed elsewhere")
            return self._place(one._replace(agreed=None))
        for _ in range(TRIES):
            with self._states.spool() as spool:
                outcome = self._merge(one, keep, spool)
            if outcome is not None:
                return self._surveyor.with_left_out(ref, outcome, head)
        raise Locked(f"{ref.locator} keeps changing", operation="pull", session=ref.session_id)

    def settle_move(self, name: str) -> None:
        """Finish an interrupted move of a session that was giving way."""
        moving = self._states.moves.get(name)
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
            self._states.forget(name)  # the local files are then compared with the head byte by byte
        self._placer.clear(moving.staged)
        self._states.moves.forget(name)

    def explained(self, record: HeadRecord, head: Head, outcome: Outcome) -> Outcome:
        """Return the outcome of a pull, with the device that can repair missing or damaged data.

        A head is swapped after its blocks were put. A lagging replica may show it before them, and a garbage
        collection may put a block back seconds later. So a block may only be late. If this machine did not find it
        minutes ago either, under the same head, it is missing.

        Args:
            record: the pulled head, as stored.
        """
        error, now = outcome.error, self._now()
        if isinstance(error, Corrupt) or (isinstance(error, RemoteError) and is_unreadable(error)):
            error.hint = _healer(head)
            return outcome
        if not isinstance(error, RemoteError) or MISSING not in error.details:
            self._states.holes.forget(record.name)
            return outcome
        block = str(error.details[MISSING])
        first = self._states.hole(record.name, Hole(record.etag, block, now))
        if now - first < LATE:
            return outcome
        missing = RemoteError(
            f"block {block} is missing on the remote, as it was at {first.isoformat(timespec='seconds')}",
            operation="pull",
            session=head.session,
            details={**error.details, "device": head.device, "since": first.isoformat()},
            hint=_healer(head),
        )
        return replace(outcome, note=str(missing), error=missing)

    # -- a session that is not here

    def _place(self, one: _Case) -> Outcome:
        with self._states.spool() as spool:
            found, _ = self._compare(one.ref, {}, None, one.head, spool)
            staged = self._placer.stage(one.record.name, one.ref, one.head, found, {}, self._device)
        self._placer.enter(staged, one.ref)
        self._set_times(one.ref, activity.last_active(one.head, self._now()))
        activity.forget_cleanups(self._fs, [one.ref])
        self._agree(one, found)
        return outcome_of(one.head, SyncStatus.PULLED)

    # -- a session that is here

    def _merge(self, one: _Case, keep: str | None, spool: Spool) -> Outcome | None:
        """Compare, fetch, lock the session, check again, write. None if it has changed meanwhile."""
        record, head, ref, agreed = one
        mine = self._surveyor.survey(ref)
        found, closed = self._compare(ref, mine, agreed, head, spool)
        judged = self._guard.judge(mine, agreed, head, found, keep)
        diverged = not head.deleted and found.is_diverged(self._rule)
        # Files outside the store are neither replaced nor relabelled.
        judged.waits |= moved(head, agreed, self._rules, closed) or (diverged and bool(closed))
        writer = Writer(self._context, ref, head, keep)
        if diverged and judged.waits:
            beside = writer.lay_beside(found, mine, judged.refused)
            return self._wait(one, judged, outcome_of(head, SyncStatus.DIVERGED), beside)
        if diverged:
            fetch_rest(self._remote, found, agreed, head, self._rules)
        with self._layout.lock(ref):
            if _stamps(self._surveyor.survey(ref)) != _stamps(mine):
                return None
            if keep is None and (why := self._in_use(ref)):  # opened while the remote was being read
                return outcome_of(head, SyncStatus.HELD_BACK, open_here(why))
            if head.deleted:
                return self._follow_deletion(one, found)
            if diverged:
                return self._give_way(one, found, mine)
            if keep == THEIRS:
                writer.give_up_ours(found, judged.decided)
            if for_user := found.for_user(self._rule):
                writer.lay_beside(found, mine, for_user)
                return outcome_of(head, SyncStatus.HELD_BACK, FOR_USER)
            writer.prove(found, mine)
            self._settle_owners(ref, head.owners)
            undo, taken = rewinds.by_pull(self._layout, head, found, mine, agreed)
            taken = taken or rewinds.met(self._layout, found, mine, agreed)
            noted = writer.write(found, mine, agreed)
            taken = taken or self._come_back(record.name, ref, found)
            beside = writer.lay_beside(found, mine, judged.refused)
            self._set_times(ref, self._active(head, found, mine))
        changed = {Verdict.THEIRS, Verdict.MERGE} & set(found.verdicts.values()) or noted
        unchanged = SyncStatus.AHEAD if taken else SyncStatus.IN_STEP  # sessions in step are not printed
        outcome = outcome_of(head, SyncStatus.PULLED if changed else unchanged, noted)
        held = {**judged.held, **writer.held}
        if judged.waits:
            return self._wait(one, judged, outcome, beside)
        self._agree(one, found, held)
        self._remember_taken(record.name, undo, taken, agreed)
        holds = holds_of(self._layout, ref, head, self._device, held, judged.refused, beside.get)
        return with_holds(with_undo(outcome, undo, taken), holds)

    def _wait(self, one: _Case, judged: Judged, outcome: Outcome, beside: Mapping[str, str]) -> Outcome:
        """Record a damaged version that keeps both sides from agreeing, so that a status need not search for it."""
        agreed, held, refused = one.agreed, judged.held, judged.refused
        if agreed is not None and (held, refused) != (agreed.held, agreed.refused):
            noted = msgspec.structs.replace(agreed, held=held, refused=refused)
            self._states.agree(one.record.name, noted)
        holds = holds_of(self._layout, one.ref, one.head, self._device, held, refused, beside.get)
        return with_holds(outcome, holds)

    def _come_back(self, name: str, ref: SessionRef, found: Comparison) -> str:
        before = self._states.taken.get(name)
        return rewinds.come_back(self._fs, found, self._surveyor.survey(ref), before) if before else ""

    def _remember_taken(self, name: str, undo: Undo | None, words: str, agreed: SyncedState | None) -> None:
        if undo is not None and agreed is not None:
            self._states.taken.put(name, {undo.file: agreed.pieces[undo.file]})
        elif words:
            self._states.taken.forget(name)

    def _follow_deletion(self, one: _Case, found: Comparison) -> Outcome:
        """Trash a session that was trashed elsewhere, unless it has changes of its own, or the user must decide."""
        for_user = any(self._rule(name).policy is Policy.MANUAL for name in found.verdicts)
        ours = for_user or not found.all_are(Verdict.SAME, Verdict.THEIRS)
        if not ours:
            self._layout.trash(one.ref, self._now())
        self._agree(one, found)
        if ours:
            why = "but only the user may remove it" if for_user else "but changed here"
            return outcome_of(one.head, SyncStatus.HELD_BACK, f"trashed elsewhere, {why}: it is kept")
        return outcome_of(one.head, SyncStatus.TRASHED, "trashed elsewhere")

    def _give_way(self, one: _Case, found: Comparison, mine: Mapping[str, LocalPart]) -> Outcome:
        """Move the local version to a sibling, and the remote version into its place. The caller holds the session.

        The local version may be what several devices had agreed, and a remote has lost since. All of them then choose
        the same sibling; if it exists here already, the local version goes to the trash. The same applies if the same
        bytes gave way before and the sibling still starts with them; otherwise they get another sibling.
        """
        record, head, ref, agreed = one
        pieces: Mapping[str, list[Piece]] = agreed.pieces if agreed else {}
        tips = {
            name: tip(self._fs, part, pieces.get(name, [])[: found.matched[name].pieces])
            for name, part in mine.items()
        }
        shared = agreed is not None and all(found.matched[name].same for name in mine)
        whose, at = (agreed.head.device, agreed.head.at) if agreed and shared else (self._device, "")
        sibling, is_kept = self._sibling(one, whose, digest(tips), mine, shared=shared)
        new_id = sibling.session_id
        staged = self._placer.stage(record.name, ref, head, found, mine, self._device)
        moving = Moving(ref.locator, sibling.locator, new_id, ref.session_id, head.project, staged, at)
        self._states.moves.put(record.name, moving)
        if is_kept:
            self._layout.trash(ref, self._now())
        else:
            atomic.move_folder(ref.locator, sibling.locator, fs=self._fs)
            self._relabel(sibling, ref.session_id, at)
        self._placer.enter(staged, ref)
        self._set_times(ref, activity.last_active(head, self._now()))
        self._agree(one._replace(agreed=None), found)
        self._states.moves.forget(record.name)
        note = f"another device has continued it; the local version is {new_id} now"
        return replace(outcome_of(head, SyncStatus.DIVERGED, note), sibling=new_id)

    def _sibling(
        self, one: _Case, whose: str, tips: str, mine: Mapping[str, LocalPart], *, shared: bool
    ) -> tuple[SessionRef, bool]:
        """Return the sibling for the local version, and True if it exists from an earlier time."""
        name, ref = one.record.name, one.ref
        sibling = ref
        for number in range(1, SIBLINGS):
            new_id = sibling_id(name, whose, tips if number == 1 else f"{tips} {number}")
            sibling = self._layout.place(ref.project, new_id)
            if not is_there(self._fs, sibling.locator):
                return sibling, False
            if shared or self._begins_with(sibling, mine):
                return sibling, True
        raise AlreadyExists(f"{sibling.locator} exists already", path=sibling.locator, session=ref.session_id)

    def _begins_with(self, sibling: SessionRef, mine: Mapping[str, LocalPart]) -> bool:
        """True if the conversation of the sibling starts with the local one."""
        there = self._surveyor.survey(sibling) if self._layout.ref_for_path(sibling.path) is not None else {}
        talks = [part for part in mine.values() if self._rule(part.name).policy is Policy.FORK]
        for part in talks:
            other = there.get(part.name)
            if other is None or not begins_with(self._fs, part, other):
                return False
        return bool(talks)

    def _relabel(self, sibling: SessionRef, session: str, at: str) -> None:
        """Set the parent of a session that gave way. Its time of activity stays."""
        active = activity.latest(self._surveyor.survey(sibling).values(), self._now())
        self._layout.set_parent(sibling, session, parse_iso(at) or self._now())
        self._set_times(sibling, active)

    def _active(self, head: Head, found: Comparison, mine: Mapping[str, LocalPart]) -> datetime | None:
        """Return the time of activity for a pulled session; None if local files are newer."""
        active = activity.last_active(head, self._now())
        if found.all_are(Verdict.SAME, Verdict.THEIRS):
            return active  # also after a pull that was interrupted before it set the times
        if found.all_are(Verdict.SAME, Verdict.OURS):
            return None
        here = activity.latest(mine.values(), self._now())
        return max(filter(None, (active, here)), default=None)

    def _set_times(self, ref: SessionRef, active: datetime | None) -> None:
        if active is not None:
            activity.restore(self._fs, self._layout, self._rules, self._links, ref, active)

    def _agree(self, one: _Case, found: Comparison, held: Mapping[str, Held] | None = None) -> None:
        """Store the agreed state, as the last step."""
        record, head, ref, agreed = one
        pieces = named(head, {**(agreed.pieces if agreed else {}), **found.pieces})
        pieces.update({name: theirs.pieces for name, theirs in found.theirs.items()})
        after = SyncedState(head, record.etag, pieces, ref.locator, held=dict(held or {}))
        self._states.agree(record.name, after)


def _stamps(parts: Mapping[str, LocalPart]) -> dict[str, Stamp]:
    return {name: part.stamp for name, part in parts.items()}


def _healer(head: Head) -> str:
    return (
        f"nothing here was changed; the device that heads call {head.device[:SHORT]} pushed this session last, at "
        f"{head.at}: run `sessionary sync check --repair` there, or on another device with the session"
    )
