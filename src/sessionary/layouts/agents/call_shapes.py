"""Tool calls and results in the records of agents: find them, remove them, and write a result.

Only records in which a call and its result are apart are described. Values are never changed, but copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.transcript.synthetic import INTERRUPTED

Value = dict[str, Any]


class Called(NamedTuple):
    """A call in a record: its id, and the name of the tool."""

    id: str
    name: str


class CallShape(NamedTuple):
    """The shape of one agent.

    Attributes:
        answers: the ids of the calls whose results a record holds, in order.
        without: a record without the results of a call but the first so many; None if nothing is left of it.
        answer: a record with the result of a call that was interrupted, from the record of the call.
        keys: the keys of the id of a record and of that of its parent; None if records do not form a tree.
    """

    calls: Callable[[Value], list[Called]]
    answers: Callable[[Value], list[str]]
    without: Callable[[Value, str, int], Value | None]
    answer: Callable[[Value, Called], Value]
    keys: tuple[str, str] | None = None


def _named(pairs: Iterator[tuple[Any, Any]]) -> list[Called]:
    return [Called(id_, text_or_none(name) or "?") for id_, name in pairs if isinstance(id_, str)]


def _texts(ids: Iterator[Any]) -> list[str]:
    return [one for one in ids if isinstance(one, str)]


def _kept(items: list[Any], is_it: Callable[[Value], bool], keep: int) -> list[Any]:
    """The items, with at most `keep` of those that match."""
    left, count = [], 0
    for item in items:
        if is_it(object_of(item)):
            count += 1
            if count > keep:
                continue
        left.append(item)
    return left


def blocks(value: Value) -> list[Any]:
    """The content blocks of a message within a record."""
    return list_of(object_of(value.get("message")).get("content"))


def with_blocks(value: Value, content: list[Any], key: str = "content") -> Value:
    """A record with other content."""
    return {**value, "message": {**object_of(value.get("message")), key: content}}


# -- Claude Code


def _claude_calls(value: Value) -> list[Called]:
    found = map(object_of, blocks(value))
    return _named((one.get("id"), one.get("name")) for one in found if one.get("type") == "tool_use")


def _claude_answers(value: Value) -> list[str]:
    found = map(object_of, blocks(value))
    return _texts(one.get("tool_use_id") for one in found if one.get("type") == "tool_result")


def _claude_without(value: Value, call_id: str, keep: int) -> Value | None:
    left = _kept(blocks(value), lambda one: one.get("tool_use_id") == call_id, keep)
    return with_blocks(value, left) if left else None


def _claude_answer(value: Value, call: Called) -> Value:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": INTERRUPTED.result, "is_error": True}
    beside = {key: one for key, one in value.items() if key not in ("message", "requestId", "toolUseResult")}
    return {**beside, "type": "user", "message": {"role": "user", "content": [block]}}


# -- Codex


def _payload(value: Value) -> Value:
    return object_of(value["payload"]) if "payload" in value else value


def _codex_calls(value: Value) -> list[Called]:
    body = _payload(value)
    if not str(body.get("type")).endswith("_call"):
        return []
    return _named(iter([(body.get("call_id"), body.get("name"))]))


def _codex_answers(value: Value) -> list[str]:
    body = _payload(value)
    return _texts(iter([body.get("call_id")])) if str(body.get("type")).endswith("_call_output") else []


def _whole_record(value: Value, call_id: str, keep: int) -> Value | None:
    return value if keep else None


def _codex_answer(value: Value, call: Called) -> Value:
    kind = (
        "custom_tool_call_output" if _payload(value)["type"] == "custom_tool_call" else "function_call_output"
    )
    body = {"type": kind, "call_id": call.id, "output": INTERRUPTED.result}
    return {**value, "payload": body} if "payload" in value else body


# -- Pi


def _pi_calls(value: Value) -> list[Called]:
    found = map(object_of, blocks(value))
    return _named((one.get("id"), one.get("name")) for one in found if one.get("type") == "toolCall")


def _pi_answers(value: Value) -> list[str]:
    message = object_of(value.get("message"))
    return _texts(iter([message.get("toolCallId")])) if message.get("role") == "toolResult" else []


def _pi_answer(value: Value, call: Called) -> Value:
    content = [{"type": "text", "text": INTERRUPTED.result}]
    about = {"toolCallId": call.id, "toolName": call.name, "content": content, "isError": True}
    time = object_of(value.get("message")).get("timestamp")
    message = {"role": "toolResult", **about, **({} if time is None else {"timestamp": time})}
    return {**value, "type": "message", "message": message}


# -- Qwen Code


def _parts(value: Value) -> list[Value]:
    return [object_of(one) for one in list_of(object_of(value.get("message")).get("parts"))]


def _qwen_calls(value: Value) -> list[Called]:
    found = (object_of(one.get("functionCall")) for one in _parts(value))
    return _named((one.get("id"), one.get("name")) for one in found)


def _qwen_answers(value: Value) -> list[str]:
    return _texts(object_of(one.get("functionResponse")).get("id") for one in _parts(value))


def _qwen_without(value: Value, call_id: str, keep: int) -> Value | None:
    def is_it(part: Value) -> bool:
        return object_of(part.get("functionResponse")).get("id") == call_id

    left = _kept(list_of(object_of(value.get("message")).get("parts")), is_it, keep)
    return with_blocks(value, left, "parts") if left else None


def _qwen_answer(value: Value, call: Called) -> Value:
    response = {"id": call.id, "name": call.name, "response": {"error": INTERRUPTED.result}}
    beside = {key: one for key, one in value.items() if key not in ("model", "usageMetadata", "subtype")}
    message = {"role": "user", "parts": [{"functionResponse": response}]}
    about = {"callId": call.id, "status": "error"}
    return {**beside, "type": "tool_result", "message": message, "toolCallResult": about}


# -- GitHub Copilot CLI


def _copilot_calls(value: Value) -> list[Called]:
    data = object_of(value.get("data"))
    if value.get("type") == "tool.user_requested":
        return _named(iter([(data.get("toolCallId"), data.get("toolName"))]))
    found = map(object_of, list_of(data.get("toolRequests")))
    return _named((one.get("toolCallId"), one.get("name")) for one in found)


def _copilot_answers(value: Value) -> list[str]:
    is_answer = value.get("type") == "tool.execution_complete"
    return _texts(iter([object_of(value.get("data")).get("toolCallId")])) if is_answer else []


def _copilot_answer(value: Value, call: Called) -> Value:
    error = {"message": INTERRUPTED.result}
    data = {"toolCallId": call.id, "success": False, "error": error}
    return {**value, "type": "tool.execution_complete", "data": data}


SHAPES = {
    "claude_code": CallShape(
        _claude_calls, _claude_answers, _claude_without, _claude_answer, ("uuid", "parentUuid")
    ),
    "codex": CallShape(_codex_calls, _codex_answers, _whole_record, _codex_answer),
    "pi": CallShape(_pi_calls, _pi_answers, _whole_record, _pi_answer, ("id", "parentId")),
    "qwen": CallShape(_qwen_calls, _qwen_answers, _qwen_without, _qwen_answer, ("uuid", "parentUuid")),
    "copilot_cli": CallShape(
        _copilot_calls, _copilot_answers, _whole_record, _copilot_answer, ("id", "parentId")
    ),
}
"""The shapes by kind."""
