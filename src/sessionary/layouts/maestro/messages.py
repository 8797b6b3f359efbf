"""Breadcrumbs as a conversation: who asked, which tools were called, what was answered. Pure.

Every command that reads sessions knows messages with a role. A breadcrumb is an exchange: its prompt is the question,
then come its calls and their results, then its response.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

from msgspec.structs import replace

from sessionary.codec import reencode_line
from sessionary.layouts.maestro.costs import tokens
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.times import parse_time
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Message,
    Part,
    Place,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from sessionary.transcript.messages import REMINDER


def messages_of(crumb: Breadcrumb, path: str, zone: tzinfo = UTC) -> list[Message]:
    """The messages of a breadcrumb: at least one, even if it is empty.

    Args:
        zone: that of its time; see `times.session_zone`.
    """
    time, place = parse_time(crumb.timestamp, zone), Place(path, 1, 0)

    def message(role: str, origin: str, *parts: Part) -> Message:
        return Message(role, origin, parts, time, place=place)

    found: list[Message] = []
    if crumb.prompt:
        origin = HARNESS if crumb.prompt.lstrip().startswith(REMINDER) else PERSON
        found.append(message("user", origin, Text(crumb.prompt)))
    listed: list[Any] = crumb.tools_called
    calls = [call for call in listed if isinstance(call, dict)]
    if calls:
        ids = [f"{crumb.breadcrumb_id}:{number}" for number in range(len(calls))]
        found.append(message("assistant", AGENT, *map(_call, ids, calls)))
        found.append(message("user", TOOL, *map(_result, ids, calls)))
    answer = crumb.response if crumb.error is None else f"{crumb.response}\n[error] {crumb.error}".strip()
    if answer or not found:
        found.append(message("assistant", AGENT, Text(answer)))
    usage = Usage(tokens(crumb, "input"), tokens(crumb, "output"), cost=crumb.cost)
    if usage != Usage():
        found[-1] = replace(found[-1], model=crumb.model_used or None, usage=usage)
    return found


def _call(call_id: str, call: dict[str, Any]) -> ToolCall:
    return ToolCall(call_id, str(call.get("tool") or "?"), call.get("args"))


def _result(call_id: str, call: dict[str, Any]) -> ToolResult:
    error = call.get("error")
    value = call.get("result") if error is None else error
    text = value if isinstance(value, str) or value is None else reencode_line(value).decode()
    return ToolResult(call_id, text, error is not None)
