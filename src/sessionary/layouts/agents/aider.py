"""The chats of Aider: `.aider.chat.history.md` in the folder of a project. Read-only.

One file holds all chats of a folder, each from its heading on. The locator of a chat is the path of the file, `#` and
the id, a hash of the name of the folder and the time in the heading.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import MsgspecError, Struct, convert, msgpack
from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs, is_file, not_found, read_at
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability
from sessionary.layouts.clock import changed_at, last_change
from sessionary.layouts.files import Location, Part
from sessionary.layouts.fingerprints import UNKNOWN
from sessionary.layouts.jsonl import WINDOW, mark_before, opened
from sessionary.model import Cursor, Fact, Header, Item, Message, Place, Reset, SessionRef

if TYPE_CHECKING:
    from sessionary.layouts.agents.aider_page import State
    from sessionary.transcript.fold import Fold

NAME = ".aider.chat.history.md"
VARIABLE = "AIDER_CHAT_HISTORY_FILE"
_HEADING = re.compile(
    rb"(?<=\n)# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?\n(?=[ \t]*\r?(?:\n|\Z))"
)
_LONGEST = 256
"""Bytes in which a heading and the empty line behind it lie."""


class Chat(NamedTuple):
    """The place of a chat in its file.

    Attributes:
        begin, end: the bytes after its heading, up to the next one.
        line: the number of the first line after its heading, from 1.
        started: when it was started, in local time, as the heading states it; None for what is before the first one.
    """

    id: str
    begin: int
    end: int
    line: int
    started: str | None


class _Cursor(Struct, array_like=True):
    """Content of a cursor: the chat, the offset to continue at, a checksum of the text before it, the state there."""

    begin: int
    offset: int
    mark: int
    state: Any


class AiderLayout(AgentLayout):
    """The chats of Aider in a folder and in the folders below it, or in folders that are given."""

    name: ClassVar[str] = "aider"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = (NAME, f"*/{NAME}", f"*/*/{NAME}")

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(home, fs, now=now)
        self._folders: Callable[[], Iterable[str]] | None = None
        self._known: dict[str, tuple[tuple[int, ...], dict[str, Chat]]] = {}

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.path.expanduser("~"))

    def look_in(self, folders: Callable[[], Iterable[str]]) -> None:
        """Look in the home itself, in these folders, and at the file that the environment names."""
        self._folders = folders

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["aider", "--restore-chat-history", "--chat-history-file", _path_of(ref)]

    # -- where chats are

    def _files(self) -> Iterator[str]:
        seen = set[tuple[int, int]]()
        for path in self._candidates():
            try:
                found = self._fs.stat(path)
            except (OSError, ValueError):
                continue
            if (found.st_dev, found.st_ino) not in seen and S_ISREG(found.st_mode):
                seen.add((found.st_dev, found.st_ino))
                yield path

    def _candidates(self) -> Iterator[str]:
        home = str(self.home)
        yield f"{home}/{NAME}"
        if self._folders is None:
            for folder in self._below(home):
                yield f"{folder}/{NAME}"
                yield from (f"{inner}/{NAME}" for inner in self._below(folder))
            return
        if named := os.environ.get(VARIABLE):
            yield os.path.abspath(named)
        for folder in self._folders():
            if os.path.isabs(folder):
                yield f"{folder.rstrip('/')}/{NAME}"

    def _below(self, folder: str) -> Iterator[str]:
        return (f"{folder}/{name}" for name in self._names(folder) if not name.startswith("."))

    def locations(self) -> Iterator[Location]:
        found = [Location(path, "found") for path in self._files()]
        yield from found or [Location(f"{self.home}/{NAME}", "missing")]

    def _refs(self) -> Iterator[SessionRef]:
        for path in self._files():
            try:
                yield from (self._of(path, name) for name in self._chats(path))
            except NotFound:
                continue  # removed since its name was read
            except StorageFailed as error:
                self._closed[path] = error

    def _of(self, path: str, name: str) -> SessionRef:
        return SessionRef(self.name, name, f"{path}#{name}", os.path.dirname(path))

    def _ref(self, path: str) -> SessionRef | None:
        """The last chat in a file."""
        names = list(self._chats(path))
        return self._of(path, names[-1]) if names else None

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = name = str(folder.absolute())
        if os.path.basename(path) != NAME:
            path, _, name = path.rpartition("#")
        if os.path.basename(path) != NAME or not is_file(self._fs, path):
            return None
        return self._ref(path) if name == path else self._of(path, name)

    def _chats(self, path: str) -> dict[str, Chat]:
        """The chats in a file by id, in their order. The file is read again only if it changed."""
        with opened(self._fs, path) as (fd, _):
            found = self._fs.fstat(fd)
            state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            known = self._known.get(path)
            if known is None or known[0] != state:
                known = state, {chat.id: chat for chat in chats_in(self._fs, fd, path)}
                self._known[path] = known
            return known[1]

    def _chat(self, ref: SessionRef) -> tuple[str, Chat]:
        """The file of a chat, and its place in it. Raises NotFound if the file is gone, or the chat in it."""
        path = _path_of(ref)
        chat = self._chats(path).get(ref.session_id)
        if chat is None:
            raise not_found(path, f"Session '{ref.session_id}' not found")
        return path, chat

    # -- what belongs to a session

    def fingerprint(self, ref: SessionRef) -> bytes:
        """A digest of the chat itself: the times of the file change with each chat in it."""
        try:
            path, chat = self._chat(ref)
            with opened(self._fs, path) as (fd, _):
                is_last = chat.end >= self._fs.fstat(fd).st_size
                digest = blake2b(repr((chat, is_last)).encode(), digest_size=16)
                for at in range(chat.begin, chat.end, WINDOW):
                    digest.update(read_at(self._fs, fd, min(WINDOW, chat.end - at), at))
        except (NotFound, StorageFailed):
            return UNKNOWN
        return digest.digest()

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        path = _path_of(ref)
        try:
            found = self._fs.stat(path)
            _, chat = self._chat(ref)
        except FileNotFoundError:
            raise not_found(path, f"Session '{ref.session_id}' not found") from None
        except (OSError, StorageFailed):
            return Header()  # reported by `read`
        now = self._now()
        updated, problems = last_change([("the newest message", fold.updated)], 0.0, now, path)
        if chat.end >= found.st_size:  # only the last chat of a file can grow
            changed = changed_at(now, found.st_mtime, found.st_ctime)
            updated = datetime.fromtimestamp(changed, UTC) if changed else updated
        return Header(updated=updated, size=chat.end - chat.begin, problems=problems)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """The file, which holds the other chats of its folder too."""
        return super().parts(SessionRef(ref.kind, ref.session_id, _path_of(ref)))

    def files(self, ref: SessionRef) -> dict[str, str]:
        """As `AgentLayout.files`: the file, which holds the other chats of its folder too."""
        path = _path_of(ref)
        return {f"{_label(path)}/{NAME}": path}

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        """The lines of the message at a place."""
        path, chat = self._chat(ref)
        begin = place.byte or chat.begin
        starts = (item.place.byte or 0 for item in self.read(ref) if isinstance(item, Message))
        end = min((one for one in starts if one > begin), default=chat.end)
        with opened(self._fs, path) as (fd, _):
            return read_at(self._fs, fd, end - begin, begin)

    # -- reading

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        yield Fact("cwd", ref.project or os.path.dirname(ref.locator.rpartition("#")[0]))

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        from sessionary.layouts.agents.aider_page import Continued, State

        path, chat = self._chat(ref)
        with opened(self._fs, path) as (fd, _):
            begin = None if after is None else self._begin(fd, chat, after)
            if begin is not None:
                try:
                    yield from self._from(fd, path, chat, begin.offset, begin.state)
                    return
                except Continued:
                    pass  # nothing was yielded
            if after is not None:
                yield Reset()
            yield from self.stated(ref)
            yield from self._from(fd, path, chat, chat.begin, State(line=chat.line))

    def _from(self, fd: int, path: str, chat: Chat, begin: int, state: State) -> Iterator[Item]:
        """The messages of a chat from an offset on."""
        from sessionary.layouts.agents.aider_page import items_of, started_at

        started, is_first = started_at(chat.started), not state.block
        for item in items_of(_lines(self._fs, fd, begin, chat.end), path, state, started):
            opens = is_first and isinstance(item, Message)
            yield replace(item, time=started) if opens and isinstance(item, Message) else item
            is_first = is_first and not opens
        if read_at(self._fs, fd, 1, chat.end - 1) == b"\n":
            mark = mark_before(self._fs, fd, chat.end)
            yield Cursor(msgpack.encode(_Cursor(chat.begin, chat.end, mark, state)))

    def _begin(self, fd: int, chat: Chat, after: Cursor) -> _Cursor | None:
        """The offset to continue at; None if the chat must be read from its start."""
        from sessionary.layouts.agents.aider_page import State

        try:
            found = msgpack.decode(after.state, type=_Cursor)
            state = convert(found.state, State)
        except MsgspecError:
            return None
        same = found.begin == chat.begin and chat.begin <= found.offset <= chat.end
        return (
            replace(found, state=state)
            if same and mark_before(self._fs, fd, found.offset) == found.mark
            else None
        )


def _label(path: str) -> str:
    """The name of the folder of a history file, without dots in front."""
    return os.path.basename(os.path.dirname(path)).lstrip(".") or "chats"


def _path_of(ref: SessionRef) -> str:
    return ref.locator.removesuffix(f"#{ref.session_id}")


def chats_in(fs: Fs, fd: int, path: str) -> Iterator[Chat]:
    """The chats in an open file; what is before the first heading is one too, unless it is empty."""
    size, seen = fs.fstat(fd).st_size, Counter[str]()
    begin, line, started = 0, 1, None
    for at, behind, stamp, next_line in [*_headings(fs, fd, size), (size, size, "", 0)]:
        if started is not None or read_at(fs, fd, min(at, WINDOW), 0).strip():
            seen[started or ""] += 1  # two chats may have been started in one second
            name = f"{_label(path)}\0{started}\0{seen[started or '']}".encode("utf-8", "surrogateescape")
            yield Chat(blake2b(name, digest_size=8).hexdigest(), begin, at, line, started)
        begin, line, started = behind, next_line, stamp


def _headings(fs: Fs, fd: int, size: int) -> Iterator[tuple[int, int, str, int]]:
    """Each heading: its start and end offset, its time, and the number of the next line."""
    data, base, lines = b"\n", -1, 0  # as if a newline stood before the first line
    while True:
        at = base + len(data)
        data += read_at(fs, fd, min(WINDOW, size - at), at)
        is_end = base + len(data) >= size or len(data) <= at - base
        limit = len(data) if is_end else len(data) - _LONGEST
        for found in _HEADING.finditer(data):
            if found.start() < limit:
                behind = found.end()
                yield (
                    base + found.start(),
                    base + behind,
                    found[1].decode(),
                    lines + data.count(b"\n", 0, behind),
                )
        if is_end:
            return
        lines, base, data = lines + data.count(b"\n", 0, limit - 1), base + limit - 1, data[limit - 1 :]


def _lines(fs: Fs, fd: int, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a part of a file without their newlines, each with its offset."""
    at, rest = begin, b""
    while at < end:
        piece = read_at(fs, fd, min(max(WINDOW, len(rest)), end - at), at)
        if not piece:
            break
        offset, at = at - len(rest), at + len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield offset, line
            offset += len(line) + 1
    if rest:
        yield at - len(rest), rest
