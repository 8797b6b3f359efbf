"""Accessors for one message: its author, text, tool calls and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sessionary.codec.decode import decode_if_json
from sessionary.model import ToolCall, ToolResult

Message = Mapping[str, Any]

REMINDER = "<system-reminder>"
TEXT = ("text", "input_text", "output_text")
CALLS = ("tool_call", "tool_use")
RESULT = "tool_result"
SPEAKERS = ("assistant", "system", "developer")
"""Roles that never answer a call, whatever keys their messages have."""


UNNAMED = "?"
"""The name of a tool that its call does not name."""


def is_real_user(message: Message) -> bool:
    """True if the user wrote this message: neither a hook's reminder nor a tool result."""
    if message.get("role") != "user" or "tool_call_id" in message:
        return False
    content = message.get("content")
    if isinstance(content, str):
        return not content.lstrip().startswith(REMINDER)
    blocks = list(_blocks(content))
    texts = [text for block in blocks if (text := _block_text(block))]
    if texts:
        return any(not text.lstrip().startswith(REMINDER) for text in texts)
    return not blocks or any(block.get("type") != RESULT for block in blocks)


def count_turns(messages: Iterable[Message]) -> int:
    """Return the number of user messages."""
    return sum(map(is_real_user, messages))


def text_of(message: Message) -> str:
    """Return the text blocks of a message, joined by newlines; no thinking, no tool calls or results."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _blocks(content) if (text := _block_text(block)))


def tool_calls(message: Message) -> list[ToolCall]:
    """Return the tool calls of a message in order; a call in both the list and a block counts once."""
    return [part for _block, part in parts(message) if isinstance(part, ToolCall)]


def results(message: Message) -> list[ToolResult]:
    """Return the tool results in a message: the message itself, or its ``tool_result`` blocks."""
    return [part for _block, part in parts(message) if isinstance(part, ToolResult)]


def parts(message: Message) -> Iterator[tuple[int | None, Any]]:
    """Yield the calls, the results and the other blocks of a message in order, each with the index of its block.

    The index is None for a call that is only in `tool_calls`, and for a message that is a result as a whole.
    Of a call in both the list and a block, the values of the list count.
    """
    content = message.get("content")
    if is_result(message):
        yield None, ToolResult(word(message.get("tool_call_id")), content, message.get("is_error") is True)
        return
    entries = [entry for entry in listed(message.get("tool_calls")) if isinstance(entry, dict)]
    for number, block in enumerate(listed(content)):
        yield number, part_of_block(block, entries)
    for entry in entries:
        yield None, _listed(entry)


def part_of_block(block: Any, entries: list[dict[str, Any]]) -> Any:
    """The call or the result in a block, or the block; a call that the list has too is taken out of that."""
    if isinstance(block, dict):
        kind = block.get("type")
        if kind == RESULT:
            error = block.get("is_error") is True
            return ToolResult(word(block.get("tool_use_id")), block.get("content"), error)
        if kind in CALLS:
            return _called(block, entries)
    return block


def is_result(message: Message) -> bool:
    """True if the message as a whole answers a call; its content, whatever it holds, is then the answer."""
    if "tool_call_id" in message:
        return message.get("role") not in SPEAKERS
    if message.get("role") != "tool" or "tool_calls" in message:
        return False
    return not any(map(is_result_block, listed(message.get("content"))))


def bears_results(message: Message) -> bool:
    """True if the message may contain tool results, with or without ids."""
    role = message.get("role")
    if role in SPEAKERS:
        return False
    return role == "tool" or is_result(message) or any(map(is_result_block, listed(message.get("content"))))


def holds_more(message: Message) -> bool:
    """True if the message has content besides results: a result that followed it would come too late."""
    if is_result(message) or not bears_results(message):
        return False
    return not all(map(is_result_block, listed(message.get("content"))))


def block_calls(block: Any) -> str | None:
    """Return the id of a call block; None otherwise."""
    return word(block.get("id")) if isinstance(block, dict) and block.get("type") in CALLS else None


def entry_calls(entry: Any) -> str | None:
    """Return the id of an entry of `tool_calls`; None without one."""
    return word(entry.get("id")) if isinstance(entry, dict) else None


def listed(value: Any) -> list[Any]:
    """Return the value if it is a list, else []."""
    return value if isinstance(value, list) else []


def is_result_block(block: Any) -> bool:
    """True for a block that holds a result."""
    return isinstance(block, dict) and block.get("type") == RESULT


def _blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the content blocks; a bare string counts as a text block."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block
        elif isinstance(block, str):
            yield {"type": "text", "text": block}


def _block_text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) and block.get("type") in TEXT else ""


def _called(block: Mapping[str, Any], entries: list[dict[str, Any]]) -> ToolCall:
    """Return the call of a block; if the list has it too, take it from there and out of the list."""
    call_id = word(block.get("id"))
    same = None
    if entries and call_id is not None:
        same = next((entry for entry in entries if entry.get("id") == call_id), None)
    if same is None:
        return ToolCall(call_id, _name(block), decode_if_json(block.get("input")))
    entries.remove(same)
    return _listed(same)


def _listed(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    return ToolCall(word(call.get("id")), _name(inner, call), decode_if_json(inner.get("arguments")))


def _name(call: Mapping[str, Any], around: Mapping[str, Any] | None = None) -> str:
    name = call.get("name")
    if name and isinstance(name, str):
        return name
    return word((around or call).get("tool")) or UNNAMED


def word(value: Any) -> str | None:
    """Return the value if it is text, else None."""
    return value if isinstance(value, str) else None
