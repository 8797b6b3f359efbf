"""Breadcrumbs as a conversation: who asked, which tools were called, what was answered. Pure.

Every command that reads sessions knows messages with a role. A breadcrumb is an exchange: its prompt is what somebody
asked, then come its calls and what the tools gave back, then its response. The whole document stands under the key
`breadcrumb` of its first message, so a reader of messages loses nothing.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

from sessionary.codec import encode_line
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document
from sessionary.layouts.maestro.times import iso, parse_time


def messages_of(crumb: Breadcrumb, zone: tzinfo = UTC) -> list[dict[str, Any]]:
    """The messages that a breadcrumb stands for: at least one, even if it says nothing.

    `zone` is that of its time; see `times.session_zone`.
    """
    moment = parse_time(crumb.timestamp, zone)
    base = {"timestamp": iso(moment) if moment else None, "breadcrumb_id": crumb.breadcrumb_id}
    said: list[dict[str, Any]] = []
    if crumb.prompt:
        said.append({"role": "user", "content": crumb.prompt, **base})
    listed: list[Any] = crumb.tools_called
    calls = [call for call in listed if isinstance(call, dict)]
    if calls:
        ids = [f"{crumb.breadcrumb_id}:{number}" for number in range(len(calls))]
        said.append({"role": "assistant", "content": list(map(_call, ids, calls)), **base})
        said.append({"role": "user", "content": list(map(_result, ids, calls)), **base})
    answer = crumb.response if crumb.error is None else f"{crumb.response}\n[error] {crumb.error}".strip()
    if answer or not said:
        said.append({"role": "assistant", "content": answer, **base})
    said[0]["breadcrumb"] = crumb_document(crumb)
    return said


def _call(call_id: str, call: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call_id,
        "name": str(call.get("tool") or "?"),
        "input": call.get("args"),
    }


def _result(call_id: str, call: dict[str, Any]) -> dict[str, Any]:
    error = call.get("error")
    value = call.get("result") if error is None else error
    text = value if isinstance(value, str) or value is None else encode_line(value).decode()
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error is not None}
