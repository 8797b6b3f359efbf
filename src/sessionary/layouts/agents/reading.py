"""Base of the read-only layouts whose agents keep each session in one file: discovery, summary, check.

A layout of this kind says where its files lie (`_files`), what their names mean (`_ref`), and how a file is read
(`_items`).
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, ClassVar

from sessionary.disk.fs import OS_FS, Fs, is_file, names_in, not_found, read_bytes, storage_failed
from sessionary.errors import Corrupt, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts.abilities import Retention
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.clock import changed_at, last_change
from sessionary.layouts.files import (
    FROM_COPY,
    Location,
    Part,
    PartKind,
    location_of,
    mended_copy,
    raise_joined,
)
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of
from sessionary.layouts.jsonl import raw_record
from sessionary.model import Cursor, Fact, Header, Item, Place, Problem, SessionRef, Severity

if TYPE_CHECKING:
    from sessionary.layouts.agents.sql_rows import Take
    from sessionary.transcript.fold import Fold

BUSY = 600.0
"""Seconds without a change after which a call without a result is not of a tool at work."""


class AgentLayout:
    """The sessions of one agent below one folder, each in a file of its own. Reads only.

    Args:
        home: the folder of the agent. It need not exist: then there are no sessions.
        fs: the file system.
        now: the time in seconds since 1970.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS})
    side_files: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[tuple[str, ...]] = ("projects/",)
    """Names of which a home has at least one; names of folders end with a slash, `*` stands for any characters."""
    relisted: ClassVar[str | None] = None
    """How the agent treats a session whose file is restored into its home; None if it needs more than the file."""

    after_resume: ClassVar[str | None] = None
    """How the agent loses a session that it continued; None if it keeps it."""

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        self.home = home
        self._fs = fs
        self._now = now
        self._closed: dict[str, StorageFailed] = {}
        """The folders and databases that could not be read since `discover` began, by their paths."""
        self._fingerprints: dict[str, bytes] = {}
        """Of the sessions in databases that `discover` has just found, by locator: one query gives those of all."""

    @classmethod
    @abstractmethod
    def default_home(cls) -> Path:
        """The folder of the agent of this user."""

    @abstractmethod
    def _files(self) -> Iterator[str]:
        """The paths of all files that hold a session."""

    @abstractmethod
    def _ref(self, path: str) -> SessionRef | None:
        """The session in a file; None if its name is not one of a session."""

    @abstractmethod
    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        """The content of a file, in its order; see `Layout.read`."""

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        """What the place of a session, and the documents there, say of it."""
        return iter(())

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, str(self.home))

    def _roots(self) -> Iterable[str]:
        """The folders below which the sessions are."""
        return (str(self.home),)

    def retention(self) -> Retention | None:
        return None

    def discover(self) -> Iterator[SessionRef]:
        self._closed = {}
        yield from self._refs()
        raise_joined(list(self._closed.values()))

    def _refs(self) -> Iterator[SessionRef]:
        """Every session, in no order. What cannot be read is added to `_closed`."""
        return (ref for path in self._files() if (ref := self._ref(path)) is not None)

    def _refs_in(
        self, databases: Iterable[str], sessions_in: Callable[[str], Mapping[str, bytes]]
    ) -> Iterator[SessionRef]:
        """The sessions of databases, then those of files; of several with one id the first counts.

        Args:
            databases: their paths.
            sessions_in: the fingerprints of the sessions of a database, by their ids.
        """
        seen: set[str] = set()
        for path in databases:
            try:
                found = sessions_in(path)
            except NotFound:
                continue  # removed since its name was read
            except (StorageFailed, Corrupt) as error:
                self._closed[path] = StorageFailed(error.message, path=path, hint=error.hint)
                continue
            for name, fingerprint in found.items():
                if name not in seen:
                    seen.add(name)
                    self._fingerprints[f"{path}#{name}"] = fingerprint
                    yield SessionRef(self.name, name, f"{path}#{name}", None)
        for path in self._files():
            ref = self._ref(path)
            if ref is not None and ref.session_id not in seen:
                seen.add(ref.session_id)
                yield ref

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = str(folder.absolute())
        is_here = any(path.startswith(f"{root}/") for root in self._roots())
        return self._ref(path) if is_here and is_file(self._fs, path) else None

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        salt = self._salt(ref)
        return UNKNOWN if salt is None else fingerprint_of(self._fs, ref.locator, self._now(), salt=salt)

    def _salt(self, ref: SessionRef) -> str | None:
        """The state of what a summary needs beside the file of a session; None if a change could go unseen."""
        return ""

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        for item in self._items(ref, after):
            yield _with_remedy(item, ref) if isinstance(item, Problem) else item

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        return raw_record(self._fs, ref, place)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        try:
            found = self._fs.stat(ref.locator)
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        except OSError:
            return Header()  # reported by `read`
        now = self._now()
        changed = changed_at(now, found.st_mtime, found.st_ctime)
        updated, problems = last_change([("the newest message", fold.updated)], changed, now, ref.locator)
        return Header(updated=updated, size=found.st_size, problems=problems)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        return self._problems(ref)

    def _problems(self, ref: SessionRef) -> Iterator[Problem]:
        """The problems of its summary."""
        from sessionary.layouts.summary import summarize  # here: a list that reads nothing does not need it

        idle_since = datetime.fromtimestamp(self._now() - BUSY, UTC)
        yield from summarize(self, ref, idle_since=idle_since).summary.problems

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        try:
            size = self._fs.stat(ref.locator).st_size
        except OSError as error:
            raise storage_failed(error, "read", ref.locator, session=ref.session_id) from error
        yield Part(os.path.basename(ref.locator), ref.locator, PartKind.JOURNAL, size)

    def files(self, ref: SessionRef) -> dict[str, str]:
        """The files of a session, those of its sub-agents below it included, by their names below the home.

        The first one is that of the session itself. Names are separated by slashes.
        """
        return self._below_home([ref.locator])

    def borrowed(self, ref: SessionRef) -> dict[str, str]:
        """Files of other sessions that are needed to read this one, as `files`."""
        return {}

    def base_end(self, path: str) -> int | None:
        """The byte at which a page continues the file before it, at the end of a line; None if that file is missing."""
        return None

    def place_of_rows(self, ref: SessionRef) -> str | None:
        """The locator, relative to a home, that a session in a database has where only its rows are restored.

        None for a session in files.
        """
        return None

    def rows(self, ref: SessionRef, take: Take = list) -> list[bytes]:
        """A session in a database as lines of JSON, value for value (`sql_rows.dump`); `take` chooses among them.

        Raises:
            NotFound: the session is gone.
            StorageFailed, Corrupt: it cannot be read.
            Unsupported: sessions in such a database are not archived.
        """
        raise Unsupported(f"sessions of kind {self.name} in a database are not archived", path=ref.locator)

    def shown(self, data: bytes) -> bytes:
        """Stored bytes as they may be shown: without keys of the agent that open more than the session."""
        return data

    def _below_home(self, paths: Iterable[str]) -> dict[str, str]:
        root = f"{self.home}/"
        return {path.removeprefix(root).replace(os.sep, "/").lstrip("/"): path for path in paths}

    def _paths(self, folder: str, ending: str | tuple[str, ...] = ".jsonl", depth: int = 0) -> list[str]:
        """The paths with this ending in a folder and `depth` levels down in folders without a dot in their names."""
        found: list[str] = []
        for name in self._names(folder):
            if name.endswith(ending):
                found.append(f"{folder}/{name}")
            elif depth and "." not in name:
                found += self._paths(f"{folder}/{name}", ending, depth - 1)
        return found

    def _files_below(self, folder: str) -> Iterator[str]:
        """The regular files below a folder, in the order of their names; links are not followed."""
        for name in self._names(folder):
            path = f"{folder}/{name}"
            try:
                mode = self._fs.lstat(path).st_mode
            except OSError:
                continue
            if S_ISDIR(mode):
                yield from self._files_below(path)
            elif S_ISREG(mode):
                yield path

    def _names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if it is missing or cannot be read: `discover` reports the latter."""
        closed = list[StorageFailed]()
        names = names_in(self._fs, folder, closed)
        self._closed.update((folder, error) for error in closed)
        return sorted(names or ())


def _with_remedy(item: Problem, ref: SessionRef) -> Problem:
    """The problem; one of a line gets the remedy of a file that only its agent may write.

    A lone surrogate is legal JSON, but every provider refuses the text that holds it. A file of another format has no
    line to repair, and its problem says how to convert it.
    """
    if item.code == "lone_surrogate":
        item = item._replace(severity=Severity.stops_resume)
    if item.code == "bad_zstd" and item.byte == 0:
        return item._replace(repair=FROM_COPY)
    is_of_line = item.severity > Severity.note and item.code != "not_text"
    return item._replace(repair=mended_copy(ref)) if is_of_line else item


def setting(fs: Fs, path: str, *keys: str) -> Any:
    """A value in a settings file of an agent (JSON); None if the file or the value is missing or cannot be read."""
    from sessionary.codec import Undecodable, decode  # here, since only `doctor` asks

    try:
        value = decode(read_bytes(fs, path) or b"null")
    except (Undecodable, SessionaryError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
