"""The messages of Cursor, from records with a role and a content, as its transcripts and its chat stores have them.

The text of the user is in ``<user_query>``; around it the program adds facts of the machine, the project and the
rules. Encryption keys are masked in every record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.agents.rows import decoded, stored_bytes
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Message,
    Other,
    Part,
    Place,
    Problem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from sessionary.redaction import Redaction

_KEY = b"EncryptionKey"
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_ADDED = re.compile(
    r"\s*<(additional_data|agent_skills|agent_transcripts|always_applied_workspace_rules|attached_files|cursor_commands"
    r"|current_file|git_status|image_files|linter_errors|mcp_file_system|open_and_recently_viewed_files|project_layout"
    r"|rules|system[_-]reminder|timestamp|user_info|user_rules)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_HIDDEN = frozenset({"redacted-reasoning", "redacted_reasoning", "redacted_thinking"})


def masked(record: dict[str, Any]) -> dict[str, Any]:
    """The record with every key of encryption masked, also one that a text quotes."""
    try:
        return dict(_redaction().value(record))
    except RecursionError:
        return {"type": "record that is nested too deeply to be shown"}


def record_of(data: Any, place: Place) -> dict[str, Any] | Problem:
    """The object that a row holds, with keys of encryption masked."""
    value = decoded(data, place)
    if isinstance(value, Problem):
        return value
    stored = stored_bytes(data)
    may_hold_one = _KEY in stored or b"\\u" in stored
    return masked(dict(value)) if may_hold_one else dict(value)


def masked_bytes(data: bytes) -> bytes:
    """The bytes of a record with every encryption key masked; the same bytes without a key."""
    return _redaction().line(data)


@cache
def _redaction() -> Redaction:
    from sessionary.redaction import ALWAYS, Redaction  # here, since a list that reads nothing needs none

    return Redaction(ALWAYS, common=False)


def masked_value(data: bytes) -> bytes:
    """A value of a database with every key of encryption masked, also in JSON in hexadecimal digits."""
    if _KEY.hex().encode() in data.lower():
        try:
            return masked_bytes(bytes.fromhex(data.decode())).hex().encode()
        except ValueError:  # not only such digits
            return b""
    return masked_bytes(data) if _KEY in data or b"\\u" in data else data


def messages_of(
    record: dict[str, Any], place: Place, *, model: str | None = None, paired: bool = True
) -> Iterator[Message]:
    """The messages of a record; an unknown record is shown as stored.

    Args:
        record: an object with ``role`` and ``content``, the latter also below ``message``; see `masked`.
        model: the model, if the record does not name it.
        paired: False where results are not stored, so that no call waits for one.
    """
    from sessionary.codec.times import parse_time  # here: a list that reads nothing does not need it

    body = record["message"] if isinstance(record.get("message"), dict) else record
    role, content = text_or_none(record.get("role")) or text_or_none(body.get("role")), body.get("content")
    empty = Message(
        role, HARNESS, (), parse_time(record.get("timestamp")), text_or_none(record.get("id")), place=place
    )
    if role not in _ROLES or not isinstance(content, str | list):
        yield replace(empty, role=None, parts=(Other("record", record),), id=None)
        return
    parts = list(parts_of(content, paired=paired))
    results = [part for part in parts if isinstance(part, ToolResult)]
    others = [part for part in parts if not isinstance(part, ToolResult)]
    if role == "user" and (others or not results):
        yield from said(others, empty)
    elif role == "assistant":
        named = text_or_none(record.get("model")) or _model_of(record, content) or model
        yield replace(empty, origin=AGENT, parts=tuple(others), model=named)
    elif others or not results:
        yield replace(empty, origin=TOOL if role == "tool" else HARNESS, parts=tuple(parts))
        return
    if results:
        name = None if others else empty.id
        yield replace(empty, role="tool", origin=TOOL, parts=tuple(results), id=name)


def said(parts: Iterable[Part], empty: Message) -> Iterator[Message]:
    """A message of the user, and before it what the program added to it."""
    added, own = list[Part](), list[Part]()
    for part in parts:
        before, words = prompt_of(part.text) if isinstance(part, Text) else ("", "")
        if before:
            added.append(Text(before))
        if not isinstance(part, Text) or words:
            own.append(Text(words) if isinstance(part, Text) else part)
    if added:
        yield replace(empty, role="user", parts=tuple(added), id=None if own else empty.id)
    if own or not added:
        yield replace(empty, role="user", origin=PERSON, parts=tuple(own))


def prompt_of(text: str) -> tuple[str, str]:
    """The text that the program added, and the text that the user wrote."""
    if queries := _QUERY.findall(text):
        return _QUERY.sub("", text).strip(), "\n".join(queries)
    end = 0
    while block := _ADDED.match(text, end):
        end = block.end()
    return text[:end].strip(), text[end:].strip() if end else text


def parts_of(content: Any, *, paired: bool = True) -> Iterator[Part]:
    """The parts of a content, which is a text or a list of blocks; `paired` as in `messages_of`."""
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            if block:
                yield Text(block)
            continue
        kind, text = object_of(block).get("type"), object_of(block).get("text")
        call_id = text_or_none(_first(block, "toolCallId", "tool_use_id", "id")) if paired else None
        if kind == "text" and isinstance(text, str):
            yield Text(text)
        elif kind in ("thinking", "reasoning"):
            yield Thinking(text_or_none(_first(block, "thinking", "text")) or "")
        elif kind in _HIDDEN:
            yield Thinking("")
        elif kind in _CALLS:
            name = text_or_none(_first(block, "toolName", "name")) or "?"
            yield ToolCall(call_id, name, _first(block, "args", "input", "arguments"))
        elif kind in _RESULTS:
            stored = _first(block, "result", "content", "output")
            yield ToolResult(call_id, "" if stored is None else stored, _failed(block))
        elif block is not None:
            yield Other(str(kind), block)


def _first(block: Any, *keys: str) -> Any:
    """The first of these values that is there."""
    return next((block[key] for key in keys if object_of(block).get(key) is not None), None)


def _failed(block: dict[str, Any]) -> bool:
    options = object_of(object_of(block.get("providerOptions")).get("cursor"))
    stated = object_of(options.get("highLevelToolCallResult"))
    return any(one is True for one in (block.get("isError"), block.get("is_error"), stated.get("isError")))


def _model_of(record: dict[str, Any], content: Any) -> str | None:
    """The model that a message or one of its parts names."""
    for one in (record, *list_of(content)):
        options = object_of(object_of(object_of(one).get("providerOptions")).get("cursor"))
        if name := text_or_none(options.get("modelName")):
            return name
    return None
