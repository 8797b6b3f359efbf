"""The sessions of Gemini CLI: `tmp/<project>/chats/session-<time>-<id>.jsonl` below `~/.gemini`. Read-only.

Each line is a message, or changes earlier ones (`patch_log`). Versions before 0.40 stored one JSON document, which was
written anew with each message. Sub-agents have files of their own, in a folder named after the session that called
them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sessionary.disk.fs import read_bytes
from sessionary.errors import SessionaryError, StorageFailed
from sessionary.layouts.abilities import Retention
from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, Reading, aside
from sessionary.layouts.agents.patch_log import PatchLog, kind_of
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.base import Capability
from sessionary.layouts.jsonl import read_jsonl
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    TOOL,
    Cursor,
    Fact,
    Item,
    Message,
    Other,
    Part,
    Place,
    Problem,
    Record,
    SessionRef,
    Severity,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    from_start,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck

HOME = "GEMINI_CLI_HOME"
_LARGEST_REGISTRY = 1 << 20

_PREFIX = "session-"
_NAME = re.compile(_PREFIX + r"\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d)?-(.+)")
_NOT_SAID = re.compile(
    r"\s*(?:/[\w:-]+(?:\s|$)|\?\s*$|<session_context>|This is the Gemini CLI\. We are setting up)"
)
_SUMMARY = re.compile(r"\s*<state_snapshot>")
_BEGIN = re.compile(rb"\n {4}(?=\{)")
_TITLE = re.compile(rb'\n  "summary": ("[^\n]*"),?\r?\n')
_AGE = re.compile(r"(\d{1,6})([hdwm])")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 720}
_ANSWERED = frozenset({"success", "error", "cancelled"})
_NOTICES = frozenset({"info", "error", "warning"})
_ANSWERS = 64
"""How many calls of the last message with results are remembered."""


class GeminiLayout(LogLayout):
    """The sessions of Gemini CLI below its folder."""

    name: ClassVar[str] = "gemini"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("tmp/",)
    versions: ClassVar[bool] = True

    relisted: ClassVar[str | None] = "Gemini CLI lists it in its project"
    after_resume: ClassVar[str | None] = (
        "Gemini CLI 0.61 deletes a session that was continued, when it starts the next time"
    )

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(HOME) or os.path.expanduser("~")) / ".gemini"

    def retention(self) -> Retention | None:
        path = f"{self.home}/settings.json"
        stated = object_of(setting(self._fs, path, "general", "sessionRetention"))
        if stated.get("enabled") is False:
            return None
        age = _AGE.fullmatch(str(stated.get("maxAge")))
        if age is None:
            return Retention(30, "the default of Gemini CLI")
        return Retention(int(age[1]) * _HOURS[age[2]] // 24, f"general.sessionRetention.maxAge in {path}")

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["gemini", "--resume", self._whole_id(ref) or ref.session_id]

    def _whole_id(self, ref: SessionRef) -> str | None:
        """The id that a session states: its file is named after the first eight characters."""
        if ref.locator.endswith(".json"):
            stated = setting(self._fs, ref.locator, "sessionId")
            return stated if isinstance(stated, str) else None
        with suppress(SessionaryError):
            for item in read_jsonl(self._fs, ref.locator):
                if isinstance(item, Record) and isinstance(item.value.get("sessionId"), str):
                    return str(item.value["sessionId"])
        return None

    def _files(self) -> Iterator[str]:
        for project in self._names(f"{self.home}/tmp"):
            chats = f"{self.home}/tmp/{project}/chats"
            for folder, names in self._folders(chats):
                lines = {name for name in names if name.endswith(".jsonl")}
                for name in names:
                    if folder == chats and not name.startswith(_PREFIX):
                        continue  # as Gemini CLI; in a home that both share, it is one of Qwen Code
                    if name in lines or (name.endswith(".json") and f"{name}l" not in lines):
                        yield f"{folder}/{name}"

    def _folders(self, chats: str) -> Iterator[tuple[str, list[str]]]:
        """The folder of a project's sessions and those of their sub-agents, with the names in each."""
        names = self._names(chats)
        yield chats, names
        for name in names:
            if "." not in name:
                yield f"{chats}/{name}", self._names(f"{chats}/{name}")

    def _ref(self, path: str) -> SessionRef | None:
        stem, suffix = os.path.splitext(path.removeprefix(f"{self.home}/tmp/"))
        project, chats, *rest = (*stem.split("/"), "", "")[:5]
        names = [name for name in rest if name]
        if suffix not in (".json", ".jsonl") or chats != "chats" or stem.count("/") not in (2, 3):
            return None
        if len(names) == 1 and not names[0].startswith(_PREFIX):
            return None
        named = _NAME.fullmatch(names[-1])
        return SessionRef(self.name, named[1] if named else names[-1], path, project)

    def files(self, ref: SessionRef) -> dict[str, str]:
        paths, chats = [ref.locator], os.path.dirname(ref.locator)
        if os.path.basename(chats) == "chats":
            # The folder of its sub-agents has its whole id, of which the name of its file has the beginning.
            named = (
                name for name in self._names(chats) if name.startswith(ref.session_id) and "." not in name
            )
            paths += [path for name in named for path in self._files_below(f"{chats}/{name}")]
        return self._below_home(paths)

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.gemini_check import GeminiCheck  # as in `LogLayout`

        return GeminiCheck(ref) if ref.locator.endswith(".jsonl") else super()._check_of(ref)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.agents.gemini_check import twins

        yield from super().check(ref)
        folder, own = os.path.split(ref.locator)
        names = [(name, match[1]) for name in self._names(folder) if (match := _NAME.fullmatch(_stem(name)))]
        if os.path.basename(folder) == "chats":
            yield from twins(
                ref, [name for name, key in names if key == ref.session_id and _stem(name) != _stem(own)]
            )

    def leftovers(self) -> Iterator[Problem]:
        """The folders of sub-agents whose session is missing. Reads names only."""
        for project in self._names(f"{self.home}/tmp"):
            chats = f"{self.home}/tmp/{project}/chats"
            names = self._names(chats)
            known = {match[1] for name in names if (match := _NAME.fullmatch(_stem(name)))}
            for name in names:
                if "." not in name and name[:8] not in known and self._names(f"{chats}/{name}"):
                    words = f"the sessions of sub-agents of {name}, whose own file is missing"
                    remedy = "none needed; they are read"
                    yield Problem(
                        "orphan_folder", Severity.note, f"{chats}/{name}", None, None, words, remedy
                    )

    def _plan(self, ref: SessionRef, state: bytes | None) -> PatchLog:
        return PatchLog(state)

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        folder = os.path.dirname(ref.locator)
        if os.path.basename(folder) != "chats":
            yield Fact("parent", os.path.basename(folder)[:8], 1)
            yield Fact("nested", "sub-agent")
        if path := self._project_path(ref.project or ""):
            yield Fact("cwd", path)

    def _project_path(self, name: str) -> str | None:
        """The path of a project, whose folder is named by a short name or, by older versions, by a hash of the path."""
        marker = self._document(f"{self.home}/tmp/{name}/.project_root")
        if marker and (path := marker.decode("utf-8", "surrogateescape").strip()):
            return path
        import json  # here, since only reading a session needs these
        from hashlib import sha256

        try:
            registry = json.loads(self._document(f"{self.home}/projects.json") or b"{}")
        except (ValueError, RecursionError):
            return None
        for path, short in object_of(object_of(registry).get("projects")).items():
            if name in (short, sha256(path.encode("utf-8", "surrogatepass")).hexdigest()):
                return str(path)
        return None

    def _document(self, path: str) -> bytes | None:
        try:
            return read_bytes(self._fs, path, limit=_LARGEST_REGISTRY)
        except StorageFailed:
            return None

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        if ref.locator.endswith(".jsonl"):
            return super()._items(ref, after)
        return from_start(self._old_items(ref), after)

    def _old_items(self, ref: SessionRef) -> Iterator[Item]:
        """The content of one JSON document."""
        from sessionary.layouts.agents.documents import Head, Shape, pieces

        shape = Shape("messages", _BEGIN, "summary", _TITLE)
        yield from self.stated(ref)
        memory: Memory = {}
        for found in pieces(self._fs, ref, shape):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found, Head):
                yield from self._facts(ref, {**found.fields, "sessionId": ""}, memory)
            else:
                place = Place(ref.locator, found.line, found.byte)
                yield from self._facts(ref, found.value, memory)
                yield from self._messages(ref, found.value, place, memory)

    def _taken(self, ref: SessionRef, reading: Reading) -> Iterator[Item]:
        plan = reading.plan
        assert isinstance(plan, PatchLog)
        plan.begin()
        for found in self._watched(ref, chain.from_iterable(self._surveyed(ref, reading))):
            if isinstance(found, Problem):
                yield found
            elif isinstance(found, Record):
                yield from self._facts(ref, found.value, reading.memory)
                place = Place(ref.locator, found.line, found.byte)
                for ready in plan.complete(found.value, place):
                    messages = self._messages(ref, ready.message, ready.place, reading.memory)
                    yield from messages if ready.shown else map(aside, messages)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        kind = kind_of(record)
        if kind in ("set", "metadata"):
            stated = record["$set"] if kind == "set" else record
            if title := text_or_none(stated.get("summary")):
                yield Fact("title", title, 1)
            if stated.get("kind") == "subagent":
                yield Fact("nested", "sub-agent")

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        if kind_of(record) not in ("message", "unknown"):
            return
        from sessionary.codec.times import parse_time  # here, since a list that reads nothing needs neither
        from sessionary.layouts.agents.google_parts import parts_of

        kind, time, name = (
            text_or_none(record.get("type")),
            parse_time(record.get("timestamp")),
            text_or_none(record.get("id")),
        )
        parts = tuple(parts_of(record.get("content")))
        answered: list[str | None] = memory.get("answered", [])
        if kind == "user":
            if not _repeats(parts, answered):
                yield Message("user", _origin(parts), parts, time, name, place=place)
        elif kind == "gemini":
            for message in _answer(record, parts, Message("assistant", AGENT, (), time, name, place=place)):
                if message.results:
                    memory["answered"] = [one.call_id for one in message.results][-_ANSWERS:]
                yield message
        elif kind in _NOTICES:
            yield Message("system", HARNESS, parts, time, name, place=place)
        else:
            yield Message(None, HARNESS, (Other("record", record),), time, place=place)


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _repeats(parts: tuple[Part, ...], answered: list[str | None]) -> bool:
    """True for the results of calls that hold them too: Gemini CLI stores a result at the call and behind it."""
    return bool(parts) and all(isinstance(one, ToolResult) and one.call_id in answered for one in parts)


def _origin(parts: tuple[Part, ...]) -> str:
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    if not text and any(isinstance(part, ToolResult) for part in parts):
        return TOOL
    if _SUMMARY.match(text):
        return COMPACTION
    return HARNESS if _NOT_SAID.match(text) else PERSON


def _answer(record: dict[str, Any], parts: tuple[Part, ...], message: Message) -> Iterator[Message]:
    """A response of the model, and the results of the tools that it called, which are stored with the calls."""
    from msgspec.structs import replace

    from sessionary.codec.times import parse_time
    from sessionary.layouts.agents.google_parts import result_text, usage_of

    thoughts, calls, results, time = list[Part](), list[Part](), list[Part](), None
    for thought in map(object_of, list_of(record.get("thoughts"))):
        words = [
            text for key in ("subject", "description", "text") if (text := text_or_none(thought.get(key)))
        ]
        thoughts.append(Thinking("\n".join(words)))
    for call in map(object_of, list_of(record.get("toolCalls"))):
        name, status = text_or_none(call.get("id")), text_or_none(call.get("status"))
        calls.append(ToolCall(name, text_or_none(call.get("name")) or "?", call.get("args")))
        if call.get("result") is not None or status in _ANSWERED:
            shown = call.get("resultDisplay")
            stored = result_text(call["result"]) if call.get("result") is not None else shown
            words_of = stored if isinstance(stored, str) else str(status)
            results.append(ToolResult(name, words_of, status in ("error", "cancelled")))
            time = parse_time(call.get("timestamp")) or time
    tokens = record.get("tokens")
    usage = None
    if isinstance(tokens, dict):
        names = ("input", "output", "cached", "thoughts", "tool", "total")
        usage = usage_of(*(tokens.get(key) for key in names))
    model, known = (
        text_or_none(record.get("model")),
        {one.call_id for one in calls if isinstance(one, ToolCall)},
    )
    own = [
        one for one in parts if not (isinstance(one, ToolCall) and one.call_id in known)
    ]  # a resume repeats calls
    yield replace(message, parts=(*thoughts, *own, *calls), model=model, usage=usage)
    if results:
        yield Message(
            "tool", TOOL, tuple(results), time or message.time, parent=message.id, place=message.place
        )
