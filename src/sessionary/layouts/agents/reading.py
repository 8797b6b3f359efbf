"""What the read-only layouts of agents share that keep each session in one file: discovery, summary, check.

A layout of this kind says where its files lie (`_files`), what their names mean (`_ref`), and how a file is read
(`_items`): messages, problems, and facts about the session that no message holds.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import ClassVar, NamedTuple, overload

from sessionary.disk.fs import OS_FS, Fs, not_found, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.base import Capability, Part, PartKind
from sessionary.layouts.clock import changed_at, is_ahead
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.model import Cursor, Entry, Message, Problem, SessionRef, Severity, Summary, health


class Fact(NamedTuple):
    """Something that a file says of its session: ``title``, ``parent``, ``cwd`` or ``branch``.

    Of several of one name the one of the highest rank counts, of equal ranks the last.
    """

    name: str
    value: str
    rank: int = 0


Item = Message | Problem | Fact


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

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        self.home = home
        self._fs = fs
        self._now = now

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
    def _items(self, ref: SessionRef) -> Iterator[Item]:
        """What a file holds, in its order. Raises NotFound and StorageFailed."""

    def discover(self) -> Iterator[SessionRef]:
        return (ref for path in self._files() if (ref := self._ref(path)) is not None)

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = str(folder.absolute())
        if not path.startswith(f"{self.home}/"):
            return None
        try:
            is_file = S_ISREG(self._fs.stat(path).st_mode)
        except OSError:
            return None
        return self._ref(path) if is_file else None

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        return fingerprint_of(self._fs, ref.locator, self._now())

    def read(self, ref: SessionRef) -> Iterator[Message | Problem]:
        return (_reported(item) for item in self._items(ref) if not isinstance(item, Fact))

    def entries(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Entry]:
        """No records: what is stored is of another shape. See `read`."""
        return iter(())

    def summary(self, ref: SessionRef) -> Summary:
        from sessionary.transcript.fold import (  # here, since a list that reads nothing needs neither
            Fold,
            short_title,
        )

        fold, facts, problems = Fold(), dict[str, Fact](), list[Problem]()
        try:
            found = self._fs.stat(ref.locator)
            size, changed = found.st_size, changed_at(self._now(), found.st_mtime, found.st_ctime)
            for item in self._items(ref):
                if isinstance(item, Message):
                    fold.take(item)
                elif isinstance(item, Problem):
                    problems.append(_reported(item))
                elif item.name not in facts or item.rank >= facts[item.name].rank:
                    facts[item.name] = item
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        except OSError as error:
            failed = error if isinstance(error, StorageFailed) else storage_failed(error, "read", ref.locator)
            problems, size, changed = [_unreadable(ref, failed)], 0, 0.0
        problems += fold.unanswered()
        said = {name: fact.value for name, fact in facts.items()}
        updated = None if is_ahead(fold.updated, self._now()) else fold.updated
        return Summary(
            ref,
            self.name,
            short_title(said.get("title")) or fold.title,
            said.get("parent"),
            fold.messages,
            fold.turns,
            None,
            fold.created,
            updated or (datetime.fromtimestamp(changed, UTC) if changed else None),
            size,
            health(problems),
            problems,
            cwd=said.get("cwd"),
            branch=said.get("branch"),
            usage=fold.usage,
        )

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        yield from self.summary(ref).problems

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        try:
            size = self._fs.stat(ref.locator).st_size
        except OSError as error:
            raise storage_failed(error, "read", ref.locator, session=ref.session_id) from error
        yield Part(os.path.basename(ref.locator), ref.locator, PartKind.JOURNAL, size)

    def _names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if it is missing or cannot be looked into."""
        try:
            return sorted(self._fs.listdir(folder))
        except OSError:
            return []


@overload
def _reported(item: Problem) -> Problem: ...
@overload
def _reported(item: Message) -> Message: ...
def _reported(item: Message | Problem) -> Message | Problem:
    """The item; a problem of a line gets the remedy of a file that only its agent may write."""
    if isinstance(item, Problem) and item.severity > Severity.note:
        return item._replace(repair="none here: only the agent writes this file; all other records are read")
    return item


def _unreadable(ref: SessionRef, error: StorageFailed) -> Problem:
    return Problem(
        "unreadable_file", Severity.stops_resume, ref.locator, None, None, error.message, error.hint
    )
