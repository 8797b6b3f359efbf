"""Content as the Gemini API has it, which Gemini CLI and Qwen Code store: parts of a message, and counts of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionary.codec import reencode_line
from sessionary.layouts.agents.fields import count_of, object_of, text_or_none
from sessionary.model import Other, Part, Text, Thinking, ToolCall, ToolResult, Usage

_UNNAMED = "?"


def parts_of(content: Any) -> Iterator[Part]:
    """The parts of a content: a text, a part, or a list of these."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            if part:
                yield Text(part)
        elif isinstance(part, dict):
            yield from _part(part)
        elif part is not None:
            yield Other(type(part).__name__, part)


def _part(part: dict[str, Any]) -> Iterator[Part]:
    call, response = object_of(part.get("functionCall")), object_of(part.get("functionResponse"))
    if isinstance(part.get("text"), str):
        if part["text"]:
            yield Thinking(part["text"]) if part.get("thought") is True else Text(part["text"])
    elif call:
        name = text_or_none(call.get("name")) or _UNNAMED
        yield ToolCall(text_or_none(call.get("id")), name, call.get("args"))
    elif response:
        result = object_of(response.get("response"))
        yield ToolResult(text_or_none(response.get("id")), response_text(response), "error" in result)
    elif part:
        yield Other(next(iter(part)), part)


def response_text(response: Mapping[str, Any]) -> str:
    """The words of a function's response: its output or error, else all of it as JSON."""
    result = response.get("response")
    if isinstance(result, str):
        return result
    for key in ("output", "error"):
        if isinstance(object_of(result).get(key), str):
            return str(object_of(result)[key])
    return json_text(result)


def result_text(result: Any) -> str:
    """The words of a stored result: function responses, texts, and the type of everything else."""
    words = []
    for part in result if isinstance(result, list) else [result]:
        for one in parts_of(part):
            if isinstance(one, ToolResult):
                words.append(one.text)
            else:
                words.append(one.text if isinstance(one, Text | Thinking) else f"[{_kind(one)}]")
    return "\n".join(words)


def json_text(value: Any) -> str:
    """A value as JSON; nothing for None."""
    return "" if value is None else reencode_line(value).decode("utf-8", "replace")


def usage_of(prompt: Any, output: Any, cached: Any, thoughts: Any, tool: Any, total: Any) -> Usage:
    """Tokens. The prompt includes what was cached; the output is without the thoughts, unless the total shows else."""
    given, made, thought, used = count_of(prompt), count_of(output), count_of(thoughts), count_of(tool)
    cached_part = min(count_of(cached), given)
    is_included = thought <= made and count_of(total) == given + made + used
    return Usage(given - cached_part + used, made if is_included else made + thought, cached_part, 0, thought)


def texts_only(content: Any) -> str:
    """The texts of a content."""
    return "\n".join(part.text for part in parts_of(content) if isinstance(part, Text))


def _kind(part: Part) -> str:
    return part.kind if isinstance(part, Other) else "call"
