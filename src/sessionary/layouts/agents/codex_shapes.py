"""The shapes of values in the records of Codex, of all versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sessionary.codec.decode import decode_if_json
from sessionary.codec.times import parse_time
from sessionary.layouts.agents.fields import text_or_none
from sessionary.model import Fact, Other, Part, Text, Usage

COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)
"""Fields of a token counter; the input includes cache reads and writes."""

_IMAGE_MARK = re.compile(r"\s*</?image\b[^>]*>\s*")
_HARNESS_TAG = re.compile(r"<([a-z][\w-]*)\b[^>]*>.*</\1>", re.DOTALL)
_EXIT = re.compile(r"(?:^|\n)(?:Exit code|Process exited with code):? (-?\d+)")


def unwrapped(record: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """The kind of a record and its content. Older versions store response items without a frame around them."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if payload is not None:
        return "", None
    if isinstance(record.get("role"), str) or (isinstance(kind, str) and _is_bare(kind)):
        return "response_item", record
    if kind is None and isinstance(record.get("id"), str) and "timestamp" in record:
        return "session_meta", record
    if record.get("record_type") == "state":
        return "world_state", record
    return "", None


def _is_bare(kind: str) -> bool:
    return kind in ("message", "reasoning", "function_result") or kind.endswith(("_call", "_call_output"))


def facts_of_session(payload: dict[str, Any]) -> Iterator[Fact]:
    """Facts of the session in a `session_meta`."""
    if cwd := text_or_none(payload.get("cwd")):
        yield Fact("cwd", cwd)
    git = payload.get("git")
    if isinstance(git, dict) and (branch := text_or_none(git.get("branch"))):
        yield Fact("branch", branch)
    if version := text_or_none(payload.get("cli_version")):
        yield Fact("version", version)
    if parent := parent_of(payload):
        yield Fact("parent", parent)
    source = payload.get("source")
    if (isinstance(source, dict) and "subagent" in source) or payload.get("thread_source") == "subagent":
        yield Fact("nested", "yes")


def parent_of(payload: dict[str, Any]) -> str | None:
    """The session that a `session_meta` names as the parent of a sub-agent, or as what it was forked from."""
    inner: Any = payload.get("source")
    for key in ("subagent", "thread_spawn"):
        inner = inner.get(key) if isinstance(inner, dict) else None
    spawn = inner if isinstance(inner, dict) else {}
    stated = (payload.get("parent_thread_id"), spawn.get("parent_thread_id"), payload.get("forked_from_id"))
    return next((one for one in map(text_or_none, stated) if one and one != payload.get("id")), None)


def parts_of(content: Any) -> list[Part]:
    """The parts of a content: a text, or blocks. The marks around an image are not words of the user."""
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        return [] if content is None else [Other("content", content)]
    parts: list[Part] = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            if not _IMAGE_MARK.fullmatch(text):
                parts.append(Text(text))
        elif isinstance(block, dict):
            kind = str(block.get("type"))
            parts.append(Other("image") if "image" in kind.lower() else Other(kind, block))
        else:
            parts.append(Other("content", block))
    return parts


def parts_of_event(payload: dict[str, Any]) -> list[Part]:
    """The parts of an event `user_message`."""
    parts = parts_of(payload.get("message") or [])
    for key in ("images", "local_images"):
        stated = payload.get(key)
        parts += [Other("image")] * len(stated if isinstance(stated, list) else ())
    return parts


def texts_of(content: Any) -> list[str]:
    """The texts of a content."""
    return [part.text for part in parts_of(content) if isinstance(part, Text)]


def is_wrapped(text: str) -> bool:
    """True for a text in a pair of tags, as the program wraps what it adds. What a user typed so has an event too."""
    return text.startswith("<") and _HARNESS_TAG.fullmatch(text) is not None


def arguments_of(payload: dict[str, Any]) -> Any:
    """The arguments of a call, decoded where they are JSON."""
    for key in ("arguments", "input", "action"):
        if (stated := payload.get(key)) is not None:
            return decode_if_json(stated) if "arguments" in payload else stated
    skipped = ("type", "id", "call_id", "name", "namespace", "status", "result")
    return {key: value for key, value in payload.items() if key not in skipped}


def content_of(stored: Any) -> Any:
    """The content of a result, without the frame around it."""
    if isinstance(stored, dict):
        for key in ("Ok", "content", "stdout"):
            if isinstance(stored.get(key), str | list) and stored[key]:
                return stored[key]
            if isinstance(stored.get(key), dict):
                return content_of(stored[key])
    return stored


def has_failed(stored: Any) -> bool:
    """True if a result states a failure: Codex stores most exit codes in its text alone."""
    if isinstance(stored, str):
        if stored.startswith("{") and '"exit_code"' in stored:
            stored = decode_if_json(stored)
        else:
            head = stored[:1000]
            found = _EXIT.search(head) if "xit" in head else None
            return found is not None and int(found[1]) != 0
    if not isinstance(stored, dict):
        return False
    metadata = stored.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else stored.get("exitCode")
    return stored.get("success") is False or (isinstance(code, int) and code != 0)


def notice_of(payload: dict[str, Any]) -> str:
    """The words of a notice or an error."""
    inner = payload.get("error")
    stated = (
        payload.get("message"),
        payload.get("user_facing_hint"),
        inner.get("message") if isinstance(inner, dict) else inner,
    )
    return next((one for one in stated if isinstance(one, str)), str(payload.get("type")))


def counts_of(stated: Any) -> list[int] | None:
    """A counter of tokens, in the order of `COUNTS`; None if none is stated."""
    if not isinstance(stated, dict):
        return None
    return [count if isinstance(count := stated.get(name), int) and count > 0 else 0 for name in COUNTS]


def counts_of_prompt(info: dict[str, Any]) -> list[int]:
    """A counter in the words of the oldest versions."""
    return [_count(info.get("prompt")), _count(info.get("completion")), 0, 0, 0]


def _count(value: Any) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def usage_of(counts: list[int]) -> Usage:
    """The usage of one step of the counter, whose input includes what the cache read and wrote."""
    given, output, read, written, reasoning = counts
    return Usage(max(given - read - written, 0), output, read, written, reasoning)


def time_of(record: dict[str, Any]) -> datetime | None:
    """The time of a record."""
    return parse_time(record.get("timestamp") or record.get("created_at"))


def counter_in(data: bytes) -> list[int] | None:
    """The last cumulative counter of tokens in a piece of a rollout."""
    at = len(data)
    while (at := data.rfind(b'"total_token_usage"', 0, at)) >= 0:
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        record = decode_if_json(data[begin : end if end >= 0 else len(data)].decode("utf-8", "replace"))
        payload = record.get("payload") if isinstance(record, dict) else None
        info = payload.get("info") if isinstance(payload, dict) else None
        if isinstance(info, dict) and (counter := counts_of(info.get("total_token_usage"))):
            return counter
    return None
