"""WorkStore: the work sessions below one root.

A session is the folder of its session.json; its identity and its parent come from the documents. Every change
of a session happens under the lock of its folder, and a change of parent and child together (start a child,
complete a parent) under that of the parent, so that no child can be added to a parent that has ended.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sessionary.codec import encode_document
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, make_dirs, stat_or_none, storage_errors
from sessionary.errors import AmbiguousId, Invalid, NotFound, SessionaryError, StorageFailed, TransitionError
from sessionary.layouts.maestro import statuses, subwork
from sessionary.layouts.maestro.breadcrumbs import Breadcrumbs, DateRange, gather, write_crumb
from sessionary.layouts.maestro.git_info import git_facts
from sessionary.layouts.maestro.names import BREADCRUMBS, ROOT, SESSION, check_id, new_id
from sessionary.layouts.maestro.paths import closed_folder, find_folder, mailboxes, no_session, walk
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, state_of
from sessionary.layouts.maestro.session_file import (
    Clock,
    checked,
    edit_session,
    locked,
    problem_of,
    read_session,
    save_session,
    zone_in,
)
from sessionary.layouts.maestro.times import session_time, utc_now
from sessionary.layouts.maestro.tree import Node, age_key, forest, latest_key
from sessionary.layouts.session_ids import LATEST, ids_named
from sessionary.model import Problem

MIN_PREFIX = 4
_SHOWN = 20
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


@dataclass(slots=True)
class Scan:
    """All sessions of a store.

    Attributes:
        sessions: the readable ones, in the order of their folders.
        folders: their folders, in the same order.
        problems: what could not be read, what is of another kind, which folders are unreadable.
    """

    sessions: list[WorkSession] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def chosen(
        self,
        session_type: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        entity: str | None = None,
    ) -> list[WorkSession]:
        """Those of a type and a status, created at a time or later, and with a text in their entities."""
        return [
            session
            for session in self.sessions
            if session_type in (None, session.session_type)
            and status in (None, session.status)
            and (since is None or age_key(session)[0] >= since)
            and (entity is None or entity in str(session.related_entity))
        ]

    def children(self, session_id: str, *, only_open: bool = False) -> list[WorkSession]:
        """The sessions with this parent, oldest first; with `only_open` those that are not closed."""
        found = [session for session in self.sessions if session.parent == session_id]
        return sorted((each for each in found if not (only_open and each.is_closed)), key=age_key)


class WorkStore:
    """The work sessions below one root.

    Args:
        root: the folder of the sessions, usually `docs/sessions` of a project. The first write creates it.

    Attributes:
        fs, now, new_id: the file system, the clock and the source of ids; see `with_fs`.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._given = expanded(root)
        self._root = os.path.abspath(self._given)
        self.fs: Fs = OS_FS
        self.now: Clock = utc_now
        self.new_id: Callable[[], str] = new_id
        self._folders: dict[str, str] = {}  # by id, each checked before it is used

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        root: str | os.PathLike[str],
        *,
        now: Clock | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> Self:
        """A store over another file system, clock or source of ids, for tests."""
        store = cls(root)
        store.fs = fs
        store.now = now or store.now
        store.new_id = new_id or store.new_id
        return store

    @property
    def root(self) -> Path:
        """The folder of the sessions, as given."""
        return Path(self._given)

    # -- sessions

    def create(
        self,
        session_type: str,
        parent: str | None = None,
        *,
        related_entity: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        status: str | None = None,
        purpose: str | None = None,
        context: Mapping[str, Any] | None = None,
        allow_orphan: bool = False,
        change_parent: Callable[[WorkSession], object] | None = None,
    ) -> WorkSession:
        """Start a session, inside of the folder of its parent if it has one; the parent's list of children is extended.

        Args:
            session_type: a value of `SessionType`, or another word.
            parent: the parent: its id, the beginning of its id, or ``latest``.
            related_entity: what the work is about.
            metadata: other data; `cookie`, and in a git work tree `git_branch` and `git_root`, are added.
            status: by default ``running``.
            purpose: a line for users.
            context: ``{"kind": …, "ref": …}``.
            allow_orphan: start it even if no session has the id `parent`.
            change_parent: changes the parent in the same write; if it raises, nothing is created.

        Durability: when this returns, the session survives a power cut. If interrupted, the session is
        missing or complete; its parent may not list it yet, and nothing depends on that.

        Raises:
            NotFound: the parent does not exist.
            AmbiguousId: several match.
            Invalid: the type, the status or the id of the parent is not valid.
            SchemaError: a field has the wrong type.
            Locked: another process holds the parent.
            StorageFailed: the disk refused.
        """
        if type(session_type) is not str or not session_type.strip():
            raise Invalid("a work session needs a type", hint="for example 'work_task'")
        status = statuses.check_status(status or "running")
        folder = None
        if parent is not None:
            parent, folder = self._meant(parent, allow_orphan)
        session = WorkSession(
            check_id(self.new_id()),
            session_type,
            parent_session_id=parent,
            parent_wsession_id=parent,
            status=status,
            state=state_of(status),
            related_entity=dict(related_entity or {}),
            purpose=purpose,
            context=dict(context or {}),
            metadata=git_facts(self.fs, self._root) | dict(metadata or {}),
        )
        session.metadata.setdefault("cookie", session.session_id)
        if folder is not None:
            self._create_below(session, folder, change_parent)
        elif parent is None:
            self._place(session, self._root)
        elif allow_orphan:
            self._place(session, f"{self._root}/{parent}")
        else:
            raise no_session(self._root, parent)
        return session

    def load(self, session_id: str) -> WorkSession:
        """Return the session with exactly this id.

        Raises:
            NotFound: it does not exist.
            Corrupt: its document cannot be parsed.
            SchemaError: its document is not a work session.
        """
        return read_session(self._path(session_id), fs=self.fs)

    def save(self, session: WorkSession) -> bool:
        """Store the changes made to a session since it was loaded; see `session_file.save_session`.

        Returns False if there are none.

        Durability: when this returns, the document survives a power cut. If interrupted, it is the old one or
        the new one.

        Raises:
            NotFound: the session was removed.
            TransitionError: it has ended since, or is to be completed while sessions below it are open.
            Locked: another process holds it.
            StorageFailed: the disk refused.
        """
        path = self._path(session.session_id)
        return save_session(session, path, fs=self.fs, now=self.now, completing=self.refuse_open_children)

    def update(self, session_id: str, change: Callable[[WorkSession], object]) -> WorkSession:
        """Change the stored session under its lock: `change` gets the current session. Returns the changed one.

        Durability: as `save`. Raises as `load` and `save`, also for the changed session, and what `change`
        raises; then nothing is written.
        """
        path = self._path(session_id)

        def checked(session: WorkSession) -> None:
            before = session.status
            change(session)
            if session.status == "completed" != before:
                self.refuse_open_children(session_id)

        with locked(self.fs, os.path.dirname(path)):
            return edit_session(path, checked, fs=self.fs, now=self.now)

    def find(self, name: str) -> WorkSession:
        """Return the session with this id or prefix, or for ``latest`` the one that changed last.

        A whole id wins; a beginning needs four characters or more. Case does not matter, unless two ids
        differ by case alone.

        Raises:
            NotFound: none matches.
            AmbiguousId: several match; `details["matches"]` lists them.
        """
        if name == LATEST:
            found = self.latest()
            if found is None:
                raise NotFound(
                    f"no work sessions in {self._root}",
                    path=self._root,
                    hint="start one with `sessionary work start`, or name another folder with `--root`",
                )
            return found
        return self.load(self.resolve(name))

    def resolve(self, name: str) -> str:
        """Return the id that `name` means; see `find`. Reads names only, except for ``latest``."""
        if name == LATEST:
            return self.find(name).session_id
        check_id(name)
        closed: list[StorageFailed] = []
        ids = {place.name for place in walk(self.fs, self._root, closed) if place.is_session}
        matches = sorted(ids_named(name, ids))
        if len(name) < MIN_PREFIX:
            matches = [each for each in matches if len(each) == len(name)]
        if len(matches) > 1:
            raise AmbiguousId(
                f"{len(matches)} work sessions begin with {name}",
                session=name,
                details={"matches": matches[:_SHOWN], "count": len(matches)},
                hint=f"give more of the id: {', '.join(matches[:3])}, …",
            )
        if not matches and closed:
            raise closed[0]
        if not matches:
            raise no_session(self._root, name)
        return matches[0]

    def folder(self, session_id: str) -> str:
        """The folder of the session with exactly this id.

        Raises:
            NotFound: it does not exist.
        """
        return os.path.dirname(self._path(session_id))

    def list_sessions(self, session_type: str | None = None, status: str | None = None) -> list[WorkSession]:
        """Every readable session, optionally of one type or status. `scan` also reports the others."""
        return self.scan().chosen(session_type, status)

    def scan(self) -> Scan:
        """Read every session.json below the root. A damaged one hides none of the others."""
        found = Scan()
        closed: list[StorageFailed] = []
        for place in walk(self.fs, self._root, closed):
            if not place.is_session:
                continue
            path = f"{place.folder}/{SESSION}"
            try:
                found.sessions.append(read_session(path, fs=self.fs))
            except NotFound:
                continue
            except SessionaryError as error:
                found.problems.append(problem_of(path, error))
                continue
            found.folders.append(place.folder)
        found.problems += map(closed_folder, closed)
        return found

    def tree(self) -> list[Node]:
        """All sessions as trees, by their parent ids; orphans and cycles are at the top, with a flag."""
        return forest(self.scan().sessions)

    def latest(self) -> WorkSession | None:
        """The session that changed last, open or closed; None if there is none. Breadcrumbs change no session."""
        return max(self.scan().sessions, key=latest_key, default=None)

    def children(self, session_id: str, *, only_open: bool = False) -> list[WorkSession]:
        """The sessions with this parent, oldest first; with `only_open` those that are not closed."""
        return self.scan().children(session_id, only_open=only_open)

    def depth(self, session_id: str) -> int:
        """The number of ancestors of a session; a missing parent ends the count."""
        seen: set[str] = set()
        parent = self.load(session_id).parent
        while parent is not None and parent not in seen:
            seen.add(parent)
            try:
                parent = self.load(parent).parent
            except SessionaryError:
                return len(seen) - 1
        return len(seen)

    # -- statuses

    def pause(self, session_id: str) -> WorkSession:
        """Pause a running session. Durability and errors as `update`; TransitionError if it has ended."""
        return self._move(session_id, "paused")

    def resume(self, session_id: str) -> WorkSession:
        """Resume a paused or interrupted session. Durability and errors as `pause`."""
        return self._move(session_id, "running")

    def interrupt(self, session_id: str, reason: str | None = None) -> WorkSession:
        """Interrupt a session; the reason goes to its metadata. Durability and errors as `pause`."""
        reasons = {"interruption_reason": reason} if reason else {}
        return self._move(session_id, "interrupted", reasons)

    def fail(self, session_id: str) -> WorkSession:
        """End a session as failed. Durability and errors as `pause`."""
        return self._move(session_id, "failed")

    def complete(self, session_id: str) -> WorkSession:
        """End a session as completed.

        Durability: as `update`.

        Raises:
            TransitionError: it has ended with another status, or children of it are open; `details["open"]` lists them.
        """
        return self._move(session_id, "completed")

    def close(self, session_id: str) -> WorkSession:
        """As `complete`, but refused for a closed session. Durability and errors as there."""

        def change(session: WorkSession) -> None:
            if session.is_closed:
                raise TransitionError(
                    f"session {session_id} is already closed ({session.status})",
                    session=session_id,
                    hint="resume it first" if session.status == "interrupted" else None,
                )
            statuses.move(session, "completed", now=self.now())

        return self.update(session_id, change)

    def refuse_open_children(self, session_id: str) -> None:
        """Raise TransitionError if a child of the session is open; `details["open"]` lists them."""
        still_open = sorted(child.session_id for child in self.children(session_id, only_open=True))
        if still_open:
            raise statuses.open_below(session_id, still_open)

    # -- sub-work

    def start_subwork(
        self,
        parent: str,
        purpose: str,
        context: Mapping[str, Any] | None = None,
        *,
        pause_parent: bool = True,
    ) -> WorkSession:
        """Start sub-work of a session in a session of its own, of the type `work_subwork`; pause the parent.

        The entities, and by default the context, are those of the parent.

        Durability: as `create`. If interrupted, the child may exist with its parent still running.

        Raises:
            NotFound: the parent does not exist.
            TransitionError: the parent is closed.
        """
        return subwork.start(self, parent, purpose, context, pause_parent=pause_parent)

    def close_subwork(
        self, child: str, summary: str, status: str = "ok", *, resume_parent: bool = True
    ) -> subwork.Closed:
        """Close sub-work, hand its result to the parent, and resume the parent if no other child is open.

        Args:
            child: the id of the session.
            summary: the result, for the parent.
            status: ``ok`` completes the session, ``failed`` fails it, ``partial`` interrupts it.
            resume_parent: False leaves the parent paused.

        Durability: when this returns, everything survives a power cut. If interrupted, call it again:
        completed steps are recognised by the id of the result, and the parent gets it once.

        Raises:
            NotFound: the session does not exist. A missing parent is reported in the result, not raised.
            TransitionError: the session has ended with another status, or with ``ok`` has open children.
        """
        return subwork.close(self, child, summary, status, resume_parent=resume_parent)

    def resume_parent(self, child: str) -> WorkSession:
        """Resume the paused parent of a session; return the parent. Durability as `update`.

        Raises:
            NotFound: the session or its parent does not exist.
            Invalid: the session has no parent.
            TransitionError: a child of the parent is still open, or the parent has ended.
        """
        return subwork.resume_parent(self, child)

    # -- breadcrumbs

    def write_breadcrumb(
        self, breadcrumb: Breadcrumb, session_id: str, *, allow_unknown: bool = False
    ) -> str:
        """Write a breadcrumb to a session; return the path of its file. See `breadcrumbs.write_crumb`.

        Args:
            breadcrumb: the breadcrumb.
            session_id: the session: its id, the beginning of its id, or ``latest``; see `find`.
            allow_unknown: accept the id of a session whose document is still to come. The breadcrumb is then
            stored as for a session without parent.

        Durability: when this returns, the breadcrumb survives a power cut.

        Raises:
            NotFound: the session does not exist.
            AmbiguousId: several match.
            Invalid: depth or time of the breadcrumb is not valid.
            SchemaError: a field has the wrong type, so that no reader would accept it.
            StorageFailed: the disk refused.
        """
        session_id, folder = self._meant(session_id, allow_unknown)
        if folder is not None:
            write = functools.partial(
                write_crumb, crumb=breadcrumb, fs=self.fs, zone=zone_in(self.fs, folder)
            )
            try:
                return write(folder, in_existing=True)
            except StorageFailed as error:
                if error.errno not in _GONE or error.outcome == "unknown":
                    raise
            folder = self._find(session_id)  # it was moved between lookup and write
            if folder is not None:
                return write(folder, in_existing=True)
        if not allow_unknown:
            raise no_session(self._root, session_id)
        return write_crumb(f"{self._root}/{session_id}", breadcrumb, fs=self.fs)

    def _meant(self, name: str, allow_unknown: bool) -> tuple[str, str | None]:
        """Return id and folder of the session that a writer names; with `allow_unknown` also an id without a session.

        A message written under a name without a session would be in no list, and its loss would not be noticed.
        """
        folder = None if name == LATEST else self._find(name)
        if folder is not None:
            return name, folder
        try:
            session_id = self.resolve(name)
        except NotFound:
            if name == LATEST or not allow_unknown:
                raise
            return name, None
        return session_id, self._find(session_id)

    def post(self, breadcrumb: Breadcrumb, cookie: str) -> str:
        """Write a breadcrumb for a sender with the cookie, which is the whole id of an open session.

        Durability and errors as `write_breadcrumb`, and:

        Raises:
            TransitionError: the session is closed.
        """
        statuses.refuse_closed(self.load(cookie), "breadcrumbs")
        return self.write_breadcrumb(breadcrumb, cookie)

    def breadcrumbs(
        self, session_id: str, *, depth: int | None = None, date_range: DateRange | None = None
    ) -> Breadcrumbs:
        """The breadcrumbs of a session, from its own folder and from that of the original program.

        Args:
            session_id: the session, as for `write_breadcrumb`. A missing one has none, unless breadcrumbs are
            stored under its name.
            depth: only those of this depth, as stated in the breadcrumb.
            date_range: only those from the first to the second instant, to the second; either may be None.
        """
        session_id, folder = self._meant(session_id, allow_unknown=True)
        boxes = mailboxes(self.fs, self._root, session_id, folder)
        zone = UTC if folder is None else zone_in(self.fs, folder)
        return gather(self.fs, boxes, depth=depth, date_range=date_range, zone=zone)

    def list_breadcrumbs(
        self, session_id: str, depth: int | None = None, date_range: DateRange | None = None
    ) -> list[Breadcrumb]:
        """As `breadcrumbs`, without the problems."""
        return self.breadcrumbs(session_id, depth=depth, date_range=date_range).breadcrumbs

    # -- parts

    def _path(self, session_id: str) -> str:
        folder = self._find(session_id)
        if folder is None:
            raise no_session(self._root, session_id)
        return f"{folder}/{SESSION}"

    def _find(self, session_id: str) -> str | None:
        """The folder of a session; see `find_folder`. A nested session is searched for once."""
        folder = self._folders.get(session_id)
        if folder is None or stat_or_none(self.fs, f"{folder}/{SESSION}") is None:
            self._folders.pop(session_id, None)
            folder = find_folder(self.fs, self._root, session_id)
            if folder is not None:
                self._folders[session_id] = folder
        return folder

    def _create_below(
        self, session: WorkSession, folder: str, change_parent: Callable[[WorkSession], object] | None
    ) -> None:
        """Create a session below the one in a folder, under its lock: no child is added to a parent that has ended."""
        path = f"{folder}/{SESSION}"

        def change(above: WorkSession) -> None:
            above.children_wsession_ids.append(session.session_id)
            if change_parent is not None:
                change_parent(above)

        with locked(self.fs, folder):
            above = read_session(path, fs=self.fs)
            change(above)  # a refusal comes before anything is created
            self._place(session, folder, above.created)
            edit_session(path, change, fs=self.fs, now=self.now)

    def _place(self, session: WorkSession, parent_folder: str, created: str = "") -> None:
        """Create the folder of a new session, then the document, which makes it a session.

        Its times have the form of `created`, that of its parent, so that a reader of one can read the other.
        """
        moment = session_time(self.now(), created)
        session.created = session.created_at = session.modified = moment
        session.closed_at = moment if session.is_closed else None
        folder = f"{parent_folder}/{session.session_id}"
        project = os.path.dirname(self._root)
        if self._root.replace(os.sep, "/").endswith(f"/{ROOT}"):
            project = os.path.dirname(project)
        session.breadcrumbs_dir = os.path.relpath(f"{folder}/{BREADCRUMBS}", project).replace(os.sep, "/")
        data = encode_document(checked(session))  # refused before the folder is created
        with storage_errors("create", folder):
            make_dirs(self.fs, f"{folder}/{BREADCRUMBS}")
        atomic.create(f"{folder}/{SESSION}", data, fs=self.fs)
        session.baseline = data

    def _move(self, session_id: str, status: str, metadata: Mapping[str, Any] | None = None) -> WorkSession:
        def change(session: WorkSession) -> None:
            statuses.move(session, status, now=self.now())
            session.metadata.update(metadata or {})

        return self.update(session_id, change)
