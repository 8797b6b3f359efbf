"""The records of Claude Code as messages. Pure."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from sessionary.codec.times import parse_time
from sessionary.layouts.agents.fields import count_of, text_or_none
from sessionary.model import AGENT, COMPACTION, HARNESS, PERSON, Message, Other, Place, Text, Usage
from sessionary.transcript.typed import author_and_parts

_WORDLESS = frozenset("api_error compact_boundary stop_hook_summary turn_duration".split())
"""Subtypes of notices that may have no text."""
_NO_MESSAGES = frozenset(
    "agent-color ai-title agent-name agent-setting api-request api-request-blob api-request-shape attachment atis-latch"
    " bridge-session content-replacement cost-state custom-title file-history-snapshot frame-link last-prompt mode"
    " permission-mode pr-link progress queue-operation relocated result started summary tag tools-used"
    " worktree-state".split()
)
_NOTICE = re.compile(
    r"\s*(?:<(?:command|local-command|bash|ide|system-reminder|task)|Caveat: |\[Request interrupted)"
)


def message_of_record(record: dict[str, Any], place: Place) -> Message | None:
    """A record as a message; None if it is not a message."""
    kind = record.get("type")
    if isinstance(kind, str) and kind in _NO_MESSAGES:
        return None
    inner, time = record.get("message"), parse_time(record.get("timestamp"))
    if kind in ("user", "assistant") and isinstance(inner, dict):
        role, origin, parts = author_and_parts(inner if "role" in inner else {"role": kind, **inner})
        if kind == "assistant":
            origin = AGENT
        if record.get("isCompactSummary"):
            origin = COMPACTION
        elif origin == PERSON and record.get("isMeta"):
            origin = HARNESS
        model = text_or_none(inner.get("model"))
        message = Message(
            role,
            origin,
            parts or (Other("record", record),),
            time,
            text_or_none(inner.get("id") if kind == "assistant" else record.get("uuid")),
            text_or_none(record.get("parentUuid")),
            model if model != "<synthetic>" else None,
            _usage(inner.get("usage")),
            place,
        )
        is_notice = origin == PERSON and _NOTICE.match(message.text)
        return replace(message, origin=HARNESS) if is_notice else message
    text = text_or_none(record.get("content"))
    if kind == "system" and record.get("subtype") in _WORDLESS:
        text = text or str(record["subtype"])
    if kind == "system" and text is not None:
        return Message("system", HARNESS, (Text(text),), time, text_or_none(record.get("uuid")), place=place)
    return Message(None, HARNESS, (Other("record", record),), time, place=place)


def _usage(stated: Any) -> Usage | None:
    if not isinstance(stated, dict):
        return None
    written, tools = stated.get("cache_creation"), stated.get("server_tool_use")
    return Usage(
        count_of(stated.get("input_tokens")),
        count_of(stated.get("output_tokens")),
        count_of(stated.get("cache_read_input_tokens")),
        count_of(stated.get("cache_creation_input_tokens")),
        0,
        None,
        count_of(written.get("ephemeral_1h_input_tokens")) if isinstance(written, dict) else 0,
        count_of(tools.get("web_search_requests")) if isinstance(tools, dict) else 0,
    )
