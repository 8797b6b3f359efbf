"""The sessions of Codex: rollouts below `sessions` and `archived_sessions` of `~/.codex`. Read-only.

A session is one rollout, or a line of several: each page names the one before it and where that one ends. A fork names
a page of another session, whose records are not repeated here; in older versions it begins with a copy of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from sessionary.disk.fs import READ, read_at, size_of, storage_failed
from sessionary.layouts.abilities import KnownTime, Recency
from sessionary.layouts.agents.logs import records, windows
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.compressed import (
    SUFFIX,
    Damaged,
    compressed_line,
    decompressed,
    first_bytes,
    read_compressed,
)
from sessionary.layouts.files import LINES, Part
from sessionary.layouts.jsonl import WINDOW, Stored, by_windows, may_hold, raw_line, read_jsonl, recency
from sessionary.model import (
    Aside,
    Cursor,
    Fact,
    Header,
    Inherited,
    Item,
    Message,
    Place,
    Problem,
    Record,
    Reset,
    SessionRef,
    Severity,
    UsageEvent,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.codex_index import Index
    from sessionary.layouts.agents.codex_page import Copied, Page, State
    from sessionary.transcript.fold import Fold

HOME = "CODEX_HOME"
_FOLDERS = ("sessions", "archived_sessions")
_DEPTH = 4
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NAME = re.compile(rf"rollout-([\dT-]{{19}})-(?:({_UUID})(?:_({_UUID}))?|(.+?))\.jsonl(?:\.zst)?")
_HISTORIES = 8
_LOOK_BACK = 1 << 23
"""Bytes before a fork in which the last counter of its parent is looked for."""


class _File(NamedTuple):
    """A rollout: one page of a session."""

    thread: str
    rollout: str
    stamp: str
    path: str


class _Found(NamedTuple):
    """The rollouts below the home: the pages of each session in order, each page by its id, and further copies."""

    threads: dict[str, list[_File]]
    rollouts: dict[str, _File]
    copies: dict[str, list[str]]


class _History(NamedTuple):
    """Records that a fork may have copied from a session: the ids of its turns, and a checksum of each record."""

    turns: set[str]
    marks: list[int]


class CodexLayout(AgentLayout):
    """The sessions of Codex below one home."""

    name: ClassVar[str] = "codex"
    messages_in_lines: ClassVar[bool] = True
    places: ClassVar[tuple[str, ...]] = ("sessions/", "archived_sessions/")
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    relisted: ClassVar[str | None] = (
        "Codex does not list it before its own database has the session: `codex resume` may not find it"
    )
    _found: _Found | None = None
    _read_index: Index | None = None
    _histories: dict[str, _History] | None = None

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(HOME) or os.path.expanduser("~/.codex"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["codex", "resume", ref.session_id]

    # -- files

    def _refs(self) -> Iterator[SessionRef]:
        self._found = self._read_index = self._histories = None
        threads = self._known().threads
        return (SessionRef(self.name, thread, pages[-1].path) for thread, pages in threads.items())

    def _files(self) -> Iterator[str]:
        return (ref.locator for ref in self.discover())

    def _ref(self, path: str) -> SessionRef | None:
        file = _file(path)
        if file is None:
            return None
        if file.thread not in self._known().threads:
            self._found = None
        pages = self._known().threads.get(file.thread)
        return SessionRef(self.name, file.thread, pages[-1].path if pages else path)

    def _known(self) -> _Found:
        """The rollouts, looked for once. Of several files of one page the plain one in `sessions` counts."""
        if self._found is None:
            found = self._found = _Found({}, {}, {})
            for folder in _FOLDERS:
                paths = self._paths(f"{self.home}/{folder}", LINES, _DEPTH)
                for file in filter(None, map(_file, sorted(paths, key=lambda one: one.endswith(SUFFIX)))):
                    if found.rollouts.setdefault(file.rollout, file) is file:
                        found.threads.setdefault(file.thread, []).append(file)
                    else:
                        found.copies.setdefault(file.thread, []).append(file.path)
            for pages in found.threads.values():
                if pages[1:]:
                    pages.sort(key=lambda page: (page.stamp, page.rollout != page.thread, page.rollout))
        return self._found

    def _pages(self, ref: SessionRef) -> list[str]:
        return [self._present(page.path) for page in self._known().threads.get(ref.session_id, ())]

    def _further_pages(self, ref: SessionRef) -> list[str]:
        """All pages of a session that has several, as few have."""
        return self._pages(ref) if len(self._known().threads.get(ref.session_id, ())) > 1 else []

    def _present(self, path: str) -> str:
        """The path of a rollout, which may have been compressed since its name was read."""
        for one in (path, path.removesuffix(SUFFIX) if path.endswith(SUFFIX) else path + SUFFIX):
            try:
                self._fs.stat(one)
            except OSError:
                continue
            return one
        return path

    def _salt(self, ref: SessionRef) -> str:
        index = self._index()
        return repr((index.title(ref.session_id), index.names.get(ref.session_id)))

    def recency(self, ref: SessionRef, known: KnownTime | None = None) -> Recency:
        return recency(self._fs, ref.locator, self._now(), known, self._salt(ref))

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        path, byte = self._present(place.path or ref.locator), place.byte or 0
        line = compressed_line if self._is_compressed(path) else raw_line
        return line(self._fs, path, byte)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        for path in self._pages(ref):
            yield from super().parts(replace(ref, locator=path))

    def stated_title(self, ref: SessionRef) -> str | None:
        index = self._index()
        return index.title(ref.session_id) or index.names.get(ref.session_id)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        at = replace(ref, locator=self._present(ref.locator))
        header = super().header(at, fold)
        index, stated = self._index(), fold.facts.get("title")
        title = index.title(ref.session_id)
        if title is None and not (stated is not None and stated.rank):
            title = index.names.get(ref.session_id)
        size = header.size + sum(map(self._size, {*self._further_pages(ref)} - {at.locator}))
        unreadable = any(one.code == "bad_zstd" and one.byte == 0 for one in fold.problems)
        return replace(header, title=title, size=size, listed=bool(fold.messages) or not unreadable)

    def opening(self, ref: SessionRef) -> Iterator[Fact]:
        """The facts of its first record."""
        from sessionary.layouts.agents.codex_shapes import facts_of_session  # a plain list does not need it

        yield from facts_of_session(self._meta(self._present(ref.locator)))

    def _size(self, path: str) -> int:
        try:
            return self._fs.stat(path).st_size
        except OSError:
            return 0

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        yield from super().check(ref)
        yield from self._index().problems(self._fs, ref)
        pages = self._pages(ref) or [ref.locator]
        yield from self._index().other_provider(ref, self._meta(pages[0]).get("model_provider"))

    def check_home(self) -> Iterator[Problem]:
        """Problems of the database of Codex. Reads only."""
        yield from self._index().problems_of_home()

    def _index(self) -> Index:
        if self._read_index is None:
            from sessionary.layouts.agents.codex_index import index_of

            self._read_index = index_of(self._fs, str(self.home))
        return self._read_index

    def files(self, ref: SessionRef) -> dict[str, str]:
        pages = [page for page in self._pages(ref) if page != ref.locator]
        return self._below_home([ref.locator, *pages, *self._known().copies.get(ref.session_id, ())])

    def borrowed(self, ref: SessionRef) -> dict[str, str]:
        """The pages of other sessions that a fork continues."""
        paths, path = list[str](), self._line(ref)[0][0].path
        while isinstance(base := self._meta(path).get("history_base"), dict):
            file = self._known().rollouts.get(str(base.get("thread_id")))
            if file is None or (path := self._present(file.path)) in paths:
                break
            paths.append(path)
        return self._below_home(paths)

    # -- reading

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        if may_match is not None and not any(
            self._may_hold(one, may_match) for one in self._pages(ref) or [ref.locator]
        ):
            return iter(())
        return super().read(ref, after)

    def _may_hold(self, path: str, may_match: MayMatch) -> bool:
        return self._is_compressed(path) or may_hold(self._fs, path, may_match)

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        from sessionary.layouts.agents.codex_page import Page, state_of  # a plain list does not need it

        state = None if after is None else state_of(after)
        if state is not None and self._goes_on(ref.locator, state):
            yield from self._read_page(Page(ref.locator, None), state, [], Cursor(state.position))
            return
        if after is not None:
            yield Reset()
        yield from self._whole(replace(ref, locator=self._present(ref.locator)))

    def _goes_on(self, path: str, state: State) -> bool:
        """True if the records behind a cursor can be read alone: nothing before it changed or was rolled back."""
        from sessionary.layouts.agents.codex_page import ROLLED_BACK, event_of

        try:
            for found in read_jsonl(self._fs, path, Cursor(state.position)):
                if isinstance(found, Reset):
                    return False
                if isinstance(found, Record) and event_of(found.value) == ROLLED_BACK:
                    return False
        except FileNotFoundError:
            return False
        return True

    def _whole(self, ref: SessionRef) -> Iterator[Item]:
        from sessionary.layouts.agents.codex_page import Copied, Lines, State
        from sessionary.layouts.agents.codex_records import Decoder

        pages, meta, problems = self._line(ref)
        yield from problems
        yield from self._beside(ref, {page.path for page in pages})
        yield from self._inherited(pages, meta)
        decoder = Decoder(counter=self._counter_before(meta))
        copied = self._copied(pages[0].path, meta)
        dropped = self._dropped(pages)
        for page in pages:
            yield from self._read_page(page, State(b"", decoder, Lines(), copied), dropped)
            copied = Copied()

    def _inherited(self, own: list[Page], meta: dict[str, Any]) -> Iterator[Inherited]:
        """Messages of the parents before the fork; they count in the parents."""
        from sessionary.layouts.agents.codex_page import Copied, Lines, Page, State
        from sessionary.layouts.agents.codex_records import Decoder

        pages, seen, base = list[Page](), {page.path for page in own}, meta.get("history_base")
        while isinstance(base, dict) and (file := self._known().rollouts.get(str(base.get("thread_id")))):
            path, end = self._present(file.path), base.get("end_byte_offset")
            if path in seen:
                break
            seen.add(path)
            pages.insert(0, Page(path, end if isinstance(end, int) else None))
            base = self._meta(path).get("history_base")
        decoder, dropped = Decoder(), self._dropped(pages)
        for page in pages:
            for item in self._read_page(page, State(b"", decoder, Lines(), Copied()), dropped):
                if isinstance(item, Message):
                    yield Inherited(replace(item, usage=None))

    def _read_page(
        self, page: Page, state: State, dropped: list[tuple[int, int]], after: Cursor | None = None
    ) -> Iterator[Item]:
        from sessionary.layouts.agents.codex_page import Reading

        reading = Reading(page, state.decoder, state.lines, state.copied, dropped)
        stored = (
            ((found,) for found in self._decompressed(page.path))
            if self._is_compressed(page.path)
            else windows(self._fs, page.path, after)
        )
        yield from by_windows(stored, reading.take_all)
        yield from reading.end()

    def _records(self, path: str) -> Iterator[Stored]:
        return self._decompressed(path) if self._is_compressed(path) else records(self._fs, path)

    def _decompressed(self, path: str) -> Iterator[Stored]:
        begun = False
        try:
            for found in read_compressed(self._fs, path):
                begun = True
                yield found
        except Damaged as error:
            byte = None if begun else 0
            words = f"it cannot be decompressed{' to its end' if begun else ''}: {error}"
            yield Problem("bad_zstd", Severity.lost_data, path, None, byte, words)

    def _is_compressed(self, path: str) -> bool:
        return path.endswith(SUFFIX) and first_bytes(self._fs, path)[:1] != b"{"

    def _meta(self, path: str) -> dict[str, Any]:
        """The content of the first line if it is a `session_meta`; else nothing."""
        from sessionary.codec import Undecodable, decode

        try:
            line = compressed_line if self._is_compressed(path) else raw_line
            record = decode(line(self._fs, path, 0))
        except (Undecodable, Damaged):
            return {}
        payload = record.get("payload") if isinstance(record, dict) else None
        return payload if isinstance(payload, dict) and record.get("type") == "session_meta" else {}

    # -- the line of pages

    def _line(self, ref: SessionRef) -> tuple[list[Page], dict[str, Any], list[Problem]]:
        """The pages of a session, the first one first, its `session_meta`, and what is wrong with them."""
        from sessionary.layouts.agents.codex_page import Page

        pages, problems, seen = [Page(ref.locator, None)], list[Problem](), {ref.locator}
        while isinstance(base := (meta := self._meta(pages[0].path)).get("history_base"), dict):
            first, file = pages[0].path, self._known().rollouts.get(str(base.get("thread_id")))
            if file is None or (path := self._present(file.path)) in seen:
                words = f"what was said before is in the rollout {base.get('thread_id')}, which is missing"
                problems.append(Problem("missing_page", Severity.stops_resume, first, 1, 0, words))
                break
            end = base.get("end_byte_offset")
            end = end if isinstance(end, int) else None
            if end is not None and not self._ends_line(path, end):
                words = f"it continues {os.path.basename(path)} at byte {end}, where no line ends"
                problems.append(Problem("bad_cut", Severity.stops_resume, first, 1, 0, words))
            if file.thread != ref.session_id:
                words = f"it begins with what was said in the session {file.thread}, which counts that"
                problems.append(Problem("forked", Severity.note, first, 1, 0, words, "none needed"))
                break
            seen.add(path)
            pages.insert(0, Page(path, end))
        return pages, meta, problems

    def base_end(self, path: str) -> int | None:
        base = self._meta(path).get("history_base", {})
        file = self._known().rollouts.get(str(base.get("thread_id")))
        if file is None or (before := self._present(file.path)) == path:
            return None
        stated, ordinals, end = base.get("end_byte_offset"), base.get("end_ordinal_exclusive"), 0
        for found in self._records(before):
            if isinstance(found, Record):
                behind, ordinal = found.byte + len(found.raw) + 1, found.value.get("ordinal")
                if isinstance(ordinals, int) and isinstance(ordinal, int):
                    is_before = ordinal < ordinals
                else:
                    is_before = behind <= (stated or 0)
                end = behind if is_before else end
        return min(end, size_of(self._fs, before) or 0)

    def _ends_line(self, path: str, end: int) -> bool:
        return self._is_compressed(path) or (end > 0 and self._read_at(path, 1, end - 1) == b"\n")

    def _beside(self, ref: SessionRef, line: set[str]) -> Iterator[Item]:
        """Usage of pages that were reverted as a whole, and notes on them and on further copies."""
        from sessionary.layouts.agents.codex_page import note
        from sessionary.layouts.agents.codex_records import Decoder

        for path in self._further_pages(ref):
            if path in line:
                continue
            decoder, hidden = Decoder(counter=self._counter_before(self._meta(path))), 0
            for found in self._records(path):
                for item in decoder.decode(found, path) if isinstance(found, Record) else ():
                    hidden += isinstance(item, Message)
                    if isinstance(item, Message | UsageEvent):
                        yield Aside(item) if isinstance(item, Message) else item
            if hidden:
                yield note(path, hidden, "message", "of a page that was reverted")
        for path in self._known().copies.get(ref.session_id, ()):
            words = "another copy of this session is not read"
            yield Problem.of_file("second_copy", Severity.note, path, words, "none needed")

    def _dropped(self, pages: list[Page]) -> list[tuple[int, int]]:
        """The first and last numbers of the records of turns that were rolled back."""
        from sessionary.layouts.agents.codex_page import ROLLED_BACK, Lines, event_of
        from sessionary.layouts.agents.codex_records import Decoder

        if not any(self._mentions(page.path, ROLLED_BACK.encode()) for page in pages):
            return []
        decoder, dropped = Decoder(counts_turns=True), list[tuple[int, int]]()
        for page in pages:
            lines = Lines()
            for found in self._records(page.path):
                if not isinstance(found, Record) or lines.repeats(found):
                    continue
                if page.end is not None and found.byte >= page.end:
                    break
                decoder.decode(found, page.path)
                if (
                    event_of(found.value) == ROLLED_BACK
                    and (first := decoder.roll_back(found.value)) is not None
                ):
                    dropped.append((first, decoder.number))
        return dropped

    def _mentions(self, path: str, word: bytes) -> bool:
        """True if a word occurs anywhere in a page; a page that does not begin as a record may hold it."""
        from stringzilla import find

        if not self._is_compressed(path):
            return may_hold(self._fs, path, lambda data: find(data, word) >= 0)
        before = b""
        try:
            for piece in decompressed(self._fs, path):
                if word in before + piece[: len(word)] or word in piece:
                    return True
                before = piece[-len(word) :]
        except Damaged:
            pass  # reported where its records are read
        return False

    def _read_at(self, path: str, length: int, offset: int) -> bytes:
        try:
            fd = self._fs.open(path, READ)
            try:
                return read_at(self._fs, fd, length, offset)
            finally:
                self._fs.close(fd)
        except OSError as error:
            raise storage_failed(error, "read", path) from error

    # -- forks

    def _counter_before(self, meta: dict[str, Any]) -> list[int] | None:
        """The last counter of tokens before the point at which a page continues another; None if it is not found."""
        from sessionary.layouts.agents.codex_shapes import counter_in

        base = meta.get("history_base")
        file = self._known().rollouts.get(str(base.get("thread_id"))) if isinstance(base, dict) else None
        end = base.get("end_byte_offset") if isinstance(base, dict) else None
        if file is None or not isinstance(end, int):
            return None
        path = self._present(file.path)
        low = 0 if self._is_compressed(path) else end
        while low > max(end - _LOOK_BACK, 0):
            high, low = low, max(low - WINDOW, 0)
            if counter := counter_in(self._read_at(path, high - low, low)):
                return counter
        return None

    def _copied(self, path: str, meta: dict[str, Any]) -> Copied:
        """Detects records of a page that repeat records of the parent of the fork.

        Copies begin turns that the other session has; where no turn has an id, they are the same records.
        """
        from sessionary.layouts.agents.codex_page import Copied, turn_of
        from sessionary.layouts.agents.codex_shapes import parent_of

        parent, start = parent_of(meta), meta.get("subagent_history_start_ordinal")
        if isinstance(start, int) or parent is None or "history_base" in meta:
            return Copied(start=start if isinstance(start, int) else None)
        history = self._history(parent)
        if history is None:
            return Copied(unknown=True)
        at, other, has_turn = 0, None, False
        for found in self._records(path):
            if not isinstance(found, Record) or found.value.get("type") == "session_meta":
                continue
            turn = turn_of(found.value)
            if turn is not None and turn not in history.turns:
                return Copied(found.line if has_turn else other or found.line)
            has_turn = has_turn or turn is not None
            if other is None:
                try:
                    at = history.marks.index(_mark(found.value), at) + 1
                except ValueError:
                    other = found.line
        return Copied(None if has_turn else other, final=False)

    def _history(self, thread: str) -> _History | None:
        """Records that a fork may have copied from a session; None if that session is missing."""
        from sessionary.layouts.agents.codex_page import turn_of

        histories = self._histories = {} if self._histories is None else self._histories
        pages = self._known().threads.get(thread)
        if thread not in histories and pages:
            history = _History(set(), [])
            try:
                for page in pages:
                    for found in self._records(self._present(page.path)):
                        if isinstance(found, Record):
                            history.marks.append(_mark(found.value))
                            history.turns.update(filter(None, (turn_of(found.value),)))
            except OSError:
                return None
            if len(histories) == _HISTORIES:
                del histories[next(iter(histories))]
            histories[thread] = history
        return histories.get(thread)


def _file(path: str) -> _File | None:
    found = _NAME.fullmatch(os.path.basename(path))
    if found is None:
        return None
    stamp, thread, rollout, single = found.groups()
    return _File(thread or single, rollout or thread or single, stamp, path)


def _mark(record: dict[str, Any]) -> int:
    """A checksum of what a record says, whenever it was written."""
    try:
        said = msgpack.encode(record.get("payload"))
    except (MsgspecError, UnicodeEncodeError, OverflowError, RecursionError):
        said = repr(record.get("payload")).encode("utf-8", "surrogatepass")
    return hash((record.get("type"), said))
