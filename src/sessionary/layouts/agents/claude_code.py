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
from typing import TYPE_CHECKING, Any, ClassVar

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
    Header,
    Message,
    Other,
    Place,
    Problem,
    SessionRef,
    Severity,
    Text,
    Usage,
    UsageEvent,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck
    from sessionary.transcript.fold import Fold

CONFIG = "CLAUDE_CONFIG_DIR"
KEPT_DAYS = "cleanupPeriodDays"
_AGENT_FILE = "agent-"
_DEPTH = 3
_FOLDERS = 8
"""How many further folders of a session are remembered."""

_WORDLESS = frozenset("api_error compact_boundary stop_hook_summary turn_duration".split())
"""Subtypes of notices that may have no text."""
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

    relisted: ClassVar[str | None] = "Claude Code lists it in the folder of its project"

    _elsewhere: tuple[tuple[str, float], frozenset[str]] | None = None
    """Responses that the last session in the background repeats, by its path and the time of its folder."""

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
                    yield from self._agents_in(f"{path}/subagents", _DEPTH)

    def _agents_in(self, folder: str, depth: int) -> Iterator[str]:
        """The sessions of sub-agents; those of a workflow are in a folder of their own."""
        for name in self._names(folder):
            if name.startswith(_AGENT_FILE) and name.endswith(".jsonl"):
                yield f"{folder}/{name}"
            elif depth and "." not in name:
                yield from self._agents_in(f"{folder}/{name}", depth - 1)

    def _ref(self, path: str) -> SessionRef | None:
        stem, suffix = os.path.splitext(path.removeprefix(f"{self.home}/projects/"))
        project, _, name = stem.partition("/")
        own = os.path.basename(name)
        if suffix != ".jsonl" or not name or ("/" in name and not _is_below_a_session(name, own)):
            return None
        return SessionRef(self.name, own, path, project)

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id.removeprefix(_AGENT_FILE)

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.claude_code_check import ClaudeCodeCheck

        return ClaudeCodeCheck(ref, self._fs, is_agent=_is_agent(ref))

    def check_home(self) -> Iterator[Problem]:
        """What lies beside the sessions, and folders that several projects share. Reads only."""
        from sessionary.layouts.agents.claude_code_check import shared_folders

        yield from self.leftovers()
        yield from shared_folders(self._fs, f"{self.home}/projects")

    def leftovers(self) -> Iterator[Problem]:
        """What is left of sessions whose own file is missing. Reads names only."""
        from sessionary.layouts.agents.claude_code_check import leftovers

        yield from leftovers(self._fs, f"{self.home}/projects", lambda one: self._agents_in(one, _DEPTH))

    def files(self, ref: SessionRef) -> dict[str, str]:
        return self._below_home([ref.locator, *self._files_below(ref.locator.removesuffix(".jsonl"))])

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        if _is_agent(ref):
            return TreePlan(_node, state)
        return TreePlan(_node, state, left_out=_of_sub_agent)

    def _stated(self, ref: SessionRef) -> Iterator[Fact]:
        if _is_agent(ref) and "/subagents/" in ref.locator:
            yield Fact("parent", os.path.basename(ref.locator.rpartition("/subagents/")[0]), 1)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        for fact in facts_of_record(record, memory):
            yield from (fact,) if fact.name != "cwd" else _folder(fact, memory)
        origin = record.get("forkedFrom")
        parents = (object_of(origin).get("sessionId"), record.get("sessionId") if _is_agent(ref) else None)
        for parent in parents:
            if parent and parent != memory.get("parent") and isinstance(parent, str):
                memory["parent"] = parent
                yield Fact("parent", parent)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        found = super().header(ref, fold)
        if folders := fold.fact("folders"):
            words = "the agent also worked in " + ", ".join(folders.split("\n"))
            note = Problem("other_folders", Severity.note, ref.locator, None, None, words, "none needed")
            found = replace(found, problems=[*found.problems, note])
        return found

    def _is_elsewhere(self, ref: SessionRef, record: dict[str, Any], response: str | None) -> bool:
        """True for a response that a session in the background repeats from the file that it was moved from."""
        from sessionary.layouts.agents.claude_code_forks import is_moved, responses_elsewhere

        if not is_moved(record):
            return False
        try:
            key = (ref.locator, self._fs.stat(os.path.dirname(ref.locator)).st_mtime)
        except OSError:
            return False
        known = self._elsewhere
        if known is None or known[0] != key:
            known = self._elsewhere = (key, responses_elsewhere(self._fs, ref.locator))
        return response in known[1]

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message | UsageEvent]:
        message = message_of_record(record, place)
        if message is None:
            return
        if message.model is not None:
            memory["model"] = message.model
        searches = count_of(object_of(record.get("toolUseResult")).get("searchCount"))
        counts = message.usage is not None or searches
        copied = counts and (
            copied_from(self._fs, ref, record) or self._is_elsewhere(ref, record, message.id)
        )
        yield replace(message, usage=None) if copied else message
        if searches and not copied:  # by a request of the tool, of which nothing else is stored
            yield UsageEvent(Usage(web_searches=searches), memory.get("model"), message.time)


def facts_of_record(record: dict[str, Any], known: Memory) -> Iterator[Fact]:
    """What a record says of its session: title, folder, branch, version. What is known already is left out."""
    kind = text_or_none(record.get("type"))
    if kind in _TITLES:
        key, rank = _TITLES[kind]
        if isinstance(record.get(key), str):
            yield Fact("title", record[key], rank)
    for key, name in _FACTS:
        value = record.get(key)
        if value and value != known.get(key) and isinstance(value, str):
            known[key] = value
            yield Fact(name, value)


def _is_below_a_session(name: str, own: str) -> bool:
    return "/subagents/" in name and own.startswith(_AGENT_FILE)


def _folder(stated: Fact, memory: Memory) -> Iterator[Fact]:
    """The folder in which a session began, by which Claude Code finds it; or all others so far, if there are few."""
    known: list[str] = memory.get("folders", [])
    if "folder" not in memory:
        memory["folder"] = stated.value
        yield stated
    elif stated.value not in (memory["folder"], *known) and len(known) < _FOLDERS:
        memory["folders"] = [*known, stated.value]
        yield Fact("folders", "\n".join(memory["folders"]))


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
    from sessionary.transcript.typed import author_and_parts

    kind, time = text_or_none(record.get("type")), parse_time(record.get("timestamp"))
    if kind in _NO_MESSAGES or kind in _TITLES:
        return None
    inner = record.get("message")
    if kind in ("user", "assistant") and isinstance(inner, dict):
        role, origin, parts = author_and_parts(inner if "role" in inner else {"role": kind, **inner})
        if kind == "assistant":
            origin = AGENT
        if record.get("isCompactSummary"):
            origin = COMPACTION
        elif origin == PERSON and record.get("isMeta"):
            origin = HARNESS
        model = inner.get("model")
        message = Message(
            role,
            origin,
            parts or (Other("record", record),),
            time,
            text_or_none(inner.get("id")) if kind == "assistant" else text_or_none(record.get("uuid")),
            text_or_none(record.get("parentUuid")),
            text_or_none(model) if model != "<synthetic>" else None,
            _usage(inner.get("usage")),
            place,
        )
        is_notice = origin == PERSON and _NOTICE.match(message.text)
        return replace(message, origin=HARNESS) if is_notice else message
    text = text_or_none(record.get("content"))
    if kind == "system" and record.get("subtype") in _WORDLESS:
        text = text or str(record["subtype"])
    if kind == "system" and text is not None:
        return Message("system", HARNESS, (Text(text),), time, text_or_none(record.get("uuid")), place=place)
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
