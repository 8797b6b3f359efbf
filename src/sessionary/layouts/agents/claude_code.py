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
from typing import Any, ClassVar, NamedTuple

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from sessionary.layouts.agents.reading import AgentLayout, setting
from sessionary.layouts.base import Retention
from sessionary.layouts.jsonl import read_jsonl
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
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
    Text,
    Usage,
)
from sessionary.transcript.branches import Tip, Tree

CONFIG = "CLAUDE_CONFIG_DIR"
KEPT_DAYS = "cleanupPeriodDays"
_AGENT_FILE = "agent-"

_TALK = frozenset({"user", "assistant", "system"})
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
_NO_MESSAGES = frozenset(
    "agent-color agent-name agent-setting attachment atis-latch bridge-session content-replacement"
    " file-history-snapshot frame-link last-prompt mode permission-mode pr-link progress queue-operation relocated"
    " result started tag worktree-state".split()
)
_NOTICE = re.compile(
    r"\s*(?:<(?:command|local-command|bash|ide|system-reminder|task)|Caveat: |\[Request interrupted)"
)


class _State(Struct, array_like=True):
    """What a cursor holds: that of the file, the tip of the line, and the response that the last message belongs to."""

    position: bytes
    tip: Tip
    response: str | None


class _Outline(NamedTuple):
    """What a first pass over the records found.

    Attributes:
        start: the cursor of the file behind which the records lie; None for its start.
        end: that behind them; None where reading cannot go on.
        tip: the tip of the line.
        abandoned: the records of branches that the conversation left.
        sidechains: number of records of sub-agents.
    """

    start: Cursor | None
    end: Cursor | None
    tip: Tip
    abandoned: set[str]
    sidechains: int


class ClaudeCodeLayout(AgentLayout):
    """The sessions of Claude Code below one configuration folder."""

    name: ClassVar[str] = "claude_code"

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(CONFIG) or os.path.expanduser("~/.claude"))

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

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        is_agent = ref.session_id.startswith(_AGENT_FILE)
        state = None if after is None else _state_of(after)
        outline = None if state is None else self._continued(ref, state, is_agent=is_agent)
        if outline is None:
            if after is not None:
                yield Reset()
            state, outline = None, self._outline(ref, is_agent=is_agent)
        if is_agent and "/subagents/" in ref.locator:
            yield Fact("parent", os.path.basename(os.path.dirname(os.path.dirname(ref.locator))), 1)
        yield from _notes(ref.locator, outline)
        response = state.response if state else None
        for item in _whole_responses(self._records(ref, outline, is_agent=is_agent)):
            if isinstance(item, Message):
                response = item.id if item.role == "assistant" else None
            yield item
        if outline.end is not None:
            yield Cursor(msgpack.encode(_State(outline.end.state, outline.tip, response)))

    def _records(self, ref: SessionRef, outline: _Outline, *, is_agent: bool) -> Iterator[Item]:
        """The records of the line as messages, and what else they say."""
        seen: set[str] = set()
        for found in read_jsonl(self._fs, ref.locator, outline.start):
            if isinstance(found, Problem):
                yield found
            if not isinstance(found, Record):
                continue
            record, uuid = found.value, found.value.get("uuid")
            yield from _facts(record, is_agent=is_agent)
            if uuid in outline.abandoned or uuid in seen or (record.get("isSidechain") and not is_agent):
                continue
            if isinstance(uuid, str):
                seen.add(uuid)
            message = _message(record, Place(ref.locator, found.line, found.byte))
            if message is not None:
                yield message

    def _outline(self, ref: SessionRef, *, is_agent: bool) -> _Outline:
        """Find the branches that the conversation left."""
        tree, sidechains, end = Tree(), 0, None
        for found in read_jsonl(self._fs, ref.locator):
            end = found if isinstance(found, Cursor) else None
            record = found.value if isinstance(found, Record) else {}
            if record.get("isSidechain") and not is_agent:
                sidechains += 1
            elif uuid := _text(record.get("uuid")):
                tree.add(uuid, _parent(record), speaks=_speaks(record), stays=_stays_with_parent(record))
        gone = tree.abandoned()
        return _Outline(None, end, tree.tip(gone), gone, sidechains)

    def _continued(self, ref: SessionRef, state: _State, *, is_agent: bool) -> _Outline | None:
        """The records behind a cursor, if all of them continue the line; None if the whole file must be read."""
        start, end, first = Cursor(state.position), None, True
        tip = Tip(list(state.tip.recent), list(state.tip.missing))
        for found in read_jsonl(self._fs, ref.locator, start):
            end = found if isinstance(found, Cursor) else None
            record = found.value if isinstance(found, Record) else {}
            if isinstance(found, Reset) or (record.get("isSidechain") and not is_agent):
                return None
            if first and record.get("type") in _TALK:
                inner, first = record.get("message"), False
                if state.response and isinstance(inner, dict) and inner.get("id") == state.response:
                    return None  # more of a response that was yielded
            uuid = _text(record.get("uuid"))
            parent, stays = _parent(record), _stays_with_parent(record)
            if uuid and not tip.extend(uuid, parent, speaks=_speaks(record), stays=stays):
                return None
        return _Outline(start, end, tip, set(), 0)


def _state_of(after: Cursor) -> _State | None:
    try:
        return msgpack.decode(after.state, type=_State)
    except MsgspecError:
        return None


def _parent(record: dict[str, Any]) -> str | None:
    return _text(record.get("parentUuid") or record.get("logicalParentUuid"))


def _speaks(record: dict[str, Any]) -> bool:
    return record.get("type") in ("user", "assistant")


def _whole_responses(items: Iterator[Item]) -> Iterator[Item]:
    """The items, with the records of one response joined to one message, which stands where the first of them does."""
    pending: Message | None = None
    behind: list[Item] = []
    for item in items:
        if not isinstance(item, Message):
            behind.append(item)
            continue
        if pending is not None and pending.role == "assistant" and pending.id == item.id is not None:
            pending = _joined(pending, item)
            continue
        yield from (*(() if pending is None else (pending,)), *behind)
        pending, behind = item, []
    yield from (*(() if pending is None else (pending,)), *behind)


def _notes(path: str, outline: _Outline) -> Iterator[Problem]:
    """Report what is in the file and is not shown."""
    for count, what in (
        (len(outline.abandoned), "of branches that were rewound or abandoned"),
        (outline.sidechains, "of sub-agents"),
    ):
        if count:
            words = (
                f"1 record {what} is not shown" if count == 1 else f"{count:,} records {what} are not shown"
            )
            yield Problem("not_shown", Severity.note, path, None, None, words, "none needed")


def _stays_with_parent(record: dict[str, Any]) -> bool:
    """True for the result of a tool, and for a block of a response: they belong to the record before them."""
    message = record.get("message")
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else None
    kind = first.get("type") if isinstance(first, dict) else None
    return kind in ("tool_result", "tool_use")


def _facts(record: dict[str, Any], *, is_agent: bool) -> Iterator[Fact]:
    kind = record.get("type")
    if kind in _TITLES:
        key, rank = _TITLES[kind]
        if isinstance(record.get(key), str):
            yield Fact("title", record[key], rank)
    for key, name in (
        ("cwd", "cwd"),
        ("gitBranch", "branch"),
        ("relocatedCwd", "cwd"),
        ("version", "version"),
    ):
        if isinstance(record.get(key), str) and record[key]:
            yield Fact(name, record[key])
    if is_agent and isinstance(record.get("sessionId"), str):
        yield Fact("parent", record["sessionId"])


def _message(record: dict[str, Any], place: Place) -> Message | None:
    """A record as a message; None for one that is none."""
    from sessionary.codec.times import parse_time  # here, since a list that reads nothing needs neither
    from sessionary.transcript.typed import message_of

    kind, time = record.get("type"), parse_time(record.get("timestamp"))
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
            id=_text(inner.get("id")) if kind == "assistant" else _text(record.get("uuid")),
            parent=_text(record.get("parentUuid")),
            model=_text(model) if model != "<synthetic>" else None,
            usage=_usage(inner.get("usage")),
        )
    if kind in _TALK:
        text = record.get("content") or record.get("subtype") or ""
        return Message("system", HARNESS, (Text(str(text)),), time, _text(record.get("uuid")), place=place)
    return Message(None, HARNESS, (Other("record", record),), time, place=place)


def _joined(first: Message, second: Message) -> Message:
    """One response from two of its records; each of them states the usage of the whole so far."""
    parts = (*first.parts, *(part for part in second.parts if part not in first.parts))
    usages = [one for one in (first.usage, second.usage) if one is not None]
    return replace(first, parts=parts, usage=max(usages, key=lambda one: one.output, default=None))


def _usage(stated: Any) -> Usage | None:
    if not isinstance(stated, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(*(_count(stated.get(name)) for name in names))


def _count(value: Any) -> int:
    """A number of tokens; old files have them as text."""
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
