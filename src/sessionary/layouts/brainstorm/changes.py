"""The operations on one brainstorm that other kinds have too: rewind, trash, and the undo of both.

A rewind is a step back, as `BrainstormStore.back` makes it: the turns are the iterations, and those behind the cursor
stay in the history. Its undo goes forward to the last one. The trash is that of `BrainstormStore.cleanup`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, stat_or_none
from sessionary.errors import Corrupt, Invalid, InvalidId, NotFound, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.brainstorm import navigation
from sessionary.layouts.brainstorm.constants import FOLDER, SUFFIX
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, has_ended
from sessionary.layouts.brainstorm.reading import row_at
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.trash import BACKUP
from sessionary.layouts.changing import Rewinding, Trashed, Undoable
from sessionary.layouts.trash import remove_empty
from sessionary.layouts.trash import trashed as everything_trashed
from sessionary.model import SessionRef


def _store(fs: Fs, ref: SessionRef) -> BrainstormStore:
    """The store of a session, wherever its project is."""
    return BrainstormStore.with_fs(fs, os.path.dirname(ref.locator)[: -len(FOLDER)] or os.sep)


def _loaded(fs: Fs, ref: SessionRef) -> Brainstorm | None:
    """A session; None if it cannot be read."""
    try:
        return _store(fs, ref).load(ref.session_id, store_migration=False)
    except (InvalidId, Corrupt, SchemaError, Unsupported, StorageFailed):
        return None


def refused(fs: Fs, ref: SessionRef) -> frozenset[str]:
    """As `Reverts.refused`: one in progress cannot be trashed, and only such a one can go back."""
    found = _loaded(fs, ref)
    refused = set[str]()
    if found is None or found.status != IN_PROGRESS or found.iteration < 2:
        refused.add("rewind")
    if found is None or found.status not in (COMPLETED, ABANDONED):
        refused.add("trash")
    return frozenset(refused)


def rewind(fs: Fs, ref: SessionRef, turn: int, *, dry_run: bool) -> Rewinding:
    """As `Reverts.rewind`; the messages of later iterations stay.

    Raises:
        Invalid: the turn does not exist, or is more than five iterations back.
        NotFound: the history lacks that iteration.
        TransitionError: the session has ended.
    """
    store = _store(fs, ref)
    session = store.load(ref.session_id, store_migration=False)
    turns = session.iteration
    if session.status != IN_PROGRESS:
        raise has_ended(ref.session_id, session.status)
    if not 0 < turn <= turns:
        raise Invalid(
            f"{ref.session_id} has no iteration {turn} to go back to",
            operation="rewind",
            session=ref.session_id,
            path=ref.locator,
            hint=f"give 1 to {turns}",
        )
    if turn < turns and dry_run:
        navigation.go_back(session.session, turns - turn, datetime.now(UTC))
    elif turn < turns:
        store.back(ref.session_id, turns - turn)
    row = row_at(fs, ref.locator, ref.session_id)
    return Rewinding(turn, turns, 0 if row is None else row.messages, 0)


def undo(fs: Fs, ref: SessionRef) -> int:
    """As `Reverts.undo`: go forward to the last iteration. Nothing can have been added since."""
    _store(fs, ref).forward(ref.session_id)
    return 0


def steps_back(fs: Fs, ref: SessionRef) -> Iterator[Undoable]:
    """The rewind of a session that is back at an earlier iteration, as `Reverts.undoable` yields it."""
    try:
        found = _loaded(fs, ref)
    except NotFound:
        return
    if found is None or found.status != IN_PROGRESS or found.iteration == found.tip or found.updated is None:
        return
    facts = {"to_turn": found.iteration}
    yield Undoable(ref, "rewind", atomic.timestamp_name(found.updated), 0, ref.locator, facts)


def move_to_trash(fs: Fs, ref: SessionRef, now: datetime) -> str:
    """As `Reverts.move_to_trash`. Raises as `BrainstormStore.trash`."""
    return _store(fs, ref).trash(ref.session_id, now=now)


def restore(fs: Fs, ref: SessionRef) -> None:
    """As `Reverts.restore`."""
    _store(fs, ref).restore(ref.session_id)


def trashed(
    fs: Fs, folder: str, ref_of: Callable[[str], SessionRef], closed: list[StorageFailed]
) -> Iterator[Trashed]:
    """As `Reverts.trashed`, of the sessions in a folder; `ref_of` gives the session in a file."""
    for row in everything_trashed(fs, folder, closed):
        if row.session_id.endswith(SUFFIX):
            ref = ref_of(os.path.join(folder, row.session_id))
            stored = SessionRef(ref.kind, ref.session_id, row.path, ref.project)
            found = (stat_or_none(fs, path) for path in (row.path, f"{row.path}{BACKUP}"))
            yield Trashed(ref, stored, row.at, sum(one.st_size for one in found if one is not None))


def delete_trashed(fs: Fs, path: str) -> bool:
    """As `Reverts.delete_trashed`. The backup goes first: without the session no list would show it."""
    is_there = stat_or_none(fs, path) is not None
    for one in (f"{path}{BACKUP}", path):
        if stat_or_none(fs, one) is not None:
            atomic.erase_tree(one, fs=fs)
    remove_empty(fs, os.path.dirname(path))
    return is_there
