"""The sessions of any layout as an archive keeps them: all of their bytes, and nothing of them is ever changed.

The parts of a session are its files, by their names below the home of its agent. A session in a database has one part,
the document of its rows; a session of very many files has one for itself and one that holds all others, because a head
that named each of them would be too large.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder
from sessionary.errors import Unsupported
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability, Layout, MayMatch
from sessionary.layouts.files import Location, Part, PartKind
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import Cursor, Header, Item, Place, Problem, SessionRef

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

ROWS = "rows.jsonl"
FILES = "files.jsonl"
"""The names of the parts that are made of rows, and of many files (`Files`)."""

MOST_FILES = 200
"""Files of a session that are parts of their own; of more, all but the first are in one part."""

Pack = Callable[[list[tuple[str, str]]], Iterable[bytes]]
"""Returns the document of files, given their names and paths."""

_CREDENTIALS = frozenset({"auth.json", ".credentials.json", "credentials.json", "oauth_creds.json", ".env"})


class ArchiveLayout(SyncLayout):
    """The sessions of a layout, for a push into an archive.

    A session has no parent here: none shares the blocks of another, so that each can be removed.

    Args:
        scratch: the folder for documents that are made of rows and of many files. It may be erased afterwards.
        pack: returns the document of many files.
    """

    name: ClassVar[str] = ""
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    side_files: ClassVar[tuple[str, ...]] = ()

    def __init__(self, inner: Layout, fs: Fs, scratch: str, pack: Pack) -> None:
        self.inner = inner
        self.name = inner.name  # type: ignore[misc]
        self.home = inner.home
        self._fs = fs
        self._scratch = scratch
        self._pack = pack
        self._refs: dict[str, SessionRef] = {}
        self._made: dict[str, str] = {}

    def keep(self, refs: Iterable[SessionRef]) -> list[SessionRef]:
        """Note the sessions that will be pushed. One that vanishes meanwhile is not taken for a deleted one."""
        self._refs = {str(ref.path): ref for ref in refs}
        self._made = {}
        return list(self._refs.values())

    def files(self, ref: SessionRef) -> dict[str, str]:
        """The files of a session by their names below the home; none if it is in a database."""
        if isinstance(self.inner, AgentLayout):
            return self.inner.files(ref) if self.place_of_rows(ref) is None else {}
        root = f"{self.home}/"
        parts = self.inner.parts(ref)
        return {one.path.removeprefix(root).replace(os.sep, "/"): one.path for one in parts}

    def place_of_rows(self, ref: SessionRef) -> str | None:
        """As `AgentLayout.place_of_rows`."""
        return self.inner.place_of_rows(ref) if isinstance(self.inner, AgentLayout) else None

    def has_content(self, ref: SessionRef) -> bool:
        """False for a session of which nothing can be kept: its agent has stored no more than its name."""
        return self.place_of_rows(ref) is not None or bool(self.files(ref))

    def stamp(self, ref: SessionRef) -> bytes:
        """The state of a session: while it is the same, so are its bytes. Empty if a change could go unseen."""
        files = self.files(ref)
        if not files:
            return self.inner.fingerprint(ref)
        state, newest = [], 0
        for name, path in files.items():
            with suppress(OSError):
                found = self._fs.stat(path)
                state.append((name, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
                newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
        now = datetime.now().astimezone().timestamp()
        if newest / 1e9 > now - MTIME_GRACE:
            return b""
        return blake2b(repr(state).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        rows = self._rows(ref)
        if rows is not None:
            yield rows
            return
        borrowed = self.inner.borrowed(ref) if isinstance(self.inner, AgentLayout) else {}
        found = {
            name: path
            for name, path in (self.files(ref) | borrowed).items()
            if os.path.basename(path) not in _CREDENTIALS
        }
        several = len(found) > MOST_FILES
        for name, path in list(found.items())[: 1 if several else None]:
            yield Part(name, path, PartKind.JOURNAL, 0)
        if several:
            path = self._document(ref, FILES, self._pack(list(found.items())[1:]))
            yield Part(FILES, path, PartKind.JOURNAL, 0)

    def _rows(self, ref: SessionRef) -> Part | None:
        if not isinstance(self.inner, AgentLayout) or self.place_of_rows(ref) is None:
            return None
        path = self._made.get(ref.locator)
        if path is None:
            path = self._document(ref, ROWS, (line + b"\n" for line in self.inner.rows(ref)))
        return Part(ROWS, path, PartKind.JOURNAL, 0)

    def _document(self, ref: SessionRef, name: str, lines: Iterable[bytes]) -> str:
        """The file of a document. It is made once for each push, so that all of a push is of one moment."""
        if ref.locator not in self._made:
            make_folder(self._fs, self._scratch)
            digest = sha256(ref.locator.encode("utf-8", "surrogateescape")).hexdigest()[:20]
            path = os.path.join(self._scratch, f"{digest}-{name}")
            atomic.replace(path, lines, fs=self._fs, durable=False)
            self._made[ref.locator] = path
        return self._made[ref.locator]

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        return self._refs.get(str(folder))

    def part_kind(self, name: str) -> PartKind | None:
        return PartKind.JOURNAL if is_safe(name) else None

    def rule(self, name: str) -> Rule:
        return Rule(Policy.FORK)

    def path_of(self, ref: SessionRef, name: str) -> str:
        return os.path.join(self.home, *name.split("/"))

    # -- the rest of the protocol: as the layout itself, or not for an archive

    def faults(self, name: str, data: bytes) -> list[Problem]:
        return []  # damaged bytes are kept as well

    def lock(self, ref: SessionRef) -> AbstractContextManager[None]:
        return nullcontext()

    def locations(self) -> Iterator[Location]:
        return self.inner.locations()

    def discover(self) -> Iterator[SessionRef]:
        return self.inner.discover()

    def short_key(self, ref: SessionRef) -> str:
        return self.inner.short_key(ref)

    def fingerprint(self, ref: SessionRef) -> bytes:
        return self.inner.fingerprint(ref)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        return self.inner.header(ref, fold)

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        return self.inner.read(ref, after, may_match)

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        return self.inner.raw(ref, place)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        return self.inner.check(ref)

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        raise _only_pushed()

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        raise _only_pushed()

    def trash(self, ref: SessionRef, now: datetime) -> None:
        raise _only_pushed()


def is_safe(name: str) -> bool:
    """True if a name with slashes leads to a file below the folder that it is relative to, on every system."""
    parts = name.split("/")
    return not (set(parts) & {"", ".", ".."}) and not any(
        c in name for c in "\0\\:"[: 3 if os.name == "nt" else 1]
    )


def _only_pushed() -> Unsupported:
    return Unsupported("an archive is only pushed to and restored from")
