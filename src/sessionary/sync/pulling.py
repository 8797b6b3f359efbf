"""What a pull changes here: new sessions, longer ones, ones that were rewound or trashed elsewhere, and conflicts.

The network comes first, the lock second: what is fetched is compared with the files as they were, and under the lock
they are looked at again. If they have changed meanwhile, it begins anew.

A new session appears whole, by the rename of a folder that was filled beside it. So does the other side's version when
what is here gives way: the folder here is *moved* to the sibling's name, not copied, so that no word of it is ever
there twice, whenever it is cut off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, look, make_dirs, storage_failed
from sessionary.errors import Invalid, Locked
from sessionary.layouts.base import PartKind, Recipient
from sessionary.model import SessionRef
from sessionary.sync.blocks import Piece
from sessionary.sync.comparing import Comparison, Verdict, compare, fetch_rest
from sessionary.sync.heads import Head
from sessionary.sync.incoming import Theirs
from sessionary.sync.remote import HeadRecord, Remote
from sessionary.sync.report import Outcome, Standing, outcome_of
from sessionary.sync.rules import Rules
from sessionary.sync.state import Agreed, Moving, States, digest, sibling_id
from sessionary.sync.survey import LocalPart, opened, survey, tip

TRIES = 3
STAGED = ".pull-"


class Puller:
    """Brings single sessions here."""

    def __init__(
        self,
        fs: Fs,
        layout: Recipient,
        remote: Remote,
        states: States,
        rules: Rules,
        now: Callable[[], datetime],
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._remote = remote
        self._states = states
        self._rules = rules
        self._now = now

    def pull(self, record: HeadRecord, head: Head, ref: SessionRef, device: str) -> Outcome:
        """Make a session here what the other side has, without losing what only this side has.

        Raises:
            Invalid: a file of the head can be no file of such a session.
            Locked: somebody writes to the session all the time.
            RemoteError, Corrupt, StorageFailed: nothing was changed, or the next pull does the rest.
        """
        self._refuse_strangers(head)
        agreed = self._states.agreed(record.name)
        if self._layout.at(ref.path) is None:
            if head.deleted:
                self._agree(record, head, ref, Comparison(), agreed)
                return outcome_of(head, Standing.IN_STEP, "trashed elsewhere")
            return self._place(record, head, ref)
        for _ in range(TRIES):
            outcome = self._merge(record, head, ref, agreed, device)
            if outcome is not None:
                return outcome
        raise Locked(f"{ref.folder} changes all the time", operation="pull", session=ref.session_id)

    def settle_move(self, name: str) -> None:
        """Finish what a pull was doing that was cut off while a session gave way."""
        moving = self._states.moving(name)
        if moving is None:
            return
        sibling = self._layout.at(Path(moving.sibling))
        if sibling is not None:
            with self._layout.held(sibling):
                self._layout.relabel(sibling, moving.session, self._now())
            if look(self._fs, moving.folder) is None and look(self._fs, moving.staged) is not None:
                atomic.move_folder(moving.staged, moving.folder, fs=self._fs)
            self._states.forget(name)  # what is here now is compared with the head byte by byte
        self._clear(moving.staged)
        self._states.forget_move(name)

    def _refuse_strangers(self, head: Head) -> None:
        for part in head.parts:
            segments = part.name.split("/")
            hidden = any(not segment or segment.startswith(".") for segment in segments)
            known = self._layout.part_kind(part.name)
            if hidden or "\\" in part.name or "\0" in part.name or known is None:
                raise Invalid(
                    f"the head of {head.session} names a file {part.name!r}, which no such session has",
                    session=head.session,
                    operation="pull",
                )

    # -- a session that is not here

    def _place(self, record: HeadRecord, head: Head, ref: SessionRef) -> Outcome:
        found = compare(self._fs, self._remote, {}, None, head, self._rules)
        staged = self._stage(record.name, ref, found, {})
        atomic.move_folder(staged, ref.folder, fs=self._fs)
        self._agree(record, head, ref, found, None)
        return outcome_of(head, Standing.PULLED)

    def _stage(self, name: str, ref: SessionRef, found: Comparison, mine: Mapping[str, LocalPart]) -> str:
        """The other side's version of a session in a hidden folder beside its place. Durable on return."""
        staged = os.path.join(os.path.dirname(ref.folder), f"{STAGED}{name[:16]}")
        self._clear(staged)
        for part, theirs in found.theirs.items():
            path = os.path.join(staged, part)
            self._make_dirs(os.path.dirname(path))
            with opened(self._fs, mine.get(part)) as file:
                atomic.replace(path, theirs.all(file), fs=self._fs)
        self._make_dirs(staged)
        return staged

    def _clear(self, staged: str) -> None:
        if look(self._fs, staged) is not None:
            atomic.erase_tree(staged, fs=self._fs)

    def _make_dirs(self, folder: str) -> None:
        try:
            make_dirs(self._fs, folder)
        except OSError as error:
            raise storage_failed(error, "make", folder) from error

    # -- a session that is here

    def _merge(
        self, record: HeadRecord, head: Head, ref: SessionRef, agreed: Agreed | None, device: str
    ) -> Outcome | None:
        """Compare, fetch, take the session, look again, write. None if it has changed in between."""
        mine = survey(self._fs, self._layout, ref, self._rules)
        found = compare(self._fs, self._remote, mine, agreed, head, self._rules)
        kinds = {name: part.kind for name, part in mine.items()}
        diverged = not head.deleted and found.is_diverged(kinds)
        if diverged:
            fetch_rest(self._remote, found, agreed, head, self._rules)
        with self._layout.held(ref):
            again = survey(self._fs, self._layout, ref, self._rules)
            if {part.name: part.stamp for part in again.values()} != {
                part.name: part.stamp for part in mine.values()
            }:
                return None
            if head.deleted:
                return self._follow_deletion(record, head, ref, found, agreed)
            if diverged:
                return self._give_way(record, head, ref, found, agreed, mine, device)
            noted = self._write(ref, found, mine)
        self._agree(record, head, ref, found, agreed)
        changed = Verdict.THEIRS in found.verdicts.values() or noted
        return outcome_of(head, Standing.PULLED if changed else Standing.IN_STEP, noted)

    def _write(self, ref: SessionRef, found: Comparison, mine: Mapping[str, LocalPart]) -> str:
        """Put the other side's files in place, journals before documents; returns what there is to tell."""
        notes = []
        for name in sorted(found.verdicts, key=lambda name: (_is_document(mine.get(name)), name)):
            verdict = found.verdicts[name]
            path = os.path.join(ref.folder, name)
            if verdict is Verdict.CONFLICT:
                notes.append(self._keep_both(path, found, mine, name))
            elif verdict is Verdict.THEIRS:
                self._put(path, found.theirs[name], mine.get(name))
        return "; ".join(notes)

    def _put(self, path: str, theirs: Theirs, here: LocalPart | None) -> None:
        """Replace one file, or make it. What it had and the new one has not is kept."""
        backup = self._layout.backup_of(theirs.part.name)
        kept = None if backup is None else os.path.join(os.path.dirname(path), os.path.basename(backup))
        if here is not None and here.torn:
            self._keep_torn(path, theirs, here)
        self._make_dirs(os.path.dirname(path))
        with opened(self._fs, here) as file:
            atomic.replace(path, theirs.all(file), fs=self._fs, backup=kept)

    def _keep_torn(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        """Store the bytes behind the last line aside, unless the other side goes on with just these."""
        with opened(self._fs, here) as file:
            assert file is not None
            torn = file.read(here.size, here.torn)
            at = theirs.start
            for raw in theirs.rest(file):
                if at <= here.size < at + len(raw) and raw[here.size - at :].startswith(torn):
                    return
                at += len(raw)
        atomic.save_aside(path, "torn", torn, fs=self._fs, now=self._now())

    def _keep_both(self, path: str, found: Comparison, mine: Mapping[str, LocalPart], name: str) -> str:
        """Two versions of what is beside the conversation: that of who went on with it stands, the other is kept."""
        theirs = found.theirs[name]
        ours_lead = Verdict.OURS in {
            verdict for part, verdict in found.verdicts.items() if _is_conversation(mine.get(part))
        }
        with opened(self._fs, mine[name]) as file:
            if ours_lead:
                aside = atomic.free_name(path, "conflict", fs=self._fs, now=self._now())
                atomic.replace(aside, theirs.all(file), fs=self._fs)
            else:
                aside = atomic.keep_aside(path, "conflict", fs=self._fs, now=self._now())
                atomic.replace(path, theirs.all(file), fs=self._fs)
        return f"{name} was changed on two devices; the other version is {os.path.basename(aside)}"

    def _follow_deletion(
        self, record: HeadRecord, head: Head, ref: SessionRef, found: Comparison, agreed: Agreed | None
    ) -> Outcome:
        """Trash here what was trashed elsewhere, unless something here was never seen there."""
        ours = not found.all_are(Verdict.SAME, Verdict.THEIRS)
        if not ours:
            self._layout.discard(ref, self._now())
        self._agree(record, head, ref, found, agreed)
        if ours:
            return outcome_of(head, Standing.HELD_BACK, "trashed elsewhere, but changed here: it stays")
        return outcome_of(head, Standing.TRASHED, "trashed elsewhere")

    def _give_way(
        self,
        record: HeadRecord,
        head: Head,
        ref: SessionRef,
        found: Comparison,
        agreed: Agreed | None,
        mine: Mapping[str, LocalPart],
        device: str,
    ) -> Outcome:
        """Move what is here to a sibling, and the other side's version to its place. Hold the session."""
        pieces: Mapping[str, list[Piece]] = agreed.pieces if agreed else {}
        tips = {
            name: tip(self._fs, part, pieces.get(name, [])[: found.matched[name].pieces])
            for name, part in mine.items()
        }
        new_id = sibling_id(record.name, device, digest(tips))
        sibling = self._layout.place(ref.project, new_id)
        staged = self._stage(record.name, ref, found, mine)
        moving = Moving(ref.folder, sibling.folder, new_id, ref.session_id, head.project, staged)
        self._states.move(record.name, moving)
        atomic.move_folder(ref.folder, sibling.folder, fs=self._fs)
        self._layout.relabel(sibling, ref.session_id, self._now())
        atomic.move_folder(staged, ref.folder, fs=self._fs)
        self._agree(record, head, ref, found, None)
        self._states.forget_move(record.name)
        note = f"another device has continued it; what was here is {new_id} now"
        return Outcome(head.session, head.project, Standing.DIVERGED, note, sibling=new_id)

    def _agree(
        self, record: HeadRecord, head: Head, ref: SessionRef, found: Comparison, agreed: Agreed | None
    ) -> None:
        """Remember what the other side has, last of all."""
        pieces = {**(agreed.pieces if agreed else {}), **found.pieces}
        pieces.update({name: theirs.pieces for name, theirs in found.theirs.items()})
        self._states.agree(record.name, Agreed(head, record.etag, pieces, ref.folder))


def _is_conversation(part: LocalPart | None) -> bool:
    return part is not None and part.kind is PartKind.JOURNAL


def _is_document(part: LocalPart | None) -> bool:
    return part is not None and part.kind is PartKind.DOCUMENT
