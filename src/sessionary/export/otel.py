"""OpenTelemetry spans of generative AI, as OTLP in JSON Lines: a request to export for each turn.

The names are those of semantic-conventions-genai v0.1.0. A turn is a trace: its root is a span ``invoke_agent``; below
it are a span ``chat`` for each message of the agent and a span ``execute_tool`` for each call. Ids are hashes of the
session and the place of the message, so the same session has the same ids. A session states when a message was stored
and not when a model began: the span of a message begins at the time of the message before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sessionary.export.documents import json_text, of_part
from sessionary.export.exact import plain, text
from sessionary.export.losses import FORM, OUTSIDE, Report
from sessionary.export.steps import Begin, End, Head, Steps
from sessionary.model import AGENT, PERSON, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from sessionary.transcript.typed import Numbered
from sessionary.version import __version__

SCHEMA = "https://opentelemetry.io/schemas/gen-ai-dev/0.1.0"
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2
_PROVIDERS = {
    "claude": "anthropic",
    "gpt": "openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "grok": "x_ai",
}

Span = dict[str, Any]


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    sessions: list[_Session] = []
    for step in steps:
        if isinstance(step, Begin):
            sessions.append(_Session(step.head, sessions[-1].first if sessions else None, report))
        elif isinstance(step, End):
            yield from sessions.pop().end_turn()
        elif isinstance(step, Numbered):
            yield from sessions[-1].take(step)


class _Session:
    """A session, with the spans of the turn that is being read.

    Attributes:
        first: trace and span of the first turn, for links of the sessions of sub-agents.
    """

    def __init__(self, head: Head, parent: tuple[str, str] | None, report: Report) -> None:
        self.first: tuple[str, str] | None = None
        self._head = head
        self._parent = parent
        self._report = report
        self._turn = -1
        self._count = 0
        self._now = 0
        self._begin_turn(-1)

    def _begin_turn(self, turn: int) -> None:
        self._turn = turn
        self._root = self._trace = ""
        self._spans: list[Span] = []
        self._calls: dict[str | None, Span] = {}
        self._asked: list[Any] = []
        self._pending: list[Any] = []

    def take(self, numbered: Numbered) -> Iterator[str]:
        """Add a message; if it begins a turn, the one before it is written."""
        message = numbered.message
        if numbered.outside:
            self._report.lose(OUTSIDE, "messages", message.place)
            return
        if numbered.turn != self._turn:
            yield from self.end_turn()
            self._begin_turn(numbered.turn)
        self._count += 1
        if not self._root:
            self._trace, self._root = self._id("trace", 16), self._id("root", 8)
            self.first = self.first or (self._trace, self._root)
        before = self._now or _nanoseconds(message)
        self._now = max(before, _nanoseconds(message))
        if message.time is None:
            self._report.lose(FORM, "message without a time", message.place)
        stored = _message(message)
        said = plain(stored)
        if said != stored:
            self._report.lose(FORM, "text or number that strict JSON does not have", message.place)
        if message.origin == AGENT:
            self._chat(message, said, before)
        else:
            self._answer(message, said)

    def end_turn(self) -> Iterator[str]:
        """The request with the spans of the turn."""
        if not self._root:
            return
        attributes = {**self._about("invoke_agent"), "gen_ai.agent.name": self._agent()}
        if asked := [*self._asked, *(one for one in self._pending if one not in self._asked)]:
            attributes["gen_ai.input.messages"] = json_text(asked)
        start = min((one["startTimeUnixNano"] for one in self._spans), key=int, default=str(self._now))
        root = self._span(
            self._root, f"invoke_agent {self._agent()}", _INTERNAL, int(start), self._now, attributes
        )
        del root["parentSpanId"]
        if self._parent is not None:
            root["links"] = [{"traceId": self._parent[0], "spanId": self._parent[1]}]
        scope = {"name": "sessionary", "version": __version__}
        spans = {"scope": scope, "spans": [root, *self._spans], "schemaUrl": SCHEMA}
        service = {"attributes": _attributes({"service.name": self._agent()})}
        yield json_text(plain({"resourceSpans": [{"resource": service, "scopeSpans": [spans]}]}))
        self._begin_turn(-1)

    def _chat(self, message: Message, said: dict[str, Any], before: int) -> None:
        """The span of a message of the agent, and one for each of its calls."""
        attributes = self._about("chat")
        model = message.model or ""
        known = (name for start, name in _PROVIDERS.items() if model.startswith(start))
        attributes["gen_ai.provider.name"] = next(known, "unknown")
        if message.model is not None:
            attributes["gen_ai.response.model"] = message.model
        if message.usage is not None:
            attributes |= _usage(message.usage)
        if self._pending:
            attributes["gen_ai.input.messages"] = json_text(self._pending)
        finish = "tool_call" if message.calls else "stop"
        attributes["gen_ai.output.messages"] = json_text([{**said, "finish_reason": finish}])
        self._pending = []
        name = f"chat {message.model}" if message.model else "chat"
        self._spans.append(self._span(self._id("chat", 8), name, _CLIENT, before, self._now, attributes))
        for number, call in enumerate(message.calls):
            self._spans.append(self._call(call, number))

    def _call(self, call: ToolCall, number: int) -> Span:
        attributes = {**self._about("execute_tool"), "gen_ai.tool.name": call.name}
        if call.call_id is not None:
            attributes["gen_ai.tool.call.id"] = call.call_id
        attributes["gen_ai.tool.call.arguments"] = json_text(plain(call.arguments))
        name, span_id = f"execute_tool {call.name}", self._id(f"call {number}", 8)
        span = self._span(span_id, name, _INTERNAL, self._now, self._now, attributes)
        self._calls[call.call_id] = span
        return span

    def _answer(self, message: Message, said: dict[str, Any]) -> None:
        """A message of anyone else: input of the next message of the agent; results end the spans of their calls."""
        self._pending.append(said)
        if message.origin == PERSON:
            self._asked.append(said)
        for result in message.results:
            span = self._calls.pop(result.call_id, None)
            if span is None:
                continue
            span["endTimeUnixNano"] = str(self._now)
            shown = {"gen_ai.tool.call.result": json_text(plain(result.stored))}
            if result.is_error:
                span["status"] = {"code": _ERROR}
                shown["error.type"] = "_OTHER"
            span["attributes"] += _attributes(shown)

    def _span(
        self, span_id: str, name: str, kind: int, start: int, end: int, attributes: dict[str, Any]
    ) -> Span:
        return {
            "traceId": self._trace,
            "spanId": span_id,
            "parentSpanId": self._root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
            "attributes": _attributes(attributes),
        }

    def _about(self, operation: str) -> dict[str, Any]:
        return {"gen_ai.operation.name": operation, "gen_ai.conversation.id": self._head.id}

    def _agent(self) -> str:
        return text(self._head.agent or self._head.kind)

    def _id(self, what: str, size: int) -> str:
        place = "\0".join((self._head.kind, self._head.id, str(self._count), what))
        return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * size]


def _nanoseconds(message: Message) -> int:
    return 0 if message.time is None else max(int(message.time.timestamp() * 1_000_000), 0) * 1000


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }


def _message(message: Message) -> dict[str, Any]:
    role = message.role if message.role in ("user", "assistant", "tool", "system") else "system"
    return {"role": role, "parts": list(map(_part, message.parts))}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text | Thinking):
        return {"type": "text" if isinstance(part, Text) else "reasoning", "content": part.text}
    if isinstance(part, ToolCall):
        return {"type": "tool_call", "id": part.call_id, "name": part.name, "arguments": part.arguments}
    if isinstance(part, ToolResult):
        return {"type": "tool_call_response", "id": part.call_id, "response": part.stored}
    return {**of_part(part), "type": part.kind}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]
