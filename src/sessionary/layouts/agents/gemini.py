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
from pathlib import Path
from typing import Any, ClassVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode as decode_as

from sessionary.disk.fs import not_found, read_bytes
from sessionary.errors import SessionaryError, StorageFailed
from sessionary.layouts.agents.fields import list_of, object_of, object_or_value, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, Reading, aside, records
from sessionary.layouts.agents.patch_log import PatchLog, kind_of
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.base import Capability, Retention, from_start
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
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

HOME = "GEMINI_CLI_HOME"
_LARGEST_REGISTRY = 1 << 20

_PREFIX = "session-"
_NAME = re.compile(_PREFIX + r"\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d)?-(.+)")
_NOT_SAID = re.compile(
    r"\s*(?:/[\w:-]+(?:\s|$)|\?\s*$|<session_context>|This is the Gemini CLI\. We are setting up)"
)
_SUMMARY = re.compile(r"\s*<state_snapshot>")
_AGE = re.compile(r"(\d{1,6})([hdwm])")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 720}
_ANSWERED = frozenset({"success", "error", "cancelled"})
_NOTICES = frozenset({"info", "error", "warning"})


class _Document(Struct):
    """A session of an old version, with its messages as they are stored."""

    messages: list[Raw]
    summary: Any = None
    kind: Any = None


class GeminiLayout(LogLayout):
    """The sessions of Gemini CLI below its folder."""

    name: ClassVar[str] = "gemini"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("tmp/",)

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

    def _plan(self, ref: SessionRef, state: bytes | None) -> PatchLog:
        return PatchLog(state)

    def _stated(self, ref: SessionRef) -> Iterator[Fact]:
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
        """What one JSON document holds."""
        data = read_bytes(self._fs, ref.locator)
        if data is None:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found")
        yield from self._stated(ref)
        for found in _pieces(data, ref.locator):
            if isinstance(found, Problem):
                yield found
                continue
            yield from self._facts(ref, found.value, {})
            if "messages" not in found.value:
                yield from self._messages(ref, found.value, Place(ref.locator, found.line, found.byte), {})

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        if ref.locator.endswith(".jsonl"):
            return super().raw(ref, place)
        import json

        data = (read_bytes(self._fs, ref.locator) or b"")[place.byte or 0 :]
        try:
            text = data.decode("utf-8", "surrogateescape")
            return text[: json.JSONDecoder().raw_decode(text)[1]].encode("utf-8", "surrogateescape")
        except (ValueError, RecursionError):
            return data.split(b"\n", 1)[0]

    def _taken(self, ref: SessionRef, reading: Reading) -> Iterator[Item]:
        plan = reading.plan
        assert isinstance(plan, PatchLog)
        plan.begin()
        for found in records(self._fs, ref.locator, reading.start):
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
        if kind == "user":
            yield Message("user", _origin(parts), parts, time, name, place=place)
        elif kind == "gemini":
            yield from _answer(record, parts, Message("assistant", AGENT, (), time, name, place=place))
        elif kind in _NOTICES:
            yield Message("system", HARNESS, parts, time, name, place=place)
        else:
            yield Message(None, HARNESS, (Other("record", record),), time, place=place)


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
    model = text_or_none(record.get("model"))
    yield replace(message, parts=(*thoughts, *parts, *calls), model=model, usage=usage)
    if results:
        yield Message(
            "tool", TOOL, tuple(results), time or message.time, parent=message.id, place=message.place
        )


def _pieces(data: bytes, path: str) -> Iterator[Record | Problem]:
    """The messages of a document, then its other fields; of a damaged document what is whole."""
    from sessionary.codec import Place as Damaged
    from sessionary.codec import Undecodable, decode, problem

    try:
        document = decode_as(data, type=_Document)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    else:
        at, line = 0, 1
        for raw in map(bytes, document.messages):
            begin = data.index(raw, at)
            line, at = line + data.count(b"\n", at, begin), begin
            try:
                yield Record(object_or_value(decode(raw)), line, at, raw)
            except Undecodable as error:
                yield problem(error.code, Damaged(path, line, at), len(raw))
        yield _head(document.summary, document.kind)
        return
    try:
        value = decode(data)  # reads more: halves of surrogate pairs, numbers of any length
    except Undecodable as error:
        words = f"the document is damaged: {error}"
        yield problem(error.code, Damaged(path, None, error.at or 0), len(data), words)
        yield from _whole_pieces(data)
        return
    messages = object_of(value).get("messages")
    if not isinstance(messages, list):
        yield problem(
            "not_an_object", Damaged(path, None, 0), len(data), "the file holds no list of messages"
        )
        yield from _whole_pieces(data)
        return
    yield from (Record(object_or_value(one), 1, 0, b"") for one in messages)
    yield _head(value.get("summary"), value.get("kind"))


def _head(summary: Any, kind: Any) -> Record:
    return Record({"sessionId": "", "summary": summary, "kind": kind, "messages": []}, 1, 0, b"")


def _whole_pieces(data: bytes) -> Iterator[Record]:
    """The whole messages of a damaged document, found by the indentation that Gemini CLI writes."""
    from sessionary.codec import Undecodable, decode

    starts = [found.start() + 1 for found in re.finditer(rb"\n {4}\{", data)]
    line, counted = 1, 0
    for low, high in zip(starts, [*starts, len(data)][1:], strict=True):
        line, counted = line + data.count(b"\n", counted, low), low
        end = data.rfind(b"\n    }", low, high) + len(b"\n    }")
        try:
            value = decode(data[low:end])
        except Undecodable:
            continue
        if isinstance(value, dict):
            yield Record(value, line, low, data[low:end])
    found = re.search(rb'\n  "summary": ("[^\n]*"),?\r?\n', data)
    try:
        summary = decode(found[1]) if found else None
    except Undecodable:
        return
    yield _head(summary, None)
