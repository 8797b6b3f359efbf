"""The messages of Cursor's editor, from the objects that it stores for each, which it calls bubbles.

Type 1 is of the user, type 2 of the agent: a text, a thought, or a call of a tool with its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from sessionary.layouts.agents.cursor_messages import said
from sessionary.layouts.agents.fields import count_of, decoded, list_of, object_of, text_or_none
from sessionary.model import (
    AGENT,
    HARNESS,
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

_USER, _AGENT = 1, 2
_ATTACHED = ("images", "gitDiffs", "attachedCodeChunks", "interpreterResults", "errorDetails")
_ENDED = frozenset({"completed", "success", "error", "cancelled", "rejected"})
_FAILED = frozenset({"error", "cancelled", "rejected"})


def messages_of_bubble(
    name: str,
    bubble: dict[str, Any],
    header: Mapping[str, Any],
    place: Place,
    model: str | None,
    diff: Any,
) -> Iterator[Message]:
    """The messages that a bubble holds: itself, and the result of its tool.

    Args:
        model: the model of the session, if the bubble names none.
        diff: the change of a file that it refers to; None without.
    """
    from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

    stated = (
        bubble.get("createdAt"),
        header.get("createdAt"),
        object_of(bubble.get("timingInfo")).get("clientRpcSendTime"),
    )
    time = next((time for one in stated if (time := parse_time(one)) is not None), None)
    kind = bubble.get("type", header.get("type"))
    empty = Message(None, HARNESS, (), time, name, place=place)
    attached = [Other(key, bubble[key]) for key in _ATTACHED if bubble.get(key)]
    text = text_or_none(bubble.get("text")) or _plain(bubble.get("richText"))
    if kind == _USER:
        yield from said([*([Text(text)] if text else []), *attached], empty)
        return
    if kind != _AGENT:
        yield replace(empty, parts=(Other("record", bubble),))
        return
    tool = object_of(bubble.get("toolFormerData"))
    parts = [*_thoughts(bubble), *([Text(text)] if text else []), *_call(tool, name), *attached]
    if diff is not None:
        parts.append(Other("diff", diff))
    if not parts and bubble.get("codeBlocks"):
        parts.append(Other("codeBlocks", bubble["codeBlocks"]))
    named = text_or_none(object_of(bubble.get("modelInfo")).get("modelName"))
    named = model if named in (None, "default") else named
    usage = _usage(object_of(bubble.get("tokenCount")))
    yield replace(empty, role="assistant", origin=AGENT, parts=tuple(parts), model=named, usage=usage)
    if (result := _result(tool, name)) is not None:
        yield replace(empty, role="tool", origin=TOOL, parts=(result,), id=None)


def diff_of(bubble: Mapping[str, Any]) -> str | None:
    """The id of the change of a file that a bubble refers to; None without."""
    more = object_of(object_of(bubble.get("toolFormerData")).get("additionalData"))
    return text_or_none(more.get("codeblockId")) or text_or_none(more.get("codeBlockId"))


def _thoughts(bubble: Mapping[str, Any]) -> Iterator[Part]:
    thinking = bubble.get("thinking")
    if isinstance(thinking, dict) and thinking:
        yield Thinking(text_or_none(thinking.get("text")) or "")
    elif isinstance(thinking, str) and thinking:
        yield Thinking(thinking)


def _call(tool: Mapping[str, Any], name: str) -> Iterator[Part]:
    """A tool call; one without a name is shown as stored."""
    called = text_or_none(tool.get("name"))
    if called is not None:
        stated = next((tool[key] for key in ("params", "rawArgs", "args") if tool.get(key)), None)
        yield ToolCall(text_or_none(tool.get("toolCallId")) or name, called, decoded(stated))
    elif tool:
        yield Other("tool", dict(tool))


def _result(tool: Mapping[str, Any], name: str) -> ToolResult | None:
    """The result of a tool; None while it runs."""
    status = text_or_none(tool.get("status"))
    stored = next((tool[key] for key in ("result", "error") if tool.get(key) not in (None, "")), None)
    if text_or_none(tool.get("name")) is None or (stored is None and status not in _ENDED):
        return None
    more = text_or_none(object_of(tool.get("additionalData")).get("status"))
    failed = status in _FAILED or more == "error"
    stored = (status if failed else "") if stored is None else stored
    return ToolResult(text_or_none(tool.get("toolCallId")) or name, stored, failed)


def _usage(counts: Mapping[str, Any]) -> Usage | None:
    given, made = count_of(counts.get("inputTokens")), count_of(counts.get("outputTokens"))
    return Usage(given, made) if given or made else None


def _plain(rich: Any) -> str | None:
    """The words of a text with marks, as the editor stores what the user types: JSON, or plain."""
    value = decoded(rich)
    if not isinstance(value, dict):
        return text_or_none(rich)
    lines: list[str] = []
    waiting: list[Any] = [value.get("root", value)]
    while waiting:
        node = object_of(waiting.pop())
        if isinstance(node.get("text"), str):
            lines.append(node["text"])
        elif node.get("type") in ("linebreak", "paragraph") and lines:
            lines.append("\n")
        waiting += reversed(list_of(node.get("children") or node.get("content")))
    return "".join(lines).strip() or None
