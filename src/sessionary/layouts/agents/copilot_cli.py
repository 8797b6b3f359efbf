"""The sessions of GitHub Copilot CLI: `session-state/<id>/events.jsonl` below `~/.copilot`. Read-only.

Each line is an event. Some are messages, most of the others are notices, and a few state the model, the folder, or
the tokens that all responses of a session took. The title is in `workspace.yaml` beside the events.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import msgpack
from msgspec.structs import replace

from sessionary.disk.fs import is_file, read_bytes, size_of
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.copilot_events import NO_MESSAGES, NOTICES
from sessionary.layouts.agents.fields import count_of, decoded, list_of, object_of, text_or_none
from sessionary.layouts.agents.logs import LogLayout, Memory, Verdict
from sessionary.layouts.base import Capability
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    TOOL,
    Fact,
    Header,
    Message,
    Other,
    Place,
    Problem,
    Record,
    SessionRef,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageEvent,
)
from sessionary.model import Part as MessagePart

if TYPE_CHECKING:
    from sessionary.layouts.agents.log_check import LogCheck
    from sessionary.transcript.fold import Fold

HOME = "COPILOT_HOME"
RECENT = 64
"""Number of last events that are remembered. An event with the id of one of these is a copy."""
_EVENTS = "events.jsonl"
_WORKSPACE = "workspace.yaml"
_LARGEST_WORKSPACE = 1 << 20
_PLAIN_LINE = re.compile(rb"([a-z_]+):[ ]*([^\s'\"|>&*!%@`{\[#][^#\n]*)?\r?")

_NO_TEXT = ("", "~", "null", "true", "false")

_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")


class _Events:
    """The events that count; see `logs.Plan`. A rewind removes the event that it names and all up to itself.

    Args:
        state: digests of the last ids before a cursor; None to read from the start.
    """

    def __init__(self, state: bytes | None) -> None:
        self.hidden: Counter[str] = Counter()
        self.is_plain = False
        self._recent: list[bytes] = [] if state is None else msgpack.decode(state, type=list[bytes])
        self._numbers: dict[str, int] = {}
        self._removed: list[range] = []
        self._number = 0

    def survey(self, found: Record) -> None:
        record = found.value
        name = text_or_none(record.get("id"))
        if name and name not in self._numbers:
            self._numbers[name] = self._number
        target = object_of(record.get("data")).get("upToEventId")
        if (
            record.get("type") == "session.snapshot_rewind"
            and isinstance(target, str)
            and target in self._numbers
        ):
            self._removed.append(range(self._numbers[target], self._number))
        self._number += 1

    def follow(self, record: dict[str, Any]) -> bool:
        return record.get("type") != "session.snapshot_rewind"

    def settle(self) -> None:
        if gone := {number for removed in self._removed for number in removed}:
            self.hidden["removed by a rewind"] = len(gone)
        self._numbers, self._number = {}, 0

    def newest(self, record: dict[str, Any]) -> None:
        """None: an event is stored once, and a second one with its id is a copy."""

    def verdict(self, record: dict[str, Any]) -> Verdict:
        number, self._number = self._number, self._number + 1
        name = text_or_none(record.get("id"))
        if name:
            from sessionary.codec.seen import digest_of  # here: a list that reads nothing does not need it

            if (digest := digest_of(name)) in self._recent:
                return Verdict.COPY
            self._recent = [*self._recent[1 - RECENT :], digest]
        return Verdict.ASIDE if any(number in removed for removed in self._removed) else Verdict.SHOWN

    def state(self) -> bytes:
        return msgpack.encode(self._recent)


class CopilotCliLayout(LogLayout):
    """The sessions of GitHub Copilot CLI below its folder."""

    name: ClassVar[str] = "copilot_cli"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})
    places: ClassVar[tuple[str, ...]] = ("session-state/",)

    @classmethod
    def default_home(cls) -> Path:
        return Path(os.environ.get(HOME) or os.path.expanduser("~/.copilot"))

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["copilot", f"--resume={ref.session_id}"]

    def _files(self) -> Iterator[str]:
        root = f"{self.home}/session-state"
        names = self._names(root)
        for name in names:
            path = f"{root}/{name}"
            if name.endswith(".jsonl"):
                if name.removesuffix(".jsonl") not in names:
                    yield path
            elif is_file(self._fs, f"{path}/{_EVENTS}"):
                yield f"{path}/{_EVENTS}"
            else:
                self._names(path)  # reported if it cannot be read

    def _ref(self, path: str) -> SessionRef | None:
        name = path.removeprefix(f"{self.home}/session-state/").removesuffix(f"/{_EVENTS}")
        name = name.removesuffix(".jsonl")
        return None if "/" in name else SessionRef(self.name, name, path)

    def files(self, ref: SessionRef) -> dict[str, str]:
        if not ref.locator.endswith(f"/{_EVENTS}"):
            return super().files(ref)
        return self._below_home([ref.locator, *self._files_below(os.path.dirname(ref.locator))])

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        return super().ref_for_path(folder) or super().ref_for_path(folder / _EVENTS)

    def _check_of(self, ref: SessionRef) -> LogCheck:
        from sessionary.layouts.agents.copilot_cli_check import CopilotCliCheck  # as in `LogLayout`

        return CopilotCliCheck(ref, self._fs, str(self.home))

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.agents.copilot_cli_check import beside_problems

        yield from super().check(ref)
        if ref.locator.endswith(f"/{_EVENTS}"):
            yield from beside_problems(self._fs, ref)

    def _salt(self, ref: SessionRef) -> str | None:
        return fingerprint_of(self._fs, _workspace(ref), self._now()).hex() or None

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        yield from super().parts(ref)
        size = size_of(self._fs, _workspace(ref))
        if size is not None and ref.locator.endswith(f"/{_EVENTS}"):
            yield Part(_WORKSPACE, _workspace(ref), PartKind.DOCUMENT, size)

    def stated_title(self, ref: SessionRef) -> str | None:
        stated = self._workspace(ref)
        return stated.get("name") or stated.get("summary")

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        stated = self._workspace(ref)
        title = self.stated_title(ref)
        cwd, branch = fold.fact("cwd") or stated.get("cwd"), fold.fact("branch") or stated.get("branch")
        return replace(super().header(ref, fold), title=title, cwd=cwd, branch=branch)

    def _workspace(self, ref: SessionRef) -> dict[str, str]:
        """The texts of workspace.yaml; none if it is missing, damaged, or of another shape."""
        if not ref.locator.endswith(f"/{_EVENTS}"):
            return {}
        try:
            data = read_bytes(self._fs, _workspace(ref), limit=_LARGEST_WORKSPACE)
        except SessionaryError:
            return {}
        lines = [_PLAIN_LINE.fullmatch(line) for line in (data or b"").rstrip(b"\n").split(b"\n")]
        value: Any = None
        if all(lines):  # nearly always: then the parser of YAML need not be loaded
            value = {
                one[1].decode(): (one[2] or b"").decode("utf-8", "replace").strip() for one in lines if one
            }
        elif data:
            from sessionary.codec.yaml_read import load_yaml

            try:
                value = load_yaml(data)
            except SessionaryError:
                return {}
        return {
            key: one for key, one in object_of(value).items() if isinstance(one, str) and one not in _NO_TEXT
        }

    def _plan(self, ref: SessionRef, state: bytes | None) -> _Events:
        return _Events(state)

    def _facts(self, ref: SessionRef, record: dict[str, Any], memory: Memory) -> Iterator[Fact]:
        kind, data = text_or_none(record.get("type")), object_of(record.get("data"))
        context = data if kind == "session.context_changed" else object_of(data.get("context"))
        for stated, key, name in (
            (context, "cwd", "cwd"),
            (context, "branch", "branch"),
            (data if kind == "session.start" else {}, "copilotVersion", "version"),
            (data if kind == "session.title_changed" else {}, "title", "title"),
        ):
            if value := text_or_none(stated.get(key)):
                yield Fact(name, value, 1 if name == "title" else 0)
        model = text_or_none(data.get("newModel")) or text_or_none(data.get("selectedModel"))
        if model and kind in ("session.start", "session.resume", "session.model_change"):
            memory["model"] = model
        if kind == "session.resume":
            memory["since"] = {}

    def _messages(
        self, ref: SessionRef, record: dict[str, Any], place: Place, memory: Memory
    ) -> Iterator[Message | UsageEvent]:
        from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

        kind, data = text_or_none(record.get("type")), object_of(record.get("data"))
        empty = Message(
            "system",
            HARNESS,
            (),
            parse_time(record.get("timestamp")),
            text_or_none(record.get("id")),
            text_or_none(record.get("parentId")),
            place=place,
        )
        if kind == "session.shutdown":
            for model, usage in _rest(data, memory):
                yield UsageEvent(usage, model, empty.time, summed=True)
        elif kind == "session.usage_record":
            for model, usage in _recorded(data, memory):
                yield UsageEvent(usage, model, empty.time)
        elif kind == "assistant.message":
            yield _answer(data, empty, memory)
        elif kind == "session.compaction_complete":
            words = text_or_none(data.get("summaryContent")) or text_or_none(data.get("error")) or str(kind)
            yield replace(empty, origin=COMPACTION, parts=(Text(words),))
        elif kind in NOTICES:
            yield replace(empty, parts=(Text(text_or_none(data.get(NOTICES[kind])) or str(kind)),))
        elif kind not in NO_MESSAGES:
            yield _other(record, kind, data, empty)


def _workspace(ref: SessionRef) -> str:
    return f"{os.path.dirname(ref.locator)}/{_WORKSPACE}"


def _other(record: dict[str, Any], kind: Any, data: dict[str, Any], empty: Message) -> Message:
    if kind == "user.message":
        inner = data.get("parentToolCallId") or record.get("agentId")
        origin = PERSON if data.get("source") in (None, "user") and not inner else HARNESS
        given = [Other(str(object_of(one).get("type")), one) for one in list_of(data.get("attachments"))]
        return replace(empty, role="user", origin=origin, parts=(*_texts(data.get("content")), *given))
    if kind == "tool.execution_complete":
        result, error = object_of(data.get("result")), object_of(data.get("error"))
        words = text_or_none(result.get("content")) or text_or_none(error.get("message")) or ""
        answer = ToolResult(text_or_none(data.get("toolCallId")), words, data.get("success") is False)
        return replace(empty, role="tool", origin=TOOL, parts=(answer,))
    if kind == "assistant.reasoning":
        return replace(
            empty, role="assistant", origin=AGENT, parts=(Thinking(str(data.get("content") or "")),)
        )
    if kind == "tool.user_requested":
        name = text_or_none(data.get("toolName")) or "?"
        call = ToolCall(text_or_none(data.get("toolCallId")), name, data.get("arguments"))
        return replace(empty, role="user", parts=(call,))
    return Message(None, HARNESS, (Other("record", record),), empty.time, place=empty.place)


def _answer(data: dict[str, Any], empty: Message, memory: Memory) -> Message:
    """A response of the model, or of that of a sub-agent; a long one is stored in pieces with the same id."""
    parts = list[MessagePart]()
    if thought := text_or_none(data.get("reasoningText")):
        parts.append(Thinking(thought))
    parts += _texts(data.get("content"))
    for call in map(object_of, list_of(data.get("toolRequests"))):
        tool = text_or_none(call.get("name")) or "?"
        parts.append(ToolCall(text_or_none(call.get("toolCallId")), tool, decoded(call.get("arguments"))))
    name = text_or_none(data.get("messageId")) or empty.id
    model = text_or_none(data.get("model")) or memory.get("model")
    usage = None
    if "outputTokens" in data and not memory.get("since"):  # else the record of the request counts it
        usage = Usage(output=count_of(data["outputTokens"]))
        known = memory["answer"][1] if memory.get("answer", [None])[0] == name else 0
        stated: dict[str, int] = memory.get("stated", {})
        added = max(usage.output - known, 0)
        memory["stated"] = {**stated, model or "": stated.get(model or "", 0) + added}
        memory["answer"] = [name, max(usage.output, known)]
    return replace(
        empty, role="assistant", origin=AGENT, parts=tuple(parts), id=name, model=model, usage=usage
    )


def _counts(usage: Any) -> list[int]:
    return [count_of(object_of(usage).get(key)) for key in _COUNTS]


def _recorded(data: dict[str, Any], memory: Memory) -> Iterator[tuple[str, Usage]]:
    """What one request took, beyond what its response states."""
    usage = object_of(data.get("usage"))
    model, added = text_or_none(usage.get("model")) or memory.get("model") or "", _counts(usage)
    for key in ("metrics", "since"):
        known: dict[str, list[int]] = memory.get(key, {})
        total = [sum(pair) for pair in zip(known.get(model, [0] * len(_COUNTS)), added, strict=True)]
        memory[key] = {**known, model: total}
    yield from _beyond({model: added}, {}, memory)


def _rest(data: dict[str, Any], memory: Memory) -> Iterator[tuple[str, Usage]]:
    """The usage of each model in a shutdown beyond the usage that was counted before.

    Its counts are those of the whole session; if one is less than before, they began anew with the last resume.
    """
    stated = object_of(data.get("modelMetrics"))
    metrics = {str(model): _counts(object_of(one).get("usage")) for model, one in stated.items()}
    before: dict[str, list[int]] = memory.get("metrics", {})
    none = [0] * len(_COUNTS)
    if any(
        now < then
        for model in before
        for now, then in zip(metrics.get(model, none), before[model], strict=True)
    ):
        before = memory.get("since", {})
    yield from _beyond(metrics, before, memory)
    if metrics:
        memory["metrics"], memory["since"] = metrics, {}


def _beyond(
    metrics: dict[str, list[int]], before: dict[str, list[int]], memory: Memory
) -> Iterator[tuple[str, Usage]]:
    """The counts of each model without those that were counted before, and without the output of responses."""
    none = [0] * len(_COUNTS)
    stated: dict[str, int] = dict(memory.get("stated", {}))
    for model, counts in metrics.items():
        given, made, read, written, thought = (
            max(now - then, 0) for now, then in zip(counts, before.get(model, none), strict=True)
        )
        thought = min(thought, made)
        for name in (model, ""):
            known = min(stated.get(name, 0), made)
            stated[name], made = stated.get(name, 0) - known, made - known
        usage = Usage(max(given - read - written, 0), made, read, written, thought)
        if usage != Usage():
            yield model, usage
    if metrics:
        memory["stated"], memory["answer"] = {}, [None, 0]


def _texts(content: Any) -> list[MessagePart]:
    return [Text(content)] if isinstance(content, str) and content else []
