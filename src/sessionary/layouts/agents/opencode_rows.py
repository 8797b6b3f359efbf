"""The messages of OpenCode, from the values that its rows and files hold.

Version 1 keeps a message and its parts: texts, reasoning, tool calls with their results, files, steps. Version 2 keeps
one row for each message, whose content has the same kinds. A tool call and its result are one part; here the results
of a message follow it as a message of the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sessionary.codec.times import parse_time
from sessionary.layouts.agents.fields import list_of
from sessionary.model import (
    AGENT,
    COMPACTION,
    HARNESS,
    PERSON,
    TOOL,
    Message,
    Other,
    Part,
    Place,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from sessionary.transcript.messages import word

Value = Mapping[str, Any]

_STEPS = frozenset({"step-start", "step-finish", "snapshot"})
"""Parts that mark where a step begins and ends. Their tokens are those of the message, so they are not counted."""
_ENDED = frozenset({"completed", "success", "error"})
_V2_NOTICES = frozenset({"system", "synthetic", "agent-switched", "model-switched"})


def messages_of(message_id: str, data: Value, parts: Iterable[Value], place: Place) -> Iterator[Message]:
    """A message of version 1: itself, and the results of its tools."""
    role, parts = data.get("role"), list(parts)
    time = parse_time(_below(data, "time").get("created"))
    if role not in ("user", "assistant"):
        yield Message(None, HARNESS, (Other("record", dict(data)),), time, message_id, place=place)
        return
    shown = [part for one in parts if (part := _part(one)) is not None]
    if data.get("error"):
        shown.append(Other("error", data["error"]))
    if role == "user":
        yield Message(role, _origin(parts), tuple(shown), time, message_id, place=place)
        return
    origin = COMPACTION if data.get("summary") is True else AGENT
    model = word(data.get("modelID"))
    yield Message(
        role, origin, tuple(shown), time, message_id, word(data.get("parentID")), model, _usage(data), place
    )
    results = tuple(result for one in parts if (result := _result(one)) is not None)
    if results:
        yield Message("tool", TOOL, results, time, place=place)


def messages_of_v2(message_id: str, kind: str, data: Value, place: Place) -> Iterator[Message]:
    """A message of version 2, whose role is its type."""
    time = parse_time(_below(data, "time").get("created"))
    text = word(data.get("text"))
    if kind == "user":
        files = tuple(
            Other("file", one) for key in ("files", "attachments") for one in list_of(data.get(key))
        )
        parts = (*((Text(text),) if text else ()), *files, *_contents(data))
        yield Message("user", PERSON, parts, time, message_id, place=place)
    elif kind == "assistant":
        model = data.get("model")
        name = word(model.get("id") or model.get("modelID")) if isinstance(model, dict) else word(model)
        shown = tuple(_contents(data))
        if data.get("error"):
            shown = (*shown, Other("error", data["error"]))
        yield Message("assistant", AGENT, shown, time, message_id, None, name, _usage(data), place)
        results = tuple(result for one in _blocks(data) if (result := _result(one)) is not None)
        if results:
            yield Message("tool", TOOL, results, time, place=place)
    elif kind == "compaction":
        words = "\n\n".join(filter(None, (word(data.get("summary")), word(data.get("recent")))))
        yield Message("user", COMPACTION, (Text(words),), time, message_id, place=place)
    elif kind == "shell":
        call_id = word(data.get("callID"))
        call = ToolCall(call_id, "shell", {"command": data.get("command")})
        yield Message("user", HARNESS, (call,), time, message_id, place=place)
        if "output" in data:
            yield Message("tool", TOOL, (ToolResult(call_id, data["output"]),), time, place=place)
    elif kind in _V2_NOTICES:
        words = text or " ".join(f"{key}: {value}" for key, value in data.items() if isinstance(value, str))
        yield Message("system", HARNESS, (Text(words),), time, message_id, place=place)
    else:
        yield Message(
            None, HARNESS, (Other("record", {"type": kind, **data}),), time, message_id, place=place
        )


def _contents(data: Value) -> Iterator[Part]:
    return (part for one in _blocks(data) if (part := _part(one)) is not None)


def _blocks(data: Value) -> list[Value]:
    return [one for one in list_of(data.get("content")) if isinstance(one, dict)]


def _origin(parts: list[Value]) -> str:
    """The origin of a message with the role user: the program adds texts, and requests compactions in such messages."""
    if parts and all(one.get("type") == "compaction" for one in parts):
        return HARNESS
    texts = [one for one in parts if one.get("type") == "text"]
    return HARNESS if texts and all(one.get("synthetic") for one in texts) else PERSON


def _part(one: Value) -> Part | None:
    kind, text = one.get("type"), one.get("text")
    if kind == "text":
        return Text(text) if isinstance(text, str) else None
    if kind == "reasoning":
        return Thinking(text if isinstance(text, str) else "")
    if kind == "tool":
        name = word(one.get("tool")) or word(one.get("name")) or "?"
        return ToolCall(_call_id(one), name, _below(one, "state").get("input"))
    return None if kind in _STEPS else Other(str(kind), dict(one))


def _result(one: Value) -> ToolResult | None:
    """The result within a tool call; None while it runs."""
    state = _below(one, "state")
    if one.get("type") != "tool" or state.get("status") not in _ENDED:
        return None
    failed = state["status"] == "error" or "invalid" in (one.get("tool"), one.get("name"))
    failed = failed or _below(state, "metadata").get("exit") not in (None, 0)
    keys = (
        ("error", "output", "content", "result")
        if state["status"] == "error"
        else ("output", "content", "result")
    )
    stored = next((state[key] for key in keys if state.get(key) is not None), "")
    return ToolResult(_call_id(one), stored, failed)


def _call_id(one: Value) -> str | None:
    return word(one.get("callID")) or word(one.get("id"))


def _usage(data: Value) -> Usage | None:
    tokens = data.get("tokens")
    if not isinstance(tokens, dict):
        return None
    cache, cost = _below(tokens, "cache"), data.get("cost")
    thought = _count(tokens.get("reasoning"))
    return Usage(
        _count(tokens.get("input")),
        _count(tokens.get("output")) + thought,
        _count(cache.get("read")),
        _count(cache.get("write")),
        thought,
        float(cost) if isinstance(cost, int | float) and cost else None,
    )


def _count(value: Any) -> int:
    return max(int(value), 0) if isinstance(value, int | float) else 0


def _below(value: Value, key: str) -> Value:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
