"""The records of Codex as messages, usage and facts.

Codex states many things twice: a turn of the user as a `response_item`, as an event `user_message` and as an
`item_completed` of type `UserMessage`, in any order, and each of them may be missing. The decoder yields the first of
them and drops the others. Calls of tools are stored in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import sub
from typing import Any

from msgspec import Struct, field
from stringzilla import hash as hash_of

from sessionary.layouts.agents.codex_shapes import (
    arguments_of,
    content_of,
    counts_of,
    counts_of_prompt,
    facts_of_session,
    has_failed,
    is_wrapped,
    notice_of,
    parent_of,
    parts_of,
    parts_of_event,
    texts_of,
    time_of,
    unwrapped,
    usage_of,
)
from sessionary.layouts.agents.fields import object_of, text_or_none
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
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UsageEvent,
)

RECENT = 64
"""Texts and calls that are remembered to recognize their second statement."""

_NO_MESSAGES = frozenset(
    "session_meta turn_context world_state token_usage_record inter_agent_communication_metadata".split()
)
_NO_ITEMS = frozenset(
    "additional_tools compaction compaction_summary compaction_trigger context_compaction ghost_snapshot other".split()
)
_NO_EVENTS = frozenset(
    "account/rateLimits/updated agent_reasoning_section_break context_compacted dynamic_tool_call_request"
    " guardian_assessment item_started mcp_startup_complete mcp_startup_update plan_update session_configured"
    " shutdown_complete sub_agent_activity task_complete task_started thread_goal_updated thread_name_updated"
    " thread_rolled_back thread_settings_applied token_count turn.completed turn_aborted turn_complete turn_diff"
    " turn_started".split()
)
_COUNTERS = ("token_count", "turn.completed")
_NO_TURN_ITEMS = frozenset({"ContextCompaction", "Sleep", "SubAgentActivity"})
_NOTICES = frozenset("error warning stream_error background_event entered_review_mode undo_completed".split())
_HARNESS = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:app-context|apps_instructions|collaboration_mode|environment_context|"
    r"external_links|goal_context|hook_prompt|INSTRUCTIONS|model_switch|permissions instructions|personality_spec|"
    r"plugins_instructions|realtime_conversation|recommended_plugins|skill|skills_instructions|"
    r"subagent_notification|token_budget|turn_aborted|user_instructions|user_shell_command)\b)"
)
_REQUEST = "## My request for Codex:"
_RESULTS = ("aggregated_output", "result", "output", "content_items", "results", "stdout", "error")
_EXECUTED_BY_SERVER = frozenset({"web_search_call", "image_generation_call"})


Said = Message | UsageEvent | Fact
"""The content of a record."""


class Decoder(Struct, array_like=True):
    """Decodes the records of one session in their order. It is a plain value, so that a cursor can hold it.

    Attributes:
        forked: the session continues another one, so that its first counter includes tokens of that one.
        session: the id in the first `session_meta`; later ones are copies of that of a parent.
        titled: the first turn of the user was read.
        counter: the last cumulative counter of tokens, in the order of `codex_shapes.COUNTS`.
        texts: marks of the last texts.
        sources: for each of them the kinds of records that stated it.
        calls: marks of the ids of the last calls of tools; ids of calls that the server executed begin with ``=``.
        turn: where the current task began; None outside of one.
        turns: the number of the record with which each turn began. Kept only while `counts_turns`.
        counts_turns: see `turns`.
        number: the number of the current record, from 0.
    """

    forked: bool = False
    session: str | None = None
    titled: bool = False
    model: str | None = None
    counter: list[int] | None = None
    texts: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    turn: int | None = None
    spoken: bool = False
    turns: list[int] = field(default_factory=list)
    counts_turns: bool = False
    number: int = -1

    def decode(self, found: Record, path: str) -> Sequence[Said]:
        """The content of a record of a file."""
        self.number += 1
        record = found.value
        kind, payload = record.get("type"), record.get("payload")
        if not isinstance(payload, dict) or not isinstance(kind, str):
            kind, payload = unwrapped(record)
        if payload is None:
            return (_About(record, {}, found, path).unknown(),)
        stated = payload.get("type")
        if kind == "event_msg":
            if stated in _COUNTERS:
                return self._used(record, payload)
            return self._event(_About(record, payload, found, path))
        if kind == "response_item":
            if stated == "reasoning" and not payload.get("summary") and not payload.get("content"):
                return ()  # as most: what was thought is encrypted
            return self._item(_About(record, payload, found, path), text_or_none(stated))
        if kind in _NO_MESSAGES:
            return tuple(self._facts(kind, payload))
        about = _About(record, payload, found, path)
        if kind == "compacted":
            text = payload.get("message")
            part = Text(text) if isinstance(text, str) and text else Other("compaction")
            return (about.message("system", COMPACTION, part),)
        if kind == "inter_agent_communication":
            return (about.message("user", AGENT, *parts_of(payload.get("content"))),)
        return (about.unknown(),)

    # -- what a session says of itself

    def _facts(self, kind: str, payload: dict[str, Any]) -> Iterator[Fact]:
        if kind == "session_meta":
            if self.session is None:
                self.session = text_or_none(payload.get("id")) or ""
                yield from facts_of_session(payload)
                self.forked = parent_of(payload) is not None
        elif kind == "turn_context":
            self.model = text_or_none(payload.get("model")) or self.model
            if cwd := text_or_none(payload.get("cwd")):
                yield Fact("cwd", cwd)

    def roll_back(self, record: dict[str, Any]) -> int | None:
        """Drop the turns that a record rolls back: the number of their first record; None if there are none."""
        count = record["payload"].get("num_turns")
        if not isinstance(count, int) or count < 1 or not self.turns:
            return None
        first = self.turns[-min(count, len(self.turns))]
        del self.turns[-count:]
        self.turn = None
        return first

    # -- response items

    def _item(self, about: _About, kind: str | None) -> Sequence[Said]:
        payload = about.payload
        if kind in (None, "message") and (role := text_or_none(payload.get("role"))):
            stated = payload.get("content")
            return self._said(
                about, "r", role, parts_of(payload.get("message") if stated is None else stated)
            )
        if kind == "reasoning":
            texts = [*texts_of(payload.get("summary")), *texts_of(payload.get("content"))]
            return self._thought(about, "r", texts)
        if kind == "agent_message":
            message = about.message("user", AGENT, *parts_of(payload.get("content")))
            if self.titled:
                return (message,)
            self.titled = True  # a sub-agent, whose task comes from another agent
            return (Fact("title", message.text.rpartition("Payload:\n")[2]), message)
        if kind in _NO_ITEMS:
            return ()
        if kind and kind.endswith("_call"):
            return (self._called(about, kind),)
        if kind and kind.endswith(("_output", "_result")):
            stored = payload.get("output", payload.get("result", payload.get("tools")))
            call_id = text_or_none(payload.get("call_id"))
            return (about.message("tool", TOOL, ToolResult(call_id, content_of(stored), has_failed(stored))),)
        return (about.unknown(),)

    def _called(self, about: _About, kind: str) -> Message:
        payload = about.payload
        call_id = text_or_none(payload.get("call_id")) or text_or_none(payload.get("id"))
        by_server = kind in _EXECUTED_BY_SERVER
        if call_id:
            self._remember_call("=" * by_server + call_id)
        name = text_or_none(payload.get("name")) or text_or_none(
            object_of(payload.get("function")).get("name")
        )
        if name and (space := text_or_none(payload.get("namespace"))):
            name = f"{space}{'' if space.endswith('__') else '.'}{name}"
        name = name or kind.removesuffix("_call")
        call = ToolCall(None if by_server else call_id, name, arguments_of(payload))
        beside = (Other("image"),) if kind == "image_generation_call" else ()
        return about.message("assistant", AGENT, call, *beside, model=self.model)

    # -- events

    def _event(self, about: _About) -> Sequence[Said]:
        payload = about.payload
        kind = text_or_none(payload.get("type")) or ""
        item = payload.get("item")
        if kind == "user_message":
            return self._said(about, "e", "user", parts_of_event(payload))
        if kind == "agent_message":
            return self._said(about, "e", "assistant", parts_of(payload.get("message")))
        if kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            return self._thought(about, "e", texts_of(payload.get("text")))
        if kind == "item_completed" and isinstance(item, dict):
            return self._completed(about, item)
        if kind in _NO_EVENTS or kind.endswith(("_begin", "_delta")):
            return self._noted(kind, payload)
        if kind in _NOTICES:
            return (about.message("system", HARNESS, Text(notice_of(payload))),)
        if kind == "exited_review_mode":
            review = payload.get("review_output")
            text = review.get("overall_explanation") if isinstance(review, dict) else None
            return (about.message("assistant", AGENT, *parts_of(text), Other("review", review)),)
        if kind.endswith(("_end", "_tool_call", "_response")):
            return self._executed(about, kind, payload)
        return (about.unknown(),)

    def _completed(self, about: _About, item: dict[str, Any]) -> Sequence[Said]:
        kind = text_or_none(item.get("type")) or ""
        if kind == "UserMessage":
            return self._said(about, "i", "user", parts_of(item.get("content")))
        if kind == "AgentMessage":
            return self._said(about, "i", "assistant", parts_of(item.get("content")))
        if kind == "Reasoning":
            texts = [*texts_of(item.get("summary_text")), *texts_of(item.get("raw_content"))]
            return self._thought(about, "i", texts)
        if kind == "Plan":
            return (about.message("assistant", AGENT, *parts_of(item.get("text")), model=self.model),)
        if kind == "HookPrompt":
            return self._said(about, "i", "user", parts_of(item.get("fragments")), origin=HARNESS)
        if kind in _NO_TURN_ITEMS:
            return ()
        return self._executed(about, kind, item) if "id" in item else (about.unknown(),)

    def _noted(self, kind: str, payload: dict[str, Any]) -> Sequence[Fact]:
        if kind in ("task_started", "turn_started"):
            self.turn, self.spoken = self.number, False
        elif kind in ("task_complete", "turn_complete", "turn_aborted"):
            self.turn = None
        elif kind == "thread_settings_applied" and isinstance(
            settings := payload.get("thread_settings"), dict
        ):
            self.model = text_or_none(settings.get("model")) or self.model
        elif kind == "thread_name_updated" and (name := text_or_none(payload.get("thread_name"))):
            return (Fact("title", name, 3),)
        return ()

    # -- what several records state

    def _said(
        self, about: _About, source: str, role: str, parts: list[Part], origin: str | None = None
    ) -> Sequence[Said]:
        """A message, unless another record stated it before."""
        text = "".join([part.text for part in parts if isinstance(part, Text)]).strip()
        if source == "r" and role == "user" and is_wrapped(text) and not _HARNESS.match(text):
            return (about.message(role, HARNESS, *parts),)
        if role in ("user", "assistant") and self._known(f"{role} {text}", source):
            return ()
        if origin is None:
            origin = AGENT if role == "assistant" else HARNESS
            if role == "user" and not _HARNESS.match(text):
                origin = PERSON
        model = text_or_none(about.payload.get("model")) or self.model if role == "assistant" else None
        message = about.message(role, origin, *parts, model=model)
        if origin == PERSON:
            self._begin_turn()
            titled, self.titled = self.titled, True
            if not titled and _REQUEST in text:
                return (Fact("title", text.partition(_REQUEST)[2].strip()), message)
        return (message,)

    def _begin_turn(self) -> None:
        """Further words of the user in one task belong to the same turn."""
        if self.counts_turns and not (self.turn is not None and self.spoken):
            self.turns.append(self.number if self.turn is None else self.turn)
        self.spoken = True

    def _thought(self, about: _About, source: str, texts: list[str]) -> Sequence[Message]:
        new = [Thinking(text) for text in texts if text and not self._known(f"thought {text}", source)]
        return (about.message("assistant", AGENT, *new, model=self.model),) if new else ()

    def _executed(self, about: _About, kind: str, stated: dict[str, Any]) -> Sequence[Message]:
        """The action of a tool; already known from the records of its call, unless the server executed it."""
        call_id = next(
            (id_ for key in ("call_id", "callId", "id") if (id_ := text_or_none(stated.get(key)))), None
        )
        result = next((stated[key] for key in _RESULTS if stated.get(key)), None)
        is_image = "image" in kind.lower()
        stored = [{"type": "image"}] if is_image else content_of(result)
        by_server = _mark(f"={call_id}")
        if call_id and by_server in self.calls:
            self.calls[self.calls.index(by_server)] = _mark(call_id)
            if is_image or not stored:
                return ()
            return (about.message("tool", TOOL, ToolResult(None, stored)),)  # its call waits for none
        if call_id and _mark(call_id) in self.calls:
            return ()
        if call_id:
            self._remember_call(call_id)
        invocation = stated.get("invocation")
        asked = invocation if isinstance(invocation, dict) else stated
        name = text_or_none(asked.get("tool")) or re.sub("_(end|response)$", "", kind)
        skipped = {*_RESULTS, "type", "call_id", "formatted_output", "stderr"}
        arguments = {key: value for key, value in asked.items() if key not in skipped}
        failed = (
            stated.get("exit_code") not in (None, 0)
            or stated.get("success") is False
            or stated.get("status") in ("failed", "declined")
            or (isinstance(result, dict) and "Err" in result)
        )
        return (
            about.message("assistant", AGENT, ToolCall(call_id, name, arguments), model=self.model),
            about.message("tool", TOOL, ToolResult(call_id, stored, failed)),
        )

    def _known(self, text: str, source: str) -> bool:
        """True if a record of another kind stated this text; remembers it."""
        mark = _mark(text)
        at = -1
        for _ in range(self.texts.count(mark)):
            at = self.texts.index(mark, at + 1)
            if source not in self.sources[at]:
                self.sources[at] += source
                return True
        if len(self.texts) == RECENT:
            del self.texts[0], self.sources[0]
        self.texts.append(mark)
        self.sources.append(source)
        return False

    def _remember_call(self, call_id: str) -> None:
        if len(self.calls) == RECENT:
            del self.calls[0]
        self.calls.append(_mark(call_id))

    # -- tokens

    def _used(self, record: dict[str, Any], payload: dict[str, Any]) -> Sequence[UsageEvent]:
        """The growth of the cumulative counter; an event that repeats it adds nothing."""
        info = object_of(payload.get("info"))
        total, before = counts_of(info.get("total_token_usage")), self.counter
        spent: list[int] | None
        if total is None:  # older versions count each turn by itself
            last = counts_of(payload.get("usage")) or counts_of(info.get("last_token_usage"))
            spent = None if before else last or counts_of_prompt(info)
        elif total == before:
            return ()
        elif before is None:
            spent = (self.forked and counts_of(info.get("last_token_usage"))) or total
        elif min(spent := list(map(sub, total, before))) < 0:  # the counter began anew
            spent = counts_of(info.get("last_token_usage")) or total
        self.counter = total or before
        if spent and any(spent):
            return (UsageEvent(usage_of(spent), self.model, time_of(record)),)
        return ()


def mark_of(data: bytes) -> int:
    """A hash of four bytes: a cursor holds many of them."""
    mark: int = hash_of(data) & 0xFFFF_FFFF
    return mark


def _mark(text: str) -> int:
    return mark_of(text.encode("utf-8", "surrogatepass"))


class _About(Struct, gc=False):
    """A record that is being decoded, and what of it is not the frame."""

    record: dict[str, Any]
    payload: dict[str, Any]
    found: Record
    path: str

    def message(self, role: str | None, origin: str, *parts: Part, model: str | None = None) -> Message:
        found = self.found
        place = Place(self.path, found.line, found.byte)
        id_ = text_or_none(self.payload.get("id"))
        return Message(role, origin, parts, time_of(self.record), id_, None, model, None, place)

    def unknown(self) -> Message:
        return self.message(None, HARNESS, Other("record", self.record))
