"""How a session file is changed: one lock, one reading, one replaced file.

The lock lies beside the file (`.<slug>.lock`) and is never deleted; a lock on the file itself would guard nothing once
that is replaced. What is stored is worked out from the bytes that were read under the lock, so that comments and keys
of other people are in it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from sessionary.codec.yaml_edit import edit_yaml, same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, NotFound, SessionaryError, TransitionError
from sessionary.layouts.brainstorm import navigation, trash
from sessionary.layouts.brainstorm.constants import STATUSES, SUFFIX, check_slug, is_id, write_time
from sessionary.layouts.brainstorm.navigation import Session
from sessionary.layouts.brainstorm.reading import brainstorm_of, bytes_at, parse
from sessionary.layouts.brainstorm.session import Brainstorm

T = TypeVar("T")

IN_PROGRESS, COMPLETED, ABANDONED = STATUSES


class SessionFiles:
    """The folder of the sessions, with the locks on them.

    Args:
        folder: where the files lie; it need not exist.
        fs: the file system.
        timeout: seconds to wait for a lock.
    """

    def __init__(self, folder: str, fs: Fs, timeout: float) -> None:
        self.folder = folder
        self.fs = fs
        self._timeout = timeout

    def path(self, slug: str) -> str:
        """The file of a session. Raises InvalidId."""
        return os.path.join(self.folder, f"{check_slug(slug)}{SUFFIX}")

    def bytes_of(self, slug: str) -> bytes:
        """What the file holds.

        Raises:
            NotFound: there is none.
        """
        path = self.path(slug)
        data = bytes_at(self.fs, path)
        if data is None:
            raise NotFound(
                f"there is no brainstorm session {slug}",
                path=path,
                session=slug,
                hint="`sessionary brainstorm list` shows those that there are",
            )
        return data

    @contextmanager
    def held(self, slug: str) -> Iterator[None]:
        """The lock of a session for the length of a ``with`` block; the folder must be there.

        Raises:
            Locked: somebody else held it all the time.
        """
        lock = FileLock(os.path.join(self.folder, f".{check_slug(slug)}.lock"), self.fs)
        try:
            with lock.held(self._timeout):
                yield
        finally:
            lock.close()

    @contextmanager
    def call(self, operation: str, slug: str) -> Iterator[None]:
        """Begin a call: a block whose errors name the operation, the file and the session."""
        try:
            yield
        except SessionaryError as error:
            error.operation = error.operation or operation
            error.session = error.session or slug
            error.path = error.path or os.path.join(self.folder, f"{slug}{SUFFIX}")
            raise

    def change(
        self,
        slug: str,
        operation: str,
        step: Callable[[Session, datetime], T],
        now: datetime | None,
        *,
        ended: Sequence[str] = (),
        works: Callable[[Session], bool] = lambda _: True,
    ) -> tuple[Brainstorm, T]:
        """Do `step` to a session and store it, if that changed anything.

        Args:
            slug: the session.
            operation: its name, for errors.
            step: changes the map below ``session``.
            now: the time.
            ended: the statuses in which a session may be besides ``in_progress``.
            works: whether the change to this session, as it is before, counts as work on it.

        Raises:
            TransitionError: the session is finished.
        """
        now = now or datetime.now(UTC)
        with self.call(operation, slug):
            self.bytes_of(slug)  # a name that is not there shall leave no lock file
            with self.held(slug):
                found, migrated = brainstorm_of(self.bytes_of(slug), self.path(slug), slug)
                if found.status not in (IN_PROGRESS, *ended):
                    raise _finished(slug, found.status)
                worked = works(found.session)
                before = copy.deepcopy(found.document)
                result = step(found.session, now)
                if not same(before, found.document):
                    if worked:
                        navigation.pass_time(found.session, now)
                    found.session["updated"] = write_time(now)
                    self.replace(found, backup=migrated.changed)
                return found, result

    def note(
        self, slug: str, operation: str, step: Callable[[Session], T], now: datetime | None
    ) -> tuple[Brainstorm, T]:
        """A change that does not look at the clock; returns the session then, and the result of `step`."""
        return self.change(slug, operation, lambda session, _: step(session), now)

    def replace(self, session: Brainstorm, *, backup: bool) -> None:
        """Store a document over the bytes from which it was read, if it differs from them. Only under the lock."""
        if session.stored is None:
            data = dump_yaml(session.document)
            atomic.create(session.path, data, fs=self.fs)
            session.stored = data
            return
        data = edit_yaml(session.stored, session.document, path=session.path)
        if data == session.stored:
            return
        if backup:
            trash.keep_backup(self.fs, session.path, session.stored)
        atomic.replace(session.path, (data,), fs=self.fs)
        session.stored = data

    def make_room(self, slug: str, *, new: bool, now: datetime) -> None:
        """See to it that nothing is lost when a new session takes the name. Only under the lock.

        Raises:
            AlreadyExists: a session has it, and `new` was not said.
            Corrupt, SchemaError, Unsupported: what has it cannot be read.
        """
        path = self.path(slug)
        data = bytes_at(self.fs, path)
        if data is None:
            return
        read = parse(data, path, slug)
        session = read.migrated.document.get("session")
        status = session.get("status") if isinstance(session, dict) else None
        if not new:
            raise AlreadyExists(
                f"there is a brainstorm session {slug} already ({status or 'of no status'})",
                details={"status": status},
                hint="go on with it, or begin a new one: it is then moved to the archive",
            )
        name = slug
        if isinstance(session, dict):
            name = session["id"] if is_id(session.get("id"), slug) else slug
        if isinstance(session, dict) and status == IN_PROGRESS:
            session["status"] = ABANDONED
            session["updated"] = write_time(now)
            data = edit_yaml(data, read.migrated.document, path=path)
        trash.archive(self.fs, self.folder, name, data)


def _finished(slug: str, status: str) -> TransitionError:
    """The error about a session that has ended."""
    hint = (
        f"`sessionary brainstorm reopen {slug}` opens it again; `start --new` begins another and archives it"
    )
    if status not in (COMPLETED, ABANDONED):
        hint = f"correct the status in the file by hand: it is one of {', '.join(STATUSES)}"
    return TransitionError(f"session {slug} is {status}", details={"status": status}, hint=hint)
