"""The sessions of Qwen Code: `projects/<folder>/chats/<id>.jsonl` below `~/.qwen`. Read-only.

Each line is a record of a tree by ``uuid`` and ``parentUuid``, with content as the Gemini API has it. A rewind
continues at an older record. Between the messages lie records of type ``system`` with many subtypes, of which a few
say something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, copied_from
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
    Place,
    SessionRef,
    Text,
    ToolResult,
)
from sessionary.transcript.branches import Node

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck

RUNTIME, HOME = "QWEN_RUNTIME_DIR", "QWEN_HOME"

_BESIDE_THE_LINE = frozenset({"custom_title", "session_artifact_event", "session_artifact_snapshot"})
"""Subtypes of records that may be added without moving the end of the conversation."""
_NO_MESSAGES = _BESIDE_THE_LINE | frozenset(
    "agent_bootstrap agent_retry agent_session_ready at_command attribution_snapshot branch_checkpoint"
    " file_history_snapshot parent_session rewind session_approval_mode session_execution_engine session_model"
    " session_source turn_result ui_telemetry".split()
)
_TYPES = frozenset({"user", "assistant", "tool_result"})
_COUNTS = (
    ("promptTokenCount", "input"),
    ("candidatesTokenCount", "output"),
    ("cachedContentTokenCount", "cached"),
    ("thoughtsTokenCount", "thoughts"),
    ("toolUsePromptTokenCount", "tool"),
    ("totalTokenCount", "total"),
)


class QwenLayout(LogLayout):
    """The sessions of Qwen Code below its folder."""

    name: ClassVar[str] = "qwen"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("projects/", "tmp/")
    versions: ClassVar[bool] = True

    relisted: ClassVar[str | None] = "Qwen Code lists it in its project"

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.path.expanduser(os.environ.get(RUNTIME) or os.environ.get(HOME) or "~/.qwen"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["qwen", "--resume", ref.session_id]

    def _files(self) -> Iterator[str]:
        for root in (f"{self.home}/projects", f"{self.home}/tmp"):
            for project in self._names(root):
                yield from self._paths(f"{root}/{project}/chats")
                below = f"{root}/{project}/subagents"
                for parent in self._names(below):
                    yield from self._paths(f"{below}/{parent}")

    def _ref(self, path: str) -> SessionRef | None:
        stem, suffix = os.path.splitext(path.removeprefix(f"{self.home}/"))
        root, *between, name = stem.split("/")
        if suffix != ".jsonl" or root not in ("projects", "tmp") or name.startswith("session-"):
            return None  # the last is one of Gemini CLI, in a home that both share
        depth = {"chats": 2, "subagents": 3}.get(between[1] if len(between) > 1 else "")
        return SessionRef(self.name, name, path, between[0]) if len(between) == depth else None

    def files(self, ref: SessionRef) -> dict[str, str]:
        project, chats = os.path.split(os.path.dirname(ref.locator))
        below = self._files_below(f"{project}/subagents/{ref.session_id}") if chats == "chats" else ()
        return self._below_home([ref.locator, *below])

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.qwen_check import QwenCheck

        return QwenCheck(ref, _node, self._fs)

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        return TreePlan(_node, state, split=True)

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        if _is_of_sub_agent(ref):
            yield Fact("parent", os.path.basename(os.path.dirname(ref.locator)), 1)
            yield Fact("nested", "sub-agent")

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        subtype, payload = text_or_none(record.get("subtype")), object_of(record.get("systemPayload"))
        for key, name in (("cwd", "cwd"), ("gitBranch", "branch"), ("version", "version")):
            value = text_or_none(record.get(key))
            if value and subtype not in _BESIDE_THE_LINE:
                yield Fact(name, value)
        if subtype == "custom_title" and isinstance(payload.get("customTitle"), str):
            yield Fact("title", payload["customTitle"], 1)
        elif subtype == "parent_session" and (parent := text_or_none(payload.get("parentSessionId"))):
            yield Fact("parent", parent, 1)
            yield Fact("nested", "sub-agent")
        if origin := text_or_none(object_of(record.get("forkedFrom")).get("sessionId")):
            yield Fact("parent", origin)

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

        kind, subtype = text_or_none(record.get("type")), text_or_none(record.get("subtype"))
        time, name = parse_time(record.get("timestamp")), text_or_none(record.get("uuid"))
        empty = Message(
            "system", HARNESS, (), time, name, text_or_none(record.get("parentUuid")), place=place
        )
        if kind == "user":
            yield from _said(record, subtype, empty, is_task=_is_of_sub_agent(ref))
        elif kind == "assistant":
            message = _answer(record, empty)
            yield replace(message, usage=None) if copied_from(self._fs, ref, record) else message
        elif kind == "tool_result":
            yield _result(record, empty)
        elif kind == "system" and subtype in _NO_MESSAGES:
            return
        elif kind == "system" and (text := _notice(record, subtype)):
            origin = COMPACTION if subtype == "chat_compression" else HARNESS
            yield replace(empty, origin=origin, parts=(Text(text),))
        else:
            yield Message(None, HARNESS, (Other("record", record),), time, place=place)


def _node(record: dict[str, Any]) -> Node | None:
    uuid, subtype = text_or_none(record.get("uuid")), text_or_none(record.get("subtype"))
    if uuid is None:
        return None
    beside = subtype in _BESIDE_THE_LINE
    shown = text_or_none(record.get("type")) in _TYPES or subtype not in _NO_MESSAGES
    return Node(uuid, text_or_none(record.get("parentUuid")), not beside, beside, shown)


def _is_of_sub_agent(ref: SessionRef) -> bool:
    return os.path.basename(os.path.dirname(os.path.dirname(ref.locator))) == "subagents"


def _said(record: dict[str, Any], subtype: str | None, empty: Message, *, is_task: bool) -> Iterator[Message]:
    """A message of the user, and what the program added to it.

    Args:
        record: the record.
        subtype: its subtype.
        empty: the message without parts.
        is_task: in the file of a sub-agent, where a record with ``agentId`` states the task.
    """
    from sessionary.layouts.agents.google_parts import parts_of

    parts = tuple(parts_of(object_of(record.get("message")).get("parts")))
    shown = object_of(record.get("systemPayload")).get("displayText")
    person = subtype in (None, "mid_turn_user_message") and (is_task or not record.get("agentId"))
    message = replace(empty, role="user", origin=PERSON if person else HARNESS)
    if not isinstance(shown, str):
        yield replace(message, parts=parts)
        return
    added = [part for part in parts if isinstance(part, Text) and part.text != shown]
    others = [part for part in parts if not isinstance(part, Text)]
    yield replace(message, parts=(*((Text(shown),) if shown else ()), *others))
    if added:
        yield replace(message, origin=HARNESS, parts=tuple(added), id=None)


def _answer(record: dict[str, Any], empty: Message) -> Message:
    from sessionary.layouts.agents.google_parts import parts_of, usage_of

    counts, usage = record.get("usageMetadata"), None
    if isinstance(counts, dict) and counts:
        usage = usage_of(*(counts.get(new, counts.get(old)) for new, old in _COUNTS))
    parts = tuple(parts_of(object_of(record.get("message")).get("parts")))
    model = text_or_none(record.get("model"))
    return replace(empty, role="assistant", origin=AGENT, parts=parts, model=model, usage=usage)


def _result(record: dict[str, Any], empty: Message) -> Message:
    """The results of tools; whether they failed is stored beside them."""
    from sessionary.layouts.agents.google_parts import parts_of, result_text

    stated = object_of(record.get("toolCallResult"))
    failed = text_or_none(stated.get("status")) in ("error", "cancelled")
    parts = [
        replace(part, is_error=part.is_error or failed) if isinstance(part, ToolResult) else part
        for part in parts_of(object_of(record.get("message")).get("parts"))
    ]
    if not any(isinstance(part, ToolResult) for part in parts):
        words = result_text(stated.get("resultDisplay")) if stated.get("resultDisplay") is not None else ""
        parts.append(ToolResult(text_or_none(stated.get("callId")), words, failed))
    return replace(empty, role="tool", origin=TOOL, parts=tuple(parts))


def _notice(record: dict[str, Any], subtype: str | None) -> str | None:
    """The text of a system record; None without one."""
    from sessionary.layouts.agents.google_parts import texts_only

    payload = object_of(record.get("systemPayload"))
    if subtype == "chat_compression":
        history = list_of(payload.get("compressedHistory"))
        summary = texts_only(object_of(history[0]).get("parts")) if history else ""
        return summary or "chat_compression"
    if subtype == "slash_command":
        items = [object_of(one).get("text") for one in list_of(payload.get("outputHistoryItems"))]
        words = "\n".join(one for one in items if isinstance(one, str))
        return words or text_or_none(payload.get("rawCommand"))
    for key in ("displayText", "text", "message"):
        if text := text_or_none(payload.get(key)):
            return text
    return texts_only(object_of(record.get("message")).get("parts")) or None
