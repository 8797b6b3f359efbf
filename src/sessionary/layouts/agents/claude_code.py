"""The sessions of Claude Code: `projects/<slug>/<id>.jsonl` below `~/.claude`, sub-agents beside and below. Read-only.

Each line is a record with a ``type``. Records of conversation form a tree by ``uuid`` and ``parentUuid``: a rewind
continues at an older record, and what it left stays in the file. A response of a model is stored in several records,
one for each block, that share ``message.id``. Titles, modes and snapshots lie between the messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from sessionary.layouts.abilities import Retention
from sessionary.layouts.agents.fields import count_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, copied_from, origin_of
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.agents.trees import TreePlan
from sessionary.layouts.base import Capability
from sessionary.model import Fact, Header, Message, Place, Problem, SessionRef, Severity, Usage, UsageEvent
from sessionary.transcript.branches import Node

if TYPE_CHECKING:
    from sessionary.layouts.agents.claude_code_forks import RepeatedResponses
    from sessionary.layouts.agents.log_check import LogCheck
    from sessionary.transcript.fold import Fold

CONFIG = "CLAUDE_CONFIG_DIR"
KEPT_DAYS = "cleanupPeriodDays"
_AGENT_FILE = "agent-"
_DEPTH = 3
_FORKED = frozenset({"forkedFrom", "requestSessionId"})
"""Keys of records that a fork copied; `origin_of` reads them."""
_FOLDERS = 8
"""Maximum number of other folders of a session that are stored."""

_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
_FACTS = (("cwd", "cwd"), ("gitBranch", "branch"), ("relocatedCwd", "cwd"), ("version", "version"))


class ClaudeCodeLayout(LogLayout):
    """The sessions of Claude Code below one configuration folder."""

    name: ClassVar[str] = "claude_code"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})

    relisted: ClassVar[str | None] = "Claude Code lists it in the folder of its project"

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(CONFIG) or os.path.expanduser("~/.claude"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["claude", "--resume", ref.session_id]

    def retention(self) -> Retention:
        path = f"{self.home}/settings.json"
        days = setting(self._fs, path, KEPT_DAYS)
        if isinstance(days, bool) or not isinstance(days, int | float):
            return Retention(30, "the default of Claude Code")
        return Retention(int(days), f"{KEPT_DAYS} in {path}")

    def _files(self) -> Iterator[str]:
        root = f"{self.home}/projects"
        for project in self._names(root):
            for name in self._names(f"{root}/{project}"):
                path = f"{root}/{project}/{name}"
                if name.endswith(".jsonl"):
                    yield path
                elif "." not in name:
                    yield from self._agents_in(path)

    def _agents_in(self, folder: str) -> list[str]:
        """The sessions of sub-agents; those of a workflow are in a folder of their own."""
        return self._paths(f"{folder}/subagents", depth=_DEPTH)

    def _ref(self, path: str) -> SessionRef | None:
        place = path.removeprefix(f"{self.home}/projects/")
        project, _, name = place.removesuffix(".jsonl").partition("/")
        own = name.rpartition("/")[2]
        is_below = "/subagents/" in name and own.startswith(_AGENT_FILE)
        if not place.endswith(".jsonl") or not own or (own != name and not is_below):
            return None
        return SessionRef(self.name, own, path, project)

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id.removeprefix(_AGENT_FILE)

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.claude_code_check import ClaudeCodeCheck

        return ClaudeCodeCheck(ref, self._fs, is_agent=_is_agent(ref))

    def check_home(self) -> Iterator[Problem]:
        """Folders that several projects share. Reads only."""
        from sessionary.layouts.agents.claude_code_check import shared_folders

        return shared_folders(self._names, self._fs, f"{self.home}/projects")

    def leftovers(self) -> Iterator[Problem]:
        from sessionary.layouts.agents.claude_code_check import leftovers

        return leftovers(self._names, f"{self.home}/projects", self._agents_in)

    def files(self, ref: SessionRef) -> dict[str, str]:
        return self._below_home([ref.locator, *self._files_below(ref.locator.removesuffix(".jsonl"))])

    def _plan(self, ref: SessionRef, state: bytes | None) -> TreePlan:
        return TreePlan(_node, state, beside=None if _is_agent(ref) else "isSidechain")

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        if _is_agent(ref) and "/subagents/" in ref.locator:
            yield Fact("parent", os.path.basename(ref.locator.rpartition("/subagents/")[0]), 1)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Sequence[Fact]:
        stated = facts_of_record(record, memory)
        if not stated and not _is_agent(ref) and _FORKED.isdisjoint(record):
            return stated  # as of most records
        found: list[Fact] = []
        for fact in stated:
            found += (fact,) if fact.name != "cwd" else _folder(fact, memory)
        parents = (origin_of(record), record.get("sessionId") if _is_agent(ref) else None)
        for parent in parents:
            if parent not in (None, "", ref.session_id, memory.get("parent")) and isinstance(parent, str):
                memory["parent"] = parent
                found.append(Fact("parent", parent))
        return found

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        found = super().header(ref, fold)
        if folders := fold.fact("folders"):
            words = "the agent also worked in " + ", ".join(folders.split("\n"))
            note = Problem.of_file("other_folders", Severity.note, ref.locator, words, "none needed")
            found = replace(found, problems=[*found.problems, note])
        return found

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Sequence[Message | UsageEvent]:
        message = self._decode(record, place)
        if message is None:
            return ()
        if message.model is not None:
            memory["model"] = message.model
        result = record.get("toolUseResult")
        searches = count_of(result.get("searchCount")) if isinstance(result, dict) else 0
        if (message.usage is not None or searches) and self._is_copied(ref, record, message.id):
            return (replace(message, usage=None),)
        if searches:  # by a request of the tool, of which nothing else is stored
            return (message, UsageEvent(Usage(web_searches=searches), memory.get("model"), message.time))
        return (message,)

    @cached_property
    def _decode(self) -> Callable[[dict[str, Any], Place], Message | None]:
        """A record as a message."""
        from sessionary.layouts.agents.claude_code_records import message_of_record

        return message_of_record  # loaded once: a list that reads nothing does not need it

    def _is_copied(self, ref: SessionRef, record: dict[str, Any], response: str | None) -> bool:
        """True for a record that another session holds too, which counts its usage."""
        if not _FORKED.isdisjoint(record) and copied_from(self._fs, ref, record) is not None:
            return True
        return record.get("sessionKind") == "bg" and self._repeated.has(ref.locator, response)

    @cached_property
    def _repeated(self) -> RepeatedResponses:
        from sessionary.layouts.agents.claude_code_forks import RepeatedResponses  # few sessions need it

        return RepeatedResponses(self._fs)


def facts_of_record(record: dict[str, Any], known: Memory) -> list[Fact]:
    """Facts of the session in a record: title, folder, branch, version. Known facts are left out."""
    found: list[Fact] = []
    kind = record.get("type")
    if isinstance(kind, str) and kind in _TITLES:
        key, rank = _TITLES[kind]
        if isinstance(record.get(key), str):
            found.append(Fact("title", record[key], rank))
    for key, name in _FACTS:
        if (value := record.get(key)) and value != known.get(key) and isinstance(value, str):
            known[key] = value
            found.append(Fact(name, value))
    return found


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


def _node(record: dict[str, Any]) -> Node | None:
    uuid = record.get("uuid")
    if not uuid or not isinstance(uuid, str):
        return None
    parent = text_or_none(record.get("parentUuid") or record.get("logicalParentUuid"))
    # The result of a tool, and a block of a response, belong to the record before them.
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    first = content[0] if content and isinstance(content, list) else None
    stays = isinstance(first, dict) and first.get("type") in ("tool_result", "tool_use")
    return Node(uuid, parent, record.get("type") in ("user", "assistant"), stays)
