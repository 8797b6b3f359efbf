"""The sessions of Claude Code: `projects/<slug>/<id>.jsonl` below `~/.claude`, sub-agents beside and below. Read-only.

Each line is a record with a ``type``. Records of conversation form a tree by ``uuid`` and ``parentUuid``: a rewind
continues at an older record, and what it left stays in the file. A response of a model is stored in several records,
one for each block, that share ``message.id``. Titles, modes and snapshots lie between the messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from sessionary.layouts.agents.fields import count_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, copied_from
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.agents.trees import Node, TreePlan
from sessionary.layouts.base import Capability, Retention
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    Fact,
    Message,
    Other,
    Place,
    SessionRef,
    Text,
    Usage,
)

CONFIG = "CLAUDE_CONFIG_DIR"
KEPT_DAYS = "cleanupPeriodDays"
_AGENT_FILE = "agent-"

_TALK = frozenset({"user", "assistant", "system"})
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
_FACTS = (("cwd", "cwd"), ("gitBranch", "branch"), ("relocatedCwd", "cwd"), ("version", "version"))
_NO_MESSAGES = frozenset(
    "agent-color agent-name agent-setting attachment atis-latch bridge-session content-replacement"
    " file-history-snapshot frame-link last-prompt mode permission-mode pr-link progress queue-operation relocated"
    " result started tag worktree-state".split()
)
_NOTICE = re.compile(
    r"\s*(?:<(?:command|local-command|bash|ide|system-reminder|task)|Caveat: |\[Request interrupted)"
)


class ClaudeCodeLayout(LogLayout):
    """The sessions of Claude Code below one configuration folder."""

    name: ClassVar[str] = "claude_code"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(CONFIG) or os.path.expanduser("~/.claude"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["claude", "--resume", ref.session_id]

    def retention(self) -> Retention:
        path = f"{self.home}/settings.json"
        days = setting(self._fs, path, KEPT_DAYS)
        stated = isinstance(days, int | float) and not isinstance(days, bool)
        return (
            Retention(int(days), f"{KEPT_DAYS} in {path}")
            if stated
            else Retention(30, "the default of Claude Code")
        )

    def _files(self) -> Iterator[str]:
        root = f"{self.home}/projects"
        for project in self._names(root):
            for name in self._names(f"{root}/{project}"):
                path = f"{root}/{project}/{name}"
                if name.endswith(".jsonl"):
                    yield path
                elif "." not in name:
                    below = f"{path}/subagents"
                    yield from (f"{below}/{one}" for one in self._names(below) if one.endswith(".jsonl"))

    def _ref(self, path: str) -> SessionRef | None:
        stem, suffix = os.path.splitext(path.removeprefix(f"{self.home}/projects/"))
        project, _, name = stem.partition("/")
        if suffix != ".jsonl" or not name or ("/" in name and "/subagents/" not in name):
            return None
        return SessionRef(self.name, os.path.basename(name), path, project)

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id.removeprefix(_AGENT_FILE)

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        if _is_agent(ref):
            return TreePlan(_node, state)
        return TreePlan(_node, state, left_out=_of_sub_agent)

    def _stated(self, ref: SessionRef) -> Iterator[Fact]:
        if _is_agent(ref) and "/subagents/" in ref.locator:
            yield Fact("parent", os.path.basename(os.path.dirname(os.path.dirname(ref.locator))), 1)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        yield from facts_of_record(record)
        if origin := text_or_none(object_of(record.get("forkedFrom")).get("sessionId")):
            yield Fact("parent", origin)
        if _is_agent(ref) and isinstance(record.get("sessionId"), str):
            yield Fact("parent", record["sessionId"])

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message]:
        message = message_of_record(record, place)
        if message is not None:
            copied = message.usage is not None and copied_from(self._fs, ref, record)
            yield replace(message, usage=None) if copied else message


def facts_of_record(record: dict[str, Any]) -> Iterator[Fact]:
    """What a record says of its session: title, folder, branch, version."""
    kind = text_or_none(record.get("type"))
    if kind in _TITLES:
        key, rank = _TITLES[kind]
        if isinstance(record.get(key), str):
            yield Fact("title", record[key], rank)
    for key, name in _FACTS:
        if value := text_or_none(record.get(key)):
            yield Fact(name, value)


def _is_agent(ref: SessionRef) -> bool:
    return ref.session_id.startswith(_AGENT_FILE)


def _of_sub_agent(record: dict[str, Any]) -> str | None:
    return "of sub-agents" if record.get("isSidechain") else None


def _node(record: dict[str, Any]) -> Node | None:
    uuid = text_or_none(record.get("uuid"))
    if uuid is None:
        return None
    parent = text_or_none(record.get("parentUuid") or record.get("logicalParentUuid"))
    return Node(uuid, parent, record.get("type") in ("user", "assistant"), _stays_with_parent(record))


def _stays_with_parent(record: dict[str, Any]) -> bool:
    """True for the result of a tool, and for a block of a response: they belong to the record before them."""
    message = record.get("message")
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else None
    kind = first.get("type") if isinstance(first, dict) else None
    return kind in ("tool_result", "tool_use")


def message_of_record(record: dict[str, Any], place: Place) -> Message | None:
    """A record as a message; None for one that is none."""
    from sessionary.codec.times import parse_time  # here, since a list that reads nothing needs neither
    from sessionary.transcript.typed import message_of

    kind, time = text_or_none(record.get("type")), parse_time(record.get("timestamp"))
    if kind in _NO_MESSAGES or kind in _TITLES:
        return None
    inner = record.get("message")
    if kind in ("user", "assistant") and isinstance(inner, dict):
        message = message_of({"role": kind, **inner}, place)
        origin = message.origin if kind == "user" else AGENT
        if record.get("isCompactSummary"):
            origin = COMPACTION
        elif origin == PERSON and (record.get("isMeta") or _NOTICE.match(message.text)):
            origin = HARNESS
        model = inner.get("model")
        return replace(
            message,
            origin=origin,
            time=time,
            id=text_or_none(inner.get("id")) if kind == "assistant" else text_or_none(record.get("uuid")),
            parent=text_or_none(record.get("parentUuid")),
            model=text_or_none(model) if model != "<synthetic>" else None,
            usage=_usage(inner.get("usage")),
        )
    if kind in _TALK:
        text = record.get("content") or record.get("subtype") or ""
        return Message(
            "system", HARNESS, (Text(str(text)),), time, text_or_none(record.get("uuid")), place=place
        )
    return Message(None, HARNESS, (Other("record", record),), time, place=place)


def _usage(stated: Any) -> Usage | None:
    if not isinstance(stated, dict):
        return None
    return Usage(
        count_of(stated.get("input_tokens")),
        count_of(stated.get("output_tokens")),
        count_of(stated.get("cache_read_input_tokens")),
        count_of(stated.get("cache_creation_input_tokens")),
        cache_write_1h=count_of(object_of(stated.get("cache_creation")).get("ephemeral_1h_input_tokens")),
        web_searches=count_of(object_of(stated.get("server_tool_use")).get("web_search_requests")),
    )
