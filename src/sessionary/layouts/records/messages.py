"""Items of each framework as messages. The frameworks themselves are not imported: these are the shapes they store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from sessionary.codec.times import parse_time
from sessionary.layouts.agents import claude_code, claude_code_records, codex_shapes, google_parts
from sessionary.layouts.agents.fields import count_of, list_of, object_of, text_or_none
from sessionary.layouts.records.names import ADK, CLAUDE, IMPORT, LANGGRAPH, OPENAI, PYDANTIC
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Fact,
    Message,
    Other,
    Part,
    Place,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageEvent,
)
from sessionary.transcript.messages import word
from sessionary.transcript.typed import message_of


def message_from(framework: str, item: Any, place: Place, time: datetime | None) -> Message | None:
    """An item as a message; None if it is not a message.

    Args:
        framework: what stored it. Items of an unknown one are read as messages with a ``role``.
        time: when it was stored, for items that bear no time.
    """
    if framework == LANGGRAPH:
        item = _unpacked(item)
    if not isinstance(item, dict):
        return Message(None, HARNESS, (Other("record", item),), time, place=place)
    message = _SHAPES.get(framework, message_of)(item, place)
    if message is None or message.time is not None or framework == IMPORT:
        return message
    return replace(message, time=time)


def facts_from(framework: str, item: Any) -> Iterator[Fact | UsageEvent]:
    """Facts of the session in an item."""
    if framework == CLAUDE and isinstance(item, dict):
        yield from claude_code.facts_of_record(item, {})
    elif framework == IMPORT and isinstance(item, dict) and "parts" not in item:
        yield UsageEvent(stated_usage(item.get("usage")) or Usage(), word(item.get("model")), summed=True)


def _openai(item: dict[str, Any], place: Place) -> Message:
    """An item of the Responses API."""
    kind, call_id = text_or_none(item.get("type")) or "message", text_or_none(item.get("call_id"))
    name = text_or_none(item.get("id"))
    if isinstance(item.get("role"), str):
        role = item["role"]
        origin = {"user": PERSON, "assistant": AGENT}.get(role, HARNESS)
        return Message(role, origin, tuple(codex_shapes.parts_of(item.get("content"))), id=name, place=place)
    part: Part = Other(kind, item)
    if kind == "reasoning":
        texts = (*_texts(item.get("summary")), *_texts(item.get("content")))
        part = Thinking("\n".join(texts))
    elif kind.endswith("_call"):
        part = ToolCall(
            call_id or name, text_or_none(item.get("name")) or kind, codex_shapes.arguments_of(item)
        )
    elif kind.endswith(("_call_output", "_response")):
        output = item.get("output")
        part = ToolResult(call_id, output, codex_shapes.has_failed(output))
        return Message("tool", TOOL, (part,), id=name, place=place)
    return Message("assistant", AGENT, (part,), id=name, place=place)


def _texts(blocks: Any) -> Iterator[str]:
    for block in list_of(blocks):
        if text := text_or_none(object_of(block).get("text")):
            yield text


def _claude(item: dict[str, Any], place: Place) -> Message | None:
    return claude_code_records.message_of_record(item, place)


def _adk(item: dict[str, Any], place: Place) -> Message:
    """An event, in either spelling of its keys."""
    content = object_of(item.get("content"))
    parts = tuple(google_parts.parts_of(_camel(content.get("parts") or [])))
    author, stamp = text_or_none(item.get("author")), item.get("timestamp")
    role, origin = ("user", PERSON) if author == "user" else ("assistant", AGENT)
    if parts and all(isinstance(part, ToolResult) for part in parts):
        role, origin = "tool", TOOL
    if failed := text_or_none(item.get("errorMessage") or item.get("error_message")):
        parts = (*parts, Other("error", failed))
    time = datetime.fromtimestamp(stamp, UTC) if isinstance(stamp, int | float) and stamp < 1e11 else None
    counts = _camel(item.get("usageMetadata") or item.get("usage_metadata"))
    usage = None
    if isinstance(counts, dict):
        names = ("prompt", "candidates", "cachedContent", "thoughts", "toolUsePrompt", "total")
        usage = google_parts.usage_of(*(counts.get(f"{name}TokenCount") for name in names))
    model = text_or_none(item.get("modelVersion") or item.get("model_version"))
    return Message(
        role,
        origin,
        parts or (Other("event", item),),
        time,
        text_or_none(item.get("id")),
        model=model,
        usage=usage,
        place=place,
    )


def _camel(value: Any) -> Any:
    """The value with the keys of parts and counts as the API spells them."""
    if isinstance(value, list):
        return [_camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {_spelled(key): inner for key, inner in value.items()}


def _spelled(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _pydantic(item: dict[str, Any], place: Place) -> Message:
    """A request or a response of pydantic-ai, or the entry that holds it."""
    item = object_of(item.get("message")) or item
    is_answer = item.get("kind") == "response"
    parts, origins = [], set()
    for stored in list_of(item.get("parts")):
        for part, origin in _pydantic_part(object_of(stored)):
            parts.append(part)
            origins.add(origin)
    stamp = text_or_none(item.get("timestamp")) or next(
        (one["timestamp"] for one in map(object_of, list_of(item.get("parts"))) if one.get("timestamp")), None
    )
    shown = tuple(parts) or (Other("record", item),)
    if is_answer:
        model, counts = text_or_none(item.get("model_name")), object_of(item.get("usage"))
        return Message(
            "assistant",
            AGENT,
            shown,
            parse_time(stamp),
            model=model,
            usage=_pydantic_usage(counts),
            place=place,
        )
    origin = PERSON if PERSON in origins else TOOL if TOOL in origins else HARNESS
    role = {PERSON: "user", TOOL: "tool", HARNESS: "system"}[origin]
    return Message(role, origin, shown, parse_time(stamp), place=place)


def _pydantic_part(stored: dict[str, Any]) -> Iterator[tuple[Part, str]]:
    kind, content = stored.get("part_kind"), stored.get("content")
    call_id, name = text_or_none(stored.get("tool_call_id")), text_or_none(stored.get("tool_name"))
    if kind == "user-prompt":
        for block in content if isinstance(content, list) else [content]:
            yield (Text(block) if isinstance(block, str) else Other("content", block)), PERSON
    elif kind == "system-prompt":
        yield Text(str(content)), HARNESS
    elif kind == "text":
        yield Text(str(content)), AGENT
    elif kind == "thinking":
        yield Thinking(str(content or "")), AGENT
    elif kind in ("tool-call", "builtin-tool-call"):
        arguments = stored.get("args")
        yield ToolCall(call_id, name or "?", codex_shapes.arguments_of({"arguments": arguments})), AGENT
    elif kind in ("tool-return", "builtin-tool-return"):
        yield ToolResult(call_id, content), TOOL
    elif kind == "retry-prompt":
        yield (ToolResult(call_id, content, True) if call_id and name else Text(str(content))), TOOL
    else:
        yield Other(str(kind), stored), HARNESS


def _pydantic_usage(counts: dict[str, Any]) -> Usage | None:
    if not counts:
        return None
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    given, made, read, written = (count_of(counts.get(name)) for name in names)
    return Usage(max(given - read - written, 0), made, read, written)


def _unpacked(item: Any) -> Any:
    """A value that LangGraph serialised as MessagePack. Objects are extensions: module, name, fields, method."""
    if not isinstance(item, list) or len(item) != 2 or item[0] != "msgpack" or not isinstance(item[1], bytes):
        return item
    try:
        return msgpack.decode(item[1], ext_hook=_fields)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return item


def _fields(code: int, data: memoryview) -> Any:
    inner = msgpack.decode(data, ext_hook=_fields)
    return inner[2] if isinstance(inner, list) and len(inner) > 2 else inner


def _langgraph(view: dict[str, Any], place: Place) -> Message | None:
    """A message of LangChain; None for an element of another list."""
    if "type" not in view or "content" not in view:
        return None
    role, origin = {"human": ("user", PERSON), "ai": ("assistant", AGENT), "tool": ("tool", TOOL)}.get(
        str(view.get("type")), ("system", HARNESS)
    )
    if role == "tool":
        failed = view.get("status") == "error"
        part = ToolResult(text_or_none(view.get("tool_call_id")), view.get("content"), failed)
        return Message(role, origin, (part,), id=text_or_none(view.get("id")), place=place)
    parts = codex_shapes.parts_of(view.get("content") or [])
    for call in list_of(view.get("tool_calls")):
        stated = object_of(call)
        parts.append(
            ToolCall(text_or_none(stated.get("id")), str(stated.get("name") or "?"), stated.get("args"))
        )
    model = text_or_none(object_of(view.get("response_metadata")).get("model_name"))
    counts, usage = object_of(view.get("usage_metadata")), None
    if counts:
        details = object_of(counts.get("input_token_details"))
        read, written = count_of(details.get("cache_read")), count_of(details.get("cache_creation"))
        given = max(count_of(counts.get("input_tokens")) - read - written, 0)
        usage = Usage(given, count_of(counts.get("output_tokens")), read, written)
    return Message(
        role, origin, tuple(parts), id=text_or_none(view.get("id")), model=model, usage=usage, place=place
    )


def _imported(item: dict[str, Any], place: Place) -> Message | None:
    """A message in the shape of an export; None for usage that belongs to no message."""
    if "parts" not in item:
        return None
    return Message(
        word(item.get("role")),
        word(item.get("origin")) or HARNESS,
        tuple(map(_imported_part, map(object_of, list_of(item.get("parts"))))),
        parse_time(item.get("timestamp")),
        word(item.get("id")),
        word(item.get("parent")),
        word(item.get("model")),
        stated_usage(item.get("usage")),
        place,
    )


def _imported_part(part: dict[str, Any]) -> Part:
    kind, call_id, text = part.get("type"), part.get("id"), part.get("text")
    if kind in ("text", "thinking") and isinstance(text, str):
        return Text(text) if kind == "text" else Thinking(text)
    if kind == "tool_call":
        name = part.get("name")
        return ToolCall(word(call_id), name if isinstance(name, str) else "?", part.get("arguments"))
    if kind == "tool_result":
        return ToolResult(word(call_id), part.get("content"), part.get("is_error") is True)
    return Other(str(part.get("kind", kind)), part.get("value"))


def stated_usage(usage: Any) -> Usage | None:
    """The usage in the form that a session states it; None if it is not a map."""
    if not isinstance(usage, dict):
        return None
    cost = usage.get("cost")
    counts = {name: count_of(usage.get(name)) for name in Usage.__struct_fields__ if name != "cost"}
    return Usage(**counts, cost=cost if isinstance(cost, int | float) else None)


_SHAPES: dict[str, Callable[[dict[str, Any], Place], Message | None]] = {
    OPENAI: _openai,
    CLAUDE: _claude,
    LANGGRAPH: _langgraph,
    ADK: _adk,
    PYDANTIC: _pydantic,
    IMPORT: _imported,
}
