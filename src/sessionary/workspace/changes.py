"""Operations that change sessions: which sessions they may touch, the trash, and what can be undone.

Only sessions of a layout that grants the capability get here. Their store does the work; this module finds it, and
finds sessions that are in the trash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from sessionary.disk.fs import Fs, is_folder, is_there
from sessionary.errors import AlreadyExists, AmbiguousId, Invalid, NotFound, StorageFailed, Unsupported
from sessionary.layouts import trash
from sessionary.layouts.amplifier.ids import PROJECTS, check_new_id, path_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.changing import Changes, Forked, MovedAside, Reverts, Rewinding, Trashed, Trashes
from sessionary.layouts.changing import Undoable as Change
from sessionary.layouts.files import LINES, raise_joined
from sessionary.model import Problem, SessionRef, Severity
from sessionary.workspace.failures import gathered
from sessionary.workspace.naming import is_project_path
from sessionary.workspace.sessions import Sessions
from sessionary.workspace.stores import IN_PROJECTS

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.layouts.amplifier.repairing import Repaired
    from sessionary.layouts.amplifier.rewinding import Rewound
    from sessionary.layouts.amplifier.store import SessionStore
    from sessionary.layouts.amplifier.transactions import Undone
    from sessionary.layouts.sync import SyncLayout
    from sessionary.sync.conflict_copies import BroughtIn

REPAIR, COPY, REWIND, FORK, TRASH = "repair", "copy", "rewind", "fork", "trash"
RENAME, TAG, STAR, EXPORT, ARCHIVE = "rename", "tag", "star", "export", "archive"
"""The operations on one session, as `operations` names them."""

_CHANGING = frozenset({Capability.REPAIR, Capability.REWIND, Capability.FORK, Capability.TRASH})


class Repair(Struct, frozen=True):
    """The result of a repair, or with `dry_run` of a simulated one.

    Attributes:
        ref: the session.
        dry_run: nothing was written.
        copies: the conflict copies of a file synchroniser, and what was done with each.
        remaining: the problems after it, without notes.
        done: the repair of the session itself; None for a kind whose sessions only have conflict copies merged.
    """

    ref: SessionRef
    dry_run: bool
    copies: list[BroughtIn] = field(default_factory=list)
    remaining: list[Problem] = field(default_factory=list)
    done: Repaired | None = None

    @property
    def changed(self) -> bool:
        """True if something was changed, or with `dry_run` would be."""
        if self.done is not None:
            return self.done.changed
        from sessionary.sync.conflict_copies import LEFT

        return any(one.done != LEFT for one in self.copies)

    @property
    def kept_in(self) -> str | None:
        """Where the replaced data is, for `Workspace.undo`; None if nothing can be undone."""
        return None if self.done is None else self.done.kept_in


class ForkPreview(NamedTuple):
    """The preview of a fork.

    Attributes:
        turn: the last turn that would be copied.
        turns: the turns of the session.
        messages: the messages that would be copied.
        unanswered: the tool calls without a result among them.
        last_user_message, last_assistant_message: the ends of the conversation, shortened; "" if there are none.
    """

    turn: int
    turns: int
    messages: int
    unanswered: int
    last_user_message: str
    last_assistant_message: str


def operations(sessions: Sessions, ref: SessionRef, fs: Fs) -> frozenset[str]:
    """The names of the operations that the layout of a session grants; see `Workspace.operations`."""
    from sessionary.layouts.agents.reading import AgentLayout
    from sessionary.workspace.archive import ARCHIVABLE

    found = {TAG, STAR, EXPORT, RENAME}
    if sessions.archived.place_of(ref) is not None:
        return frozenset(found)
    layout = sessions.layout_of(ref)
    if ref.kind in ARCHIVABLE:
        found.add(ARCHIVE)
    found |= {one.value for one in _CHANGING & layout.capabilities}
    if isinstance(layout, Reverts):
        found -= layout.refused(ref)
    if REPAIR not in found and ref.kind in IN_PROJECTS:
        from sessionary.sync.conflict_copies import find

        own = _sync_layout(sessions, ref)
        found |= {REPAIR} if own is not None and find(own, ref, fs) else set()
    elif REPAIR not in found and isinstance(layout, AgentLayout) and ref.locator.endswith(LINES):
        found.add(COPY)
    return frozenset(found)


def store_of(ref: SessionRef, fs: Fs, operation: str = "change") -> SessionStore:
    """The store of a session.

    Raises:
        NotFound: the session does not exist.
        Unsupported: it is of a layout that changes its sessions itself, and lacks this operation.
    """
    from sessionary.layouts.amplifier.store import store_of as amplifier_store  # reading does not need it

    if ref.kind != AmplifierLayout.name:
        raise Unsupported(
            f"`sessionary {operation}` does not support sessions of kind {ref.kind}: {ref.session_id}",
            session=ref.session_id,
            path=ref.locator,
            hint="`sessionary repair`, `rewind`, `fork`, `trash` and `undo` support them",
        )
    return amplifier_store(fs, ref)


def repair(sessions: Sessions, ref: SessionRef, fs: Fs, *, dry_run: bool, **how: Any) -> Repair:
    """Merge the conflict copies of a session, then repair it; see `Workspace.repair`."""
    from sessionary.sync.conflict_copies import bring_in

    own = sessions.layout_of(ref)
    by_store = sessions.grants(ref, Capability.REPAIR) and not isinstance(own, Changes)
    store = store_of(ref, fs, "repair") if by_store else None
    layout = _sync_layout(sessions, ref)
    copies = bring_in(layout, ref, dry_run=dry_run, fs=fs) if layout is not None else []
    if store is not None:
        done = store.repair(ref.session_id, dry_run=dry_run, **how)
        return Repair(ref, dry_run, copies, done.remaining, done)
    if isinstance(own, Changes):
        before = _damage(own, ref)
        moved = own.repair(ref, dry_run=dry_run)
        return _moved_aside(sessions, ref, copies, before, moved, dry_run=dry_run)
    if not copies:
        sessions.require(ref, Capability.REPAIR, "repair")
    return Repair(ref, dry_run, copies, _damage(sessions.layout_of(ref), ref))


def _damage(layout: Layout, ref: SessionRef) -> list[Problem]:
    """The problems of a session, without notes."""
    return [problem for problem in layout.check(ref) if problem.severity > Severity.note]


def _sync_layout(sessions: Sessions, ref: SessionRef) -> SyncLayout | None:
    return next((one for one in sessions.sync_layouts() if one.name == ref.kind), None)


def _moved_aside(
    sessions: Sessions,
    ref: SessionRef,
    copies: list[BroughtIn],
    before: list[Problem],
    moved: MovedAside,
    *,
    dry_run: bool,
) -> Repair:
    from sessionary.layouts.amplifier.repairing import Repaired
    from sessionary.layouts.amplifier.salvage import Fix

    codes = {problem.line: problem.code for problem in before if problem.line is not None}
    after = before if dry_run else _damage(sessions.layout_of(ref), ref)
    messages = sessions.summary(ref).messages
    done = Repaired(
        ref.session_id,
        bool(moved.lines),
        dry_run,
        problems=before,
        remaining=[one for one in after if not dry_run or one.line not in dict(moved.lines)],
        fixes=[Fix(line, codes.get(line, "not_json"), "quarantined", size) for line, size in moved.lines],
        messages_before=messages,
        messages_after=messages,
        set_aside=sum(size for _, size in moved.lines),
        set_aside_in=moved.path,
    )
    return Repair(ref, dry_run, copies, done.remaining, done)


def rewound(ref: SessionRef, done: Rewinding, *, dry_run: bool) -> Rewound:
    """The result of `Reverts.rewind` as that of `Workspace.rewind`."""
    from sessionary.layouts.amplifier.rewinding import Rewound

    changed = done.to_turn < done.turns
    return Rewound(
        ref.session_id, done.to_turn, done.turns, done.messages_kept, done.messages_dropped,
        changed=changed, dry_run=dry_run, kept_in=ref.locator if changed and not dry_run else None,
    )  # fmt: skip


def forked(parent: SessionRef, made: Forked) -> ForkResult:
    """The result of `Changes.fork` as that of `Workspace.fork`."""
    from sessionary.layouts.amplifier.forks import ForkResult

    return ForkResult(made.session_id, Path(made.path), parent.session_id, made.turn, made.messages)


def preview_fork(ref: SessionRef, fs: Fs, turn: int | None, on_incomplete: str) -> ForkPreview:
    """The preview of a fork; see `Workspace.preview_fork`."""
    from sessionary.layouts.amplifier.forks import get_fork_preview

    seen = get_fork_preview(ref.locator, turn, fs=fs)
    if on_incomplete == "error" and seen["has_orphaned_tools"]:
        raise Invalid(
            f"{seen['orphaned_tool_count']} tool calls without a result at the end of turn {seen['turn']}",
            operation="fork",
            hint="choose another turn, or use --on-incomplete complete",
        )
    return ForkPreview(
        seen["turn"],
        seen["max_turns"],
        seen["message_count"],
        seen["orphaned_tool_count"],
        seen["last_user_message"],
        seen["last_assistant_message"],
    )


def refuse_known(sessions: Sessions, parent: SessionRef, new_id: str, fs: Fs, unique: bool) -> None:
    """Refuse an id that exists in the same folder, or with `unique` in any project.

    Raises:
        AlreadyExists: a session has this id.
    """
    place = os.path.join(os.path.dirname(parent.locator), check_new_id(new_id))
    taken = [place] if is_there(fs, place) else []
    if unique:
        taken += [ref.locator for ref in gathered(sessions.refs())[0] if ref.session_id == new_id]
    if taken:
        message = f"Session '{new_id}' exists already"
        raise AlreadyExists(message, operation="fork", session=new_id, path=taken[0])


# -- trash and undo


def trashed(layouts: Iterable[Trashes], before: datetime | None = None) -> Iterator[Trashed]:
    """The sessions in the trash of all projects, the last one first; see `Workspace.trashed`."""
    closed: list[StorageFailed] = []
    rows = [one for layout in layouts for one in layout.trashed(closed)]
    if before is not None:
        rows = [one for one in rows if one.when is not None and one.when < before]
    yield from sorted(rows, key=lambda row: row.at, reverse=True)
    raise_joined(closed)


def empty_trash(workspace: Sessions, sessions: Iterable[Trashed], fs: Fs) -> list[Trashed]:
    """Delete these sessions of the trash, and forget the ends of their hash chains; see `Workspace.empty_trash`."""
    from sessionary.workspace.chain_heads import forget_heads, in_trash, known_heads

    known, rows = known_heads(fs), list(sessions)
    paths = {os.path.realpath(one.ref.locator) for one in rows} & known.keys()
    trashed = [path for path in paths if in_trash(workspace.trashing(), path, known[path]) is not None]
    gone = [
        one
        for one in rows
        if any(layout.delete_trashed(one.stored) for layout in workspace.trashing(one.ref))
    ]
    if left := [path for path in trashed if in_trash(workspace.trashing(), path, known[path]) is None]:
        forget_heads(fs, left)
    return gone


def undoable(layouts: Iterable[Trashes], ref: SessionRef | None) -> Iterator[Change]:
    """The changes of a session, or of all, that can be undone, the last one first; see `Workspace.undoable`."""
    closed: list[StorageFailed] = []
    found = [one for layout in layouts for one in layout.undoable(ref, closed)]
    found.reverse()  # of one moment the later record comes first
    found.sort(key=lambda one: one.at, reverse=True)
    rows, seen = list[Change](), set[str]()
    for one in found:
        rows.append(one._replace(next=one.ref.locator not in seen))
        seen.add(one.ref.locator)
    if ref is None:
        rows.sort(key=lambda row: (row.at, row.next), reverse=True)
    yield from rows
    raise_joined(closed)


def undo(change: Change, layout: Layout, fs: Fs) -> Undone:
    """Undo a change; see `Workspace.undo`."""
    from sessionary.layouts.amplifier import undo_index
    from sessionary.layouts.amplifier.store import SessionStore
    from sessionary.layouts.amplifier.transactions import Undone

    session_id, since, kept_in = change.ref.session_id, 0, None
    if change.operation == undo_index.TRASH and isinstance(layout, Trashes):
        layout.restore(change.ref)
    elif isinstance(layout, Reverts):
        since, kept_in = layout.undo(change.ref), change.ref.locator
    else:
        store = SessionStore.with_fs(fs, os.path.dirname(change.ref.locator))
        if change.operation == undo_index.CONFLICT:
            store.restore_conflict(session_id)
            kept_in = next(iter(store.last_report.conflicts), None)
        else:
            store.undo(session_id)
            if store.last_report.undone is not None:
                return store.last_report.undone
    return Undone(session_id, change.operation, change.at, since, 0, False, False, kept_in)


def find_changed(sessions: Sessions, name: str, fs: Fs) -> SessionRef:
    """The session that a name means, in its place or in the trash; see `Workspace.find_changed`."""
    if os.path.isabs(name):
        return _at_path(sessions, name, fs)
    gone, failure = gathered(trashed(sessions.trashing()))
    times = {one.ref: one.when for one in reversed(gone)}
    try:
        ref = sessions.find(name, able=Capability.TRASH, trashed=times)
    except NotFound as error:
        raise failure or error from None
    sessions.require(ref, Capability.TRASH, "undo")
    return ref


def _at_path(sessions: Sessions, path: str, fs: Fs) -> SessionRef:
    """The session that is stored at a path, or was before it was moved to the trash."""
    try:
        ref = sessions.ref_for_path(Path(path))
    except NotFound:
        gone, failure = gathered(trashed(sessions.trashing()))
        for one in gone:
            if one.ref.locator == path:
                return one.ref
        root, session_id = os.path.split(path)
        if is_folder(fs, path) or _has_trashed_folder(fs, root, session_id):
            return SessionRef(AmplifierLayout.name, session_id, path)
        raise failure or NotFound(
            f"no session in {path}, nor in the trash beside it",
            path=path,
            hint="`sessionary trash --list`, in the project of the session, shows the sessions in the trash",
        ) from None
    sessions.require(ref, Capability.TRASH, "undo")
    return ref


def _has_trashed_folder(fs: Fs, root: str, name: str) -> bool:
    """True if the trash beside a session has a folder of its name; other kinds keep a file there."""
    found = trash.newest(fs, root, name)
    return found is not None and is_folder(fs, os.path.join(root, trash.TRASH, *found))


def project_to_move(sessions: Sessions, word: str, fs: Fs) -> tuple[str, str | None]:
    """The project that a word names, and its path, if the word is a path; see `Workspace.plan_move`."""
    path = os.path.abspath(os.path.expanduser(word))
    if is_project_path(word):
        for old in dict.fromkeys((path, os.path.realpath(path))):
            if is_folder(fs, f"{sessions.home}/{PROJECTS}/{path_slug(old)}"):
                return path_slug(old), old
    if os.sep not in word and is_folder(fs, f"{sessions.home}/{PROJECTS}/{word}"):
        return word, None
    refs, failure = gathered(sessions.refs())
    try:
        found = sorted(sessions.projects(word, refs))
    except NotFound as error:
        raise failure or error from None
    if len(found) > 1:
        raise AmbiguousId(
            f"{len(found)} projects are named {word}",
            details={"matches": found, "count": len(found)},
            hint="give the old path",
        )
    return found[0], None
