"""The sessions of Cursor, of its editor and of its command line. Read-only.

One session may lie in three stores: the database of the editor (`cursor_editor`), the chat store of the command line
(`cursor_store`), and a transcript, `projects/<folder>/agent-transcripts/<id>/<id>.jsonl`, which lacks the results of
tools and all times. The first in this order that has the session is read. The locator of a session of the editor is
the path of the database, `#` and the id.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs, not_found, read_bytes, size_of
from sessionary.errors import Corrupt, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts.abilities import KnownTime, Recency
from sessionary.layouts.agents import cursor_editor
from sessionary.layouts.agents.cursor_editor import EditorState
from sessionary.layouts.agents.cursor_store import META, NAME, TABLES, ChatStore
from sessionary.layouts.agents.editor_folders import settings_folder
from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.agents.trees import TreePlan
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.clock import changed_at, last_change
from sessionary.layouts.files import Location, Part, PartKind, location_of
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of
from sessionary.layouts.sqlite import Database
from sessionary.model import (
    HARNESS,
    Cursor,
    Fact,
    Header,
    Item,
    Message,
    Place,
    Problem,
    Reset,
    SessionRef,
    Severity,
    Text,
    from_start,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.sql_rows import Take
    from sessionary.transcript.fold import Fold

HOMES = ("CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR")
_TRANSCRIPTS, _CHILDREN = "agent-transcripts", "subagents"
_ROW = re.compile(r"(.*?\.(?:vscdb|db))#(.+)", re.DOTALL)
_SPEAKER = re.compile(r"^(user|assistant|system|tool):[ \t]*$", re.MULTILINE)


class CursorLayout(LogLayout):
    """The sessions of Cursor below its folder, and those of the editor below that of its settings."""

    name: ClassVar[str] = "cursor"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("projects/", "chats/", "User/", "globalStorage/")

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(home, fs, now=now)
        self._editors: dict[str, EditorState] = {}
        self._changes: dict[str, dict[str, Any]] = {}

    @classmethod
    def default_home(cls) -> Path:
        named = next(filter(None, map(os.environ.get, HOMES)), "~/.cursor")
        return Path(os.path.expanduser(named))

    def resume_command(self, ref: SessionRef) -> list[str]:
        if _row_of(ref.locator)[1] and f"{ref.session_id}/{NAME}" not in map(_tail, self._chats()):
            raise Unsupported(
                "only the editor of Cursor continues this session",
                session=ref.session_id,
                path=ref.locator,
                hint="open it in the editor, in the history of its agent",
            )
        return ["cursor-agent", "--resume", ref.session_id]

    # -- where sessions lie

    def locations(self) -> Iterator[Location]:
        yield from (location_of(self._fs, root) for root in self._roots())
        yield from (location_of(self._fs, path) for path in self._databases())

    def _refs(self) -> Iterator[SessionRef]:
        self._editors, self._changes = {}, {}
        folders = (os.path.split(path) for path in self._databases())
        there = (f"{folder}/{name}" for folder, name in folders if name in self._names(folder))
        return self._refs_in(there, lambda path: self._editor(path).sessions())

    def _roots(self) -> list[str]:
        """The folder of Cursor; beside the default one that of its server for remote work."""
        if self.home != self.default_home():
            return [str(self.home)]
        return [str(self.home), os.path.expanduser("~/.cursor-server")]

    def _databases(self) -> list[str]:
        """Possible folders of the databases of the editor."""
        folders = [f"{self.home}", f"{self.home}/User"]
        if self.home == self.default_home():
            folders = [f"{settings_folder()}/Cursor/User", os.path.expanduser("~/.cursor-server/data/User")]
        return [f"{folder}/globalStorage/{cursor_editor.NAME}" for folder in folders]

    def _editor(self, path: str) -> EditorState:
        if path not in self._editors:
            self._editors[path] = EditorState(path, self._fs)
        return self._editors[path]

    def _files(self) -> Iterator[str]:
        """The files of sessions, the fullest of a session first."""
        chats = list(self._chats())
        yield from (path for path in chats if path.endswith(NAME))
        for suffix in (".jsonl", ".txt"):
            yield from (path for path in self._transcripts() if path.endswith(suffix))
        for path in chats:
            if path.endswith(META) and object_of(setting(self._fs, path)).get("hasConversation"):
                yield path

    def _chats(self) -> Iterator[str]:
        """The store of each chat of the command line; of one without, the document."""
        for root in self._roots():
            for folder in self._names(f"{root}/chats"):
                for name in self._names(f"{root}/chats/{folder}"):
                    path = f"{root}/chats/{folder}/{name}"
                    names = self._names(path)
                    yield from [f"{path}/{one}" for one in (NAME, META) if one in names][:1]

    def _transcripts(self) -> Iterator[str]:
        for root in self._roots():
            for project in self._names(f"{root}/projects"):
                folder = f"{root}/projects/{project}/{_TRANSCRIPTS}"
                for name in self._names(folder):
                    yield f"{folder}/{name}"
                    if "." not in name:
                        yield from (f"{folder}/{name}/{one}" for one in self._names(f"{folder}/{name}"))
                        below = f"{folder}/{name}/{_CHILDREN}"
                        yield from (f"{below}/{one}" for one in self._names(below))

    def _ref(self, path: str) -> SessionRef | None:
        folder, name = os.path.split(path)
        if name in (NAME, META):
            is_chat = os.path.basename(os.path.dirname(os.path.dirname(folder))) == "chats"
            return SessionRef(self.name, os.path.basename(folder), path, None) if is_chat else None
        stem, suffix = os.path.splitext(name)
        project, _, below = folder.partition(f"/{_TRANSCRIPTS}")
        depth = below.count("/")
        if suffix not in (".jsonl", ".txt") or depth > 2 or project == folder:
            return None
        if depth == 2 and os.path.basename(folder) != _CHILDREN:
            return None
        return SessionRef(self.name, stem, path, os.path.basename(project))

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path, name = _row_of(str(folder.absolute()))
        if name:
            found = path in self._databases()
            return SessionRef(self.name, name, f"{path}#{name}", None) if found else None
        return super().ref_for_path(folder)

    # -- what a session holds

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        if may_match is None or ref.locator.endswith(".jsonl"):
            return super().read(ref, after, may_match)
        return super().read(ref, after) if self._may_hold(ref, may_match) else iter(())

    def _may_hold(self, ref: SessionRef, may_match: MayMatch) -> bool:
        path, name = _row_of(ref.locator)
        try:
            if name:
                return self._editor(path).may_hold(name, may_match)
            if path.endswith(NAME):
                return ChatStore(path, self._fs).may_hold(may_match)
        except (StorageFailed, Corrupt):  # reported by reading it
            return True
        return True

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        path, name = _row_of(ref.locator)
        if name:
            try:
                yield from self._editor(path).items(name, after)
            except Corrupt as error:
                raise StorageFailed(error.message, path=path, hint=error.hint) from error
        elif path.endswith(NAME):
            yield from self._of_store(ref, after)
        elif path.endswith(".jsonl"):
            yield from super()._items(ref, after)
        else:
            yield from from_start(
                self._of_text(ref) if path.endswith(".txt") else self._without_store(ref), after
            )

    def _of_store(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        """The content of a chat store, or of its transcript if the store has no message."""
        held, cursor = False, list[Cursor]()
        try:
            for item in ChatStore(ref.locator, self._fs).items(after):
                held = held or isinstance(item, Message)
                if isinstance(item, Cursor):
                    cursor.append(item)
                else:
                    yield item
        except (StorageFailed, Corrupt) as error:
            if held or (other := self._transcript_of(ref)) is None:
                raise StorageFailed(error.message, path=ref.locator, hint=error.hint) from error
            if after is not None:
                yield Reset()
            yield _replaced(ref.locator, error.message, other.locator)
        else:
            other = None if held or after is not None else self._transcript_of(ref)
            if other is None:
                yield from cursor
                return
        yield from (one for one in super()._items(other, None) if not isinstance(one, Cursor))

    def _transcript_of(self, ref: SessionRef) -> SessionRef | None:
        wanted = f"/{ref.session_id}.jsonl"
        found = (self._ref(path) for path in self._transcripts() if path.endswith(wanted))
        return next((one for one in found if one is not None), None)

    def _of_text(self, ref: SessionRef) -> Iterator[Item]:
        """The messages of a transcript of an old version: words below the names of the speakers."""
        from sessionary.layouts.agents.cursor_messages import masked, messages_of

        data = read_bytes(self._fs, ref.locator)
        if data is None:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found")
        yield from self.stated(ref)
        before, *pieces = _SPEAKER.split(data.decode("utf-8", "replace"))
        for role, words in (("system", before), *zip(pieces[::2], pieces[1::2], strict=True)):
            if words.strip():
                record = masked({"role": role, "content": words.strip()})
                yield from messages_of(record, Place(ref.locator))

    def _without_store(self, ref: SessionRef) -> Iterator[Item]:
        """The content of `meta.json` of a session that has no other file."""
        yield from self._of_document(ref.locator)
        words = f"the messages are not here: there is no {NAME} beside it"
        yield Problem.of_file("no_store", Severity.lost_data, ref.locator, words)

    def _of_document(self, path: str) -> Iterator[Fact]:
        document = object_of(setting(self._fs, path))
        for name in ("title", "cwd"):
            if value := text_or_none(document.get(name)):
                yield Fact(name, value)

    # -- a transcript

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        return TreePlan(lambda record: None, state)

    def opening(self, ref: SessionRef) -> Iterator[Fact]:
        """The facts of its row, or of its store; of a transcript those of its first records."""
        path, name = _row_of(ref.locator)
        try:
            if name:
                yield from self._editor(path).facts(name)
            elif path.endswith(NAME):
                yield from ChatStore(path, self._fs).facts()
            elif path.endswith(META):
                yield from self._of_document(path)
            else:
                yield from super().opening(ref)
        except Corrupt:
            return  # reported by `read`

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        project, _, below = os.path.dirname(ref.locator).partition(f"/{_TRANSCRIPTS}")
        trusted = object_of(setting(self._fs, f"{project}/.workspace-trusted"))
        if path := text_or_none(trusted.get("workspacePath")):
            yield Fact("cwd", path)
        if below.endswith(f"/{_CHILDREN}"):
            yield Fact("parent", below.split("/")[1])
            yield Fact("nested", "sub-agent")

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        from sessionary.layouts.agents.cursor_messages import masked, messages_of

        record = masked(record)
        if record.get("type") != "turn_ended":
            yield from messages_of(record, place, paired=False)
        elif (status := text_or_none(record.get("status"))) not in (None, "success"):
            failure = record.get("error")
            words = text_or_none(object_of(failure).get("message")) or text_or_none(failure)
            text = f"the turn ended: {status}" + (f": {words}" if words else "")
            yield Message("system", HARNESS, (Text(text),), place=place)

    # -- the protocol

    def fingerprint(self, ref: SessionRef) -> bytes:
        if ref.locator in self._fingerprints:
            return self._fingerprints.pop(ref.locator)
        path, name = _row_of(ref.locator)
        if name:
            try:
                return self._editor(path).fingerprint(name) or UNKNOWN
            except SessionaryError:
                return UNKNOWN
        found = [fingerprint_of(self._fs, one, self._now()) for one in self._all_files(path)]
        return b"".join(found) if all(found) else UNKNOWN

    def _all_files(self, path: str) -> list[str]:
        """The files of a session without a row."""
        if not path.endswith(NAME):
            return [path]
        return [path, f"{path}-wal", f"{os.path.dirname(path)}/{META}"]

    def files(self, ref: SessionRef) -> dict[str, str]:
        """As `AgentLayout.files`. Of a session without a store there is nothing but a document with a key."""
        if ref.locator.endswith(META) or self.place_of_rows(ref) is not None:
            return {}
        folder, name = os.path.split(ref.locator)
        is_alone = os.path.basename(folder) == os.path.splitext(name)[0]
        paths = [ref.locator, *(self._files_below(f"{folder}/{_CHILDREN}") if is_alone else ())]
        root = next(root for root in self._roots() if ref.locator.startswith(f"{root}/"))
        return {path.removeprefix(f"{root}/"): path for path in paths}

    def place_of_rows(self, ref: SessionRef) -> str | None:
        path, name = _row_of(ref.locator)
        if name:
            return f"User/globalStorage/{cursor_editor.NAME}#{name}"
        return "/".join(("chats", *path.split("/")[-3:])) if path.endswith(NAME) else None

    def rows(self, ref: SessionRef, take: Take = list) -> list[bytes]:
        from sessionary.layouts.agents import sql_rows  # here and below, since few commands need them
        from sessionary.layouts.agents.cursor_messages import masked_value

        path, name = _row_of(ref.locator)
        place = (self.place_of_rows(ref) or "").partition("#")[0]
        tables = cursor_editor.TABLES if name else TABLES
        return sql_rows.dump(Database(path, self._fs), ref, place, tables, masked_value, take=take)

    def shown(self, data: bytes) -> bytes:
        from sessionary.layouts.agents.cursor_messages import masked_bytes

        return masked_bytes(data)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

        path, name = _row_of(ref.locator)
        if not name:
            header = super().header(ref, fold)
            document = object_of(setting(self._fs, f"{os.path.dirname(path)}/{META}"))
            created, changed = document.get("createdAtMs"), document.get("updatedAtMs")
            size = sum(size_of(self._fs, one) or 0 for one in self._all_files(path))
        else:
            header = Header()
            try:
                created, changed = self._editor(path).times(name)
                size = self._editor(path).size(name)
            except (StorageFailed, Corrupt):
                return header  # reported by `read`
        stated = [("the newest message", fold.updated), ("the session", parse_time(changed))]
        files = 0.0 if header.updated is None else header.updated.timestamp()
        updated, problems = last_change(stated, files, self._now(), ref.locator)
        return Header(created=parse_time(created), updated=updated, size=size, problems=problems)

    def recency(self, ref: SessionRef, known: KnownTime | None = None) -> Recency:
        path, name = _row_of(ref.locator)
        if not name:
            found = super().recency(ref, known)
            return replace(found, size=sum(size_of(self._fs, one) or 0 for one in self._all_files(path)))
        from sessionary.codec.times import parse_time

        try:
            if path not in self._changes:
                self._changes[path] = self._editor(path).changes()
        except SessionaryError:
            self._changes[path] = {}
        changed = parse_time(self._changes[path].get(name))
        newest = None if changed is None else changed_at(self._now(), changed.timestamp()) or None
        return Recency(newest, None, 0)

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        path, key = _row_of(place.path or ref.locator)
        if key:
            of_chat = path.endswith(f"/{NAME}")
            return ChatStore(path, self._fs).raw(key) if of_chat else self._editor(path).raw(key)
        if path.endswith(NAME):
            raise not_found(path, f"There is no record {path}")
        return self.shown(super().raw(ref, place))

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        path, name = _row_of(ref.locator)
        if name:
            yield Part(os.path.basename(path), path, PartKind.DOCUMENT, self._editor(path).size(name))
            return
        kind = PartKind.JOURNAL if path.endswith(".jsonl") else PartKind.DOCUMENT
        for one in self._all_files(path):
            if (size := size_of(self._fs, one)) is not None:
                yield Part(os.path.basename(one), one, kind, size)


def _row_of(locator: str) -> tuple[str, str]:
    """The path of a locator, and the id of the row in that database; empty for a file."""
    found = _ROW.fullmatch(locator)
    return (found[1], found[2]) if found else (locator, "")


def _tail(path: str) -> str:
    """The last two names of a path."""
    return "/".join(path.split("/")[-2:])


def _replaced(path: str, words: str, other: str) -> Problem:
    message = f"the chat store cannot be read: {words}; the messages are those of the transcript {other}"
    return Problem.of_file("unreadable_store", Severity.hides_data, path, message)
