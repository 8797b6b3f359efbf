"""Change a session file: one lock, one read, one replaced file.

The lock is beside the file (`.<slug>.lock`) and is never deleted; a lock on the file itself would protect
nothing after that is replaced. The new content is computed from the bytes that were read under the lock, so
that comments and foreign keys are kept.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_edit import edit_yaml
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
    """The folder of the sessions, with their locks.

    Args:
        folder: the folder of the files; it need not exist.
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
        """The bytes of a session file. Raises NotFound if it does not exist."""
        path = self.path(slug)
        data = bytes_at(self.fs, path)
        if data is None:
            raise NotFound(
                f"no brainstorm session {slug}",
                path=path,
                session=slug,
                hint="`sessionary brainstorm list` lists all",
            )
        return data

    def held(self, slug: str) -> AbstractContextManager[None]:
        """Hold the lock of a session for a ``with`` block; the folder must exist."""
        return FileLock(os.path.join(self.folder, f".{check_slug(slug)}.lock"), self.fs).once(self._timeout)

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

    def read(self, slug: str) -> Brainstorm:
        """The session of that name. Raises as `brainstorm_of`, or NotFound."""
        return brainstorm_of(self.bytes_of(slug), self.path(slug), slug)

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
        """Apply `step` to a session and store it, if anything changed.

        Args:
            step: changes the map below ``session``.
            ended: statuses that are allowed besides ``in_progress``.
            works: whether the change counts as work on the session as it was before.

        Raises:
            TransitionError: the session is finished.
        """
        now = now or datetime.now(UTC)
        with self.call(operation, slug):
            self.bytes_of(slug)  # a missing session must not leave a lock file
            with self.held(slug):
                found = self.read(slug)
                if found.status not in (IN_PROGRESS, *ended):
                    raise has_ended(slug, found.status)
                worked = works(found.session)
                before = copy.deepcopy(found.document)
                result = step(found.session, now)
                if not same(before, found.document):
                    if worked:
                        navigation.pass_time(found.session, now)
                    found.session["updated"] = write_time(now)
                    self.store(found)
                return found, result

    def store(self, session: Brainstorm) -> None:
        """Store a document over the bytes from which it was read, if it differs from them. The lock must be held."""
        if session.stored is None:
            data = dump_yaml(session.document)
            atomic.create(session.path, data, fs=self.fs)
        else:
            data = edit_yaml(session.stored, session.document, path=session.path)
            if data == session.stored:
                return
            if session.is_migrated:
                trash.keep_backup(self.fs, session.path, session.stored)
            atomic.replace(session.path, (data,), fs=self.fs)
        session.stored, session.is_migrated = data, False

    def make_room(self, slug: str, data: bytes, *, new: bool, now: datetime) -> None:
        """Store a file under the name of a session; one that has the name is archived. The lock must be held.

        Raises:
            AlreadyExists: a session has the name, and `new` is False.
            Corrupt, SchemaError, Unsupported: the existing file cannot be read.
        """
        path = self.path(slug)
        present = bytes_at(self.fs, path)
        if present is None:
            atomic.create(path, data, fs=self.fs)
            return
        document = parse(present, path, slug).migrated.document
        session = document.get("session")
        status = session.get("status") if isinstance(session, dict) else None
        if not new:
            raise AlreadyExists(
                f"brainstorm session {slug} already exists ({status or 'without status'})",
                details={"status": status},
                hint="resume it, or start a new one, which archives it",
            )
        name = slug
        if isinstance(session, dict):
            name = session["id"] if is_id(session.get("id"), slug) else slug
            if status == IN_PROGRESS:
                session["status"] = ABANDONED
                session["updated"] = write_time(now)
                present = edit_yaml(present, document, path=path)
        trash.archive(self.fs, self.folder, name, present)
        atomic.replace(path, (data,), fs=self.fs)


def has_ended(slug: str, status: str) -> TransitionError:
    """The error for a session that has ended."""
    hint = f"`sessionary brainstorm reopen {slug}` reopens it; `start --new` archives it and starts another"
    if status not in (COMPLETED, ABANDONED):
        hint = f"correct the status in the file by hand; use one of {', '.join(STATUSES)}"
    return TransitionError(f"session {slug} is {status}", details={"status": status}, hint=hint)
