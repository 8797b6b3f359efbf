"""The chats of VS Code with Copilot: `chatSessions/<id>.jsonl` in the folder of a workspace. Read-only.

Each line changes a document that holds the requests (`mutation_log`). Versions before 1.109 stored the document itself.
Copilot Chat also writes a transcript, whose events are those of Copilot CLI; it is read where the chat is missing or
empty. The folder that was open is in `workspace.json` beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from sessionary.disk.fs import is_file, is_folder, size_of
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.agents.editor_folders import path_of, settings_folder
from sessionary.layouts.agents.fields import decoded, list_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, Reading, aside
from sessionary.layouts.agents.mutation_log import Missing, MutationLog, is_change, is_undone
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.files import Location, Part, PartKind, location_of
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.layouts.jsonl import may_hold
from sessionary.model import (
    HARNESS,
    Aside,
    Cursor,
    Fact,
    Item,
    Message,
    Other,
    Place,
    Problem,
    Record,
    Reset,
    SessionRef,
    Severity,
    UsageEvent,
    from_start,
)

_PROGRAMS = {
    "Code": "code",
    "Code - Insiders": "code-insiders",
    "VSCodium": "codium",
    ".vscode-server": "code",
    ".vscode-server-insiders": "code-insiders",
    ".vscodium-server": "codium",
}
"""The folder of each product, and its command; those of servers begin with a dot."""
_CHATS = "chatSessions"
_TRANSCRIPTS = "GitHub.copilot-chat/transcripts"
_GLOBAL = "globalStorage"
_INDEX = "chat.ChatSessionStore.index"
_URI = re.compile(r"[a-z][a-z0-9+.-]*://\S+")
_REQUEST = re.compile(rb'(?=\{\s*"requestId"\s*:)')
_TITLE = re.compile(rb'"customTitle":\s*("(?:[^"\\]|\\.)*")')


class _Folder(NamedTuple):
    """A folder with chats, and the one with the transcripts of these."""

    chats: str
    transcripts: str


class VsCodeChatLayout(LogLayout):
    """The chats of VS Code below the folders of its products."""

    name: ClassVar[str] = "vscode_chat"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("workspaceStorage/", "User/", "*/User/")

    @classmethod
    def default_home(cls) -> Path:
        return Path(settings_folder())

    def resume_command(self, ref: SessionRef) -> list[str]:
        """The command that opens the editor; the chat is in its history."""
        folders = ref.locator.split("/User/")[0].split("/")[-2:]
        program = next((one for name in folders if (one := _PROGRAMS.get(name))), "code")
        uri = self._workspace(ref, "folder")
        if uri is not None:
            return [program, "--folder-uri", uri]
        uri = self._workspace(ref, "workspace")
        return [program] if uri is None else [program, "--file-uri", uri]

    # -- where sessions are

    def _roots(self) -> Iterator[str]:
        """Possible folders of the user data."""
        home = str(self.home)
        yield from (home, f"{home}/User")
        for product in _PROGRAMS:
            if not product.startswith("."):
                yield f"{home}/{product}/User"
            elif self.home == self.default_home():
                yield os.path.expanduser(f"~/{product}/data/User")

    def locations(self) -> Iterator[Location]:
        found = [
            location
            for root in self._roots()
            if is_folder(self._fs, f"{root}/workspaceStorage") or is_folder(self._fs, f"{root}/{_GLOBAL}")
            if (location := location_of(self._fs, root)).state != "missing"
        ]
        yield from found or [location_of(self._fs, f"{self.home}/Code/User")]

    def _folders(self) -> Iterator[_Folder]:
        for root in self._roots():
            for workspace in self._names(f"{root}/workspaceStorage"):
                place = f"{root}/workspaceStorage/{workspace}"
                yield _Folder(f"{place}/{_CHATS}", f"{place}/{_TRANSCRIPTS}")
            everywhere = f"{root}/{_GLOBAL}/github.copilot-chat/transcripts"
            yield _Folder(f"{root}/{_GLOBAL}/emptyWindowChatSessions", everywhere)
            yield _Folder(f"{root}/{_GLOBAL}/transferredChatSessions", "")

    def _files(self) -> Iterator[str]:
        for folder in self._folders():
            chats = self._names(folder.chats)
            logs = {name for name in chats if name.endswith(".jsonl")}
            documents = {name for name in chats if name.endswith(".json") and f"{name}l" not in logs}
            yield from (f"{folder.chats}/{name}" for name in sorted(logs | documents))
            for name in self._names(folder.transcripts) if folder.transcripts else []:
                if name.endswith(".jsonl") and name not in logs and name.removesuffix("l") not in documents:
                    yield f"{folder.transcripts}/{name}"

    def _refs(self) -> Iterator[SessionRef]:
        """As `AgentLayout._refs`. VS Code copies a chat when its window opens a workspace: the newest copy counts."""
        found: dict[str, SessionRef] = {}
        for ref in super()._refs():
            other = found.get(ref.session_id)
            if other is None or self._changed(ref) > self._changed(other):
                found[ref.session_id] = ref
        return iter(found.values())

    def _changed(self, ref: SessionRef) -> float:
        try:
            return self._fs.stat(ref.locator).st_mtime
        except OSError:
            return 0.0

    def _ref(self, path: str) -> SessionRef | None:
        name, suffix = os.path.splitext(os.path.basename(path))
        place = _place_of(path)
        if suffix not in (".json", ".jsonl") or place is None:
            return None
        return SessionRef(self.name, name, path, None if place.endswith(_GLOBAL) else os.path.basename(place))

    def _transcript(self, ref: SessionRef) -> str | None:
        """The transcript of a chat that has a file of its own too."""
        place = _place_of(ref.locator)
        if place is None or "/transcripts/" in ref.locator:
            return None
        inner = "github.copilot-chat/transcripts" if place.endswith(_GLOBAL) else _TRANSCRIPTS
        path = f"{place}/{inner}/{ref.session_id}.jsonl"
        return path if is_file(self._fs, path) else None

    def _workspace(self, ref: SessionRef, key: str) -> str | None:
        """The URI of the folder, or of the file of several folders, that was open."""
        place = _place_of(ref.locator)
        stated = setting(self._fs, f"{place}/workspace.json", key) if place else None
        return stated if isinstance(stated, str) and _URI.fullmatch(stated) else None

    # -- what belongs to a session

    def _salt(self, ref: SessionRef) -> str | None:
        transcript = self._transcript(ref)
        return "-" if transcript is None else fingerprint_of(self._fs, transcript, self._now()).hex() or None

    def files(self, ref: SessionRef) -> dict[str, str]:
        """As `AgentLayout.files`, by names below the folder `User`: the data of servers is outside of the home."""
        place = _place_of(ref.locator)
        paths = [ref.locator, self._transcript(ref), place and f"{place}/workspace.json"]
        there = [path for path in paths if path is not None and is_file(self._fs, path)]
        return {
            f"User/{path.rpartition('/User/')[2]}" if "/User/" in path else name: path
            for name, path in self._below_home(there).items()
        }

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        place = _place_of(ref.locator) or os.path.dirname(ref.locator)
        for part in super().parts(ref):
            kind = PartKind.JOURNAL if ref.locator.endswith(".jsonl") else PartKind.DOCUMENT
            yield part._replace(name=os.path.relpath(ref.locator, place), kind=kind)
        for path, kind in (
            (self._transcript(ref), PartKind.JOURNAL),
            (f"{place}/workspace.json", PartKind.DOCUMENT),
        ):
            if path is not None and (size := size_of(self._fs, path)) is not None:
                yield Part(os.path.relpath(path, place), path, kind, size)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        yield from super().check(ref)
        database = f"{_place_of(ref.locator)}/state.vscdb"
        if "/transcripts/" in ref.locator or not is_file(self._fs, database):
            return
        from sessionary.layouts.sqlite import Database

        try:
            rows = Database(database, self._fs).fetch("SELECT value FROM ItemTable WHERE key = ?", (_INDEX,))
        except SessionaryError as error:
            words = f"whether VS Code lists the session is unknown: {error.message}"
            remedy = "none needed: the session is read without it"
            yield Problem.of_file("unreadable_index", Severity.note, database, words, remedy)
            return
        if ref.session_id not in _indexed(rows):
            words = f"VS Code does not list this session: its index in {database} lacks it"
            remedy = "none here: only VS Code writes its index; it keeps the newest 400 sessions of a folder"
            yield Problem.of_file("not_indexed", Severity.hides_data, ref.locator, words, remedy)

    # -- reading

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """As `LogLayout.read`; the transcript may hold a match too."""
        transcript = self._transcript(ref) if may_match is not None else None
        if may_match is not None and transcript is not None and may_hold(self._fs, transcript, may_match):
            may_match = None
        return super().read(ref, after, may_match)

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        if "/transcripts/" in ref.locator:
            yield from self._stated_once(ref, after, self._events()._items(ref, after))
            return
        items = (
            super()._items(ref, after)
            if ref.locator.endswith(".jsonl")
            else from_start(self._old_items(ref), after)
        )
        said, damaged, end = after is not None, False, None
        for item in items:
            said = (said and not isinstance(item, Reset)) or isinstance(item, Message | Aside)
            damaged = damaged or (isinstance(item, Problem) and item.severity > Severity.note)
            if isinstance(item, Cursor):
                end = item
            else:
                yield item
        transcript = self._transcript(ref) if damaged or not said else None
        if transcript is not None:
            yield from self._of_transcript(ref, transcript, said)
        elif end is not None and said:
            yield end

    def _stated_once(self, ref: SessionRef, after: Cursor | None, items: Iterator[Item]) -> Iterator[Item]:
        """The items, with what the place of a file says wherever it is read from its start."""
        if after is None:
            yield from self.stated(ref)
        for item in items:
            yield item
            if isinstance(item, Reset):
                yield from self.stated(ref)

    def _events(self) -> CopilotCliLayout:
        events = CopilotCliLayout(self.home, self._fs, now=self._now)
        events._watch = self._watch
        return events

    def _of_transcript(self, ref: SessionRef, path: str, said: bool) -> Iterator[Item]:
        """The content of a transcript beside an empty or damaged chat; beside a damaged one, messages may repeat."""
        if said:
            words = "the chat is damaged; the messages of its transcript are not shown"
            remedy = "none needed; `sessionary show --branches` shows them"
            yield Problem.of_file("not_shown", Severity.note, path, words, remedy)
        for item in self._events()._items(SessionRef(ref.kind, ref.session_id, path, ref.project), None):
            if said and isinstance(item, Message):
                yield Aside(replace(item, usage=None))
            elif not isinstance(item, Cursor) and not (said and isinstance(item, UsageEvent)):
                yield item

    def _plan(self, ref: SessionRef, state: bytes | None) -> MutationLog:
        return MutationLog(state)

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        if path := path_of(self._workspace(ref, "folder")):
            yield Fact("cwd", path, 1)
        elif (path := path_of(self._workspace(ref, "workspace"))) and path.endswith(".code-workspace"):
            yield Fact("cwd", os.path.dirname(path), 1)

    def _taken(self, ref: SessionRef, reading: Reading) -> Iterator[Item]:
        from sessionary.layouts.agents.vscode_parts import messages_of

        plan = reading.plan
        assert isinstance(plan, MutationLog)
        plan.begin()
        for found in self._watched(ref, chain.from_iterable(self._surveyed(ref, reading))):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found, Record):
                yield from self._facts(ref, found.value, reading.memory)
                place = Place(ref.locator, found.line, found.byte)
                yield from self._messages(ref, found.value, place, reading.memory)
                for ready in plan.complete(found.value, place):
                    if isinstance(ready, Missing):
                        words = "the line changes a missing value: VS Code cannot open this session"
                        yield Problem(
                            "missing_path", Severity.stops_resume, ref.locator, found.line, found.byte, words
                        )
                        continue
                    messages = messages_of(ready.value, ready.place)
                    yield from messages if ready.shown else map(aside, messages)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        if not is_change(record):
            return
        value, path = record.get("v"), record.get("k")
        if record["kind"] == 0:
            yield from _facts_of(object_of(value))
        elif path == ["requests"]:
            yield from _facts_of({"requests": value})
        elif isinstance(path, list) and len(path) == 1:
            yield from _facts_of({str(path[0]): value})

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        if not is_change(record):
            yield Message(None, HARNESS, (Other("record", record),), place=place)

    def _old_items(self, ref: SessionRef) -> Iterator[Item]:
        """The content of one JSON document."""
        from sessionary.layouts.agents.documents import Head, Shape, pieces
        from sessionary.layouts.agents.vscode_parts import messages_of

        shape = Shape("requests", _REQUEST, "customTitle", _TITLE)
        yield from self.stated(ref)
        for found in pieces(self._fs, ref, shape):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found, Head):
                yield from _facts_of(found.fields)
            else:
                yield from _facts_of({"requests": [found.value]})
                messages = messages_of(found.value, Place(ref.locator, found.line, found.byte))
                yield from map(aside, messages) if is_undone(found.value) else messages


def _facts_of(fields: dict[str, Any]) -> Iterator[Fact]:
    """Facts of the session in the fields of the document."""
    agents = (object_of(object_of(one).get("agent")) for one in list_of(fields.get("requests")))
    stated = [
        ("title", fields.get("customTitle")),
        ("branch", object_of(fields.get("repoData")).get("localBranch")),
        *(("version", agent.get("extensionVersion")) for agent in agents),
    ]
    for name, value in stated:
        if text := text_or_none(value):
            yield Fact(name, text, 1)


def _indexed(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """The entries of the index of chats, by id."""
    value = (
        decoded(rows[0][0].decode("utf-8", "replace") if isinstance(rows[0][0], bytes) else rows[0][0])
        if rows
        else None
    )
    return object_of(object_of(value).get("entries"))


def _place_of(path: str) -> str | None:
    """The folder of a workspace, or the global one, that the file of a session is in."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) == "transcripts":
        return os.path.dirname(os.path.dirname(folder))
    known = (_CHATS, "emptyWindowChatSessions", "transferredChatSessions")
    return os.path.dirname(folder) if os.path.basename(folder) in known else None
