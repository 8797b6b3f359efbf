"""The sessions of Pi: `sessions/<folder>/<time>_<id>.jsonl` below `~/.pi/agent`. Read-only.

The first line is a header. The others are entries of a tree by ``id`` and ``parentId``: the last one is the end of the
conversation, and whatever branches off its line was left. Files of version 1 have no ids and are linear.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from sessionary.disk.fs import is_file
from sessionary.layouts.agents.fields import cost_of, count_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory
from sessionary.layouts.agents.trees import TreePlan
from sessionary.layouts.base import Capability
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    TOOL,
    Fact,
    Message,
    Other,
    Part,
    Place,
    SessionRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from sessionary.transcript.branches import Node

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck

HOME = "PI_CODING_AGENT_DIR"
_NAME = re.compile(r"\d[\dTZ.:-]*_(.+)")
_ROOT = "\0root"
"""The parent of entries without one. If there are several, all but one of them begin abandoned branches."""

_NO_MESSAGES = frozenset(
    "session model_change thinking_level_change active_tools_change label session_info custom leaf".split()
)


class PiLayout(LogLayout):
    """The sessions of Pi below its folder."""

    name: ClassVar[str] = "pi"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("sessions/",)

    relisted: ClassVar[str | None] = "Pi lists it in the folder of its project"

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.path.expanduser(os.environ.get(HOME) or "~/.pi/agent"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["pi", "--session", ref.locator]

    def _files(self) -> Iterator[str]:
        root = f"{self.home}/sessions"
        for name in self._names(root):
            if name.endswith(".jsonl"):
                yield f"{root}/{name}"
            else:
                yield from self._paths(f"{root}/{name}")

    def _ref(self, path: str) -> SessionRef | None:
        stem, suffix = os.path.splitext(path.removeprefix(f"{self.home}/sessions/"))
        folder, slash, name = stem.rpartition("/")
        named = _NAME.fullmatch(name)
        if suffix != ".jsonl" or "/" in folder or (not slash and named is None):
            return None
        return SessionRef(self.name, named[1] if named else name, path, folder or None)

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.pi_check import PiCheck

        return PiCheck(ref, _node, _ROOT)

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        return TreePlan(_node, state)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        kind = text_or_none(record.get("type"))
        if kind == "session":
            if cwd := text_or_none(record.get("cwd")):
                yield Fact("cwd", cwd)
            if origin := text_or_none(record.get("parentSession") or record.get("branchedFrom")):
                name = os.path.splitext(re.split(r"[/\\]", origin)[-1])[0]
                named = _NAME.fullmatch(name)
                yield Fact("parent", named[1] if named else name)
                beside = f"{os.path.dirname(ref.locator)}/{name}.jsonl"
                if any(is_file(self._fs, path) for path in (origin, beside)):
                    memory["forked"] = text_or_none(record.get("timestamp"))
        elif kind == "session_info" and isinstance(record.get("name"), str):
            yield Fact("title", record["name"], 1)
        elif kind == "model_change":
            memory["model"] = text_or_none(record.get("modelId")) or memory.get("model")

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

        kind, inner = text_or_none(record.get("type")), record.get("message")
        if kind in _NO_MESSAGES:
            return
        time = parse_time(record.get("timestamp")) or parse_time(object_of(inner).get("timestamp"))
        name, parent = text_or_none(record.get("id")), text_or_none(record.get("parentId"))
        empty = Message("system", HARNESS, (), time, name, parent, place=place)
        if kind == "message" and isinstance(inner, dict):
            message = _message(inner, empty, memory)
        elif kind in ("compaction", "branch_summary"):
            text = (Text(str(record.get("summary") or kind)),)
            usage = _usage(record.get("usage"))
            model = memory.get("model") if usage else None
            message = replace(empty, origin=COMPACTION, parts=text, model=model, usage=usage)
        elif kind == "custom_message":
            message = replace(empty, parts=tuple(_parts(record.get("content"))))
        else:
            message = Message(None, HARNESS, (Other("record", record),), time, place=place)
        forked = parse_time(memory.get("forked"))
        copied = forked is not None and time is not None and time < forked
        yield replace(message, usage=None) if copied else message


def _node(record: dict[str, Any]) -> Node | None:
    kind, name = text_or_none(record.get("type")), text_or_none(record.get("id"))
    if kind == "session":
        return Node(_ROOT, None, shown=False)
    if name is None:
        return None
    parent = text_or_none(record.get("targetId" if kind == "leaf" else "parentId"))
    return Node(name, parent or _ROOT, shown=kind not in _NO_MESSAGES)


def _message(inner: dict[str, Any], empty: Message, memory: Memory) -> Message:
    """The message of an entry, by its role."""
    role, parts, usage = (
        text_or_none(inner.get("role")),
        tuple(_parts(inner.get("content"))),
        _usage(inner.get("usage")),
    )
    if role == "user":
        return replace(empty, role="user", origin=PERSON, parts=parts)
    if role == "assistant":
        if failure := text_or_none(inner.get("errorMessage")):
            parts = (*parts, Other("error", failure))
        model = text_or_none(inner.get("model"))
        memory["model"] = model or memory.get("model")
        return replace(empty, role="assistant", origin=AGENT, parts=parts, model=model, usage=usage)
    if role == "toolResult":
        answer = ToolResult(
            text_or_none(inner.get("toolCallId")), inner.get("content"), inner.get("isError") is True
        )
        model = memory.get("model") if usage else None
        return replace(empty, role="tool", origin=TOOL, parts=(answer,), model=model, usage=usage)
    if role == "bashExecution":
        failed = inner.get("exitCode") not in (None, 0) or inner.get("cancelled") is True
        call = ToolCall(None, "bash", {"command": inner.get("command")})
        return replace(empty, role="user", parts=(call, ToolResult(None, inner.get("output"), failed)))
    if role in ("branchSummary", "compactionSummary"):
        return replace(empty, origin=COMPACTION, parts=(Text(str(inner.get("summary") or role)),))
    if role == "system":
        sections = [text for text in object_of(inner.get("sections")).values() if isinstance(text, str)]
        return replace(empty, parts=(*parts, *map(Text, sections)))
    if role in ("custom", "hookMessage"):
        return replace(empty, parts=parts)
    return replace(empty, role=role, parts=parts or (Other("record", inner),))


def _parts(content: Any) -> Iterator[Part]:
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            if block:
                yield Text(block)
            continue
        kind = object_of(block).get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            yield Text(block["text"])
        elif kind == "thinking":
            yield Thinking(text_or_none(block.get("thinking")) or "")
        elif kind == "toolCall":
            name = text_or_none(block.get("name")) or "?"
            yield ToolCall(text_or_none(block.get("id")), name, block.get("arguments"))
        elif block is not None:
            yield Other(str(kind), block)


def _usage(stated: Any) -> Usage | None:
    """Tokens, and the cost that Pi computed. The output includes the reasoning."""
    if not isinstance(stated, dict):
        return None
    cost = stated.get("cost")
    total = cost_of(cost.get("total") if isinstance(cost, dict) else cost)
    made, thought = count_of(stated.get("output")), count_of(stated.get("reasoning"))
    given, read, written = (count_of(stated.get(key)) for key in ("input", "cacheRead", "cacheWrite"))
    return Usage(given, made, read, written, min(thought, made), total)
