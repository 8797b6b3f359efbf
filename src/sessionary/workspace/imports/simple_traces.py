"""Sessions in files of the Session Trace Simple Format (STS)."""

from __future__ import annotations

from typing import Any

from sessionary.codec import decode, decode_object
from sessionary.export.exact import OWN, own
from sessionary.export.sts import FACTS, message_of_line
from sessionary.layouts.agents.fields import text_or_none
from sessionary.layouts.records.names import IMPORT
from sessionary.layouts.records.view import VIEW
from sessionary.model import Problem, Severity
from sessionary.transcript.ranges import spans_of
from sessionary.workspace.imports.taking_over import Source, Sources
from sessionary.workspace.imports.traces import BEYOND, usage_items

_MAPPED = frozenset(("type", "message", OWN))
_HEAD = frozenset(("type", "id", "name", "harness", OWN))
_FIELDS = frozenset("role content reasoningContent toolCalls toolCallId timestamp model".split())


def is_sts(line: bytes) -> bool:
    """True for the first line of a file: Pi's sessions begin alike, with a version and without a harness."""
    head = decode_object(line) or {}
    return head.get("type") == "session" and "harness" in head


def sts_sources(raw: bytes, path: str, stem: str) -> Sources:
    """The session of a file. A line that cannot be read is a problem, and left out."""
    first, *lines = raw.split(b"\n")
    head = decode(first)
    items, outside, beyond = list[dict[str, Any]](), set[int](), dict[str, Any]()
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        found = decode_object(line)
        if found is None or found.get("type") != "message":
            words = "the line is not a message of a session"
            yield Problem("bad_line", Severity.lost_data, path, number, None, words)
            continue
        message = message_of_line(found)
        if message is None:
            continue
        if own(found).get("outside"):
            outside.add(len(items))
        items.append(message)
        if left := _left(found):
            beyond[str(number)] = left
    ours = own(head)
    view: dict[str, Any] = {name: ours[name] for name in FACTS if isinstance(ours.get(name), str)}
    view |= {
        fact: head[key]
        for fact, key in (("title", "name"), ("agent", "harness"))
        if text_or_none(head.get(key))
    }
    if outside:
        view["items"] = spans_of(number for number in range(len(items)) if number not in outside)
    root = {key: value for key, value in head.items() if key not in _HEAD}
    items += usage_items(items, {}, ours)
    tables = {VIEW: view, BEYOND: {**beyond, "root": root}}
    yield Source(IMPORT, text_or_none(head.get("id")) or stem, items, tables=tables)


def _left(line: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line of another program that no message has."""
    message = line.get("message")
    inner = {} if not isinstance(message, dict) else {k: v for k, v in message.items() if k not in _FIELDS}
    outer = {key: value for key, value in line.items() if key not in _MAPPED}
    return {**outer, **({"message": inner} if inner else {})}
