"""Session Trace Simple Format of Hugging Face: JSON Lines, a session and its messages.

A result of a tool is a message of its own. What the format has no field for is under ``sessionary`` in its line, so
`sessionary import` reads back the same messages. It has no place for the sessions of sub-agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionary.codec.times import parse_time
from sessionary.export.atif_steps import content_part
from sessionary.export.documents import json_text, of_content, of_time, of_usage
from sessionary.export.exact import OWN, header_beyond, kept, own, plain, text, whole_message, with_header
from sessionary.export.losses import FORM, Report
from sessionary.export.steps import Begin, End, Head, Steps
from sessionary.layouts.agents.fields import decoded, list_of, object_of, text_or_none
from sessionary.model import AGENT, HARNESS, PERSON, TOOL, Place, ToolResult
from sessionary.transcript.typed import Numbered

_ORIGINS = {"user": PERSON, "assistant": AGENT, "tool": TOOL}
FACTS = ("cwd", "branch", "parent", "version")
"""The fields of a session that are kept under ``sessionary``."""

Document = dict[str, Any]


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    depth = 0
    for step in steps:
        if isinstance(step, Begin):
            depth = step.depth
            if depth:
                report.lose(FORM, "session of a sub-agent", Place(step.head.path))
            else:
                yield _head_line(step.head)
        elif isinstance(step, End):
            depth = step.depth - 1
        elif isinstance(step, Numbered) and not depth:
            yield from _lines(of_content(step.message), step, report)


def message_of_line(line: Document) -> Document | None:
    """The message of a line, as `documents.of_content` has it; None for a line that repeats a part of another."""
    ours, message = own(line), object_of(line.get("message"))
    if ours.get("copy"):
        return None
    whole = whole_message(ours)
    return with_header(_known(message), ours.get("header"), _parts(message, ours)) if whole is None else whole


def _head_line(head: Head) -> str:
    name = text(head.title) if head.title else None
    ours: Document = {key: text(value) for key in FACTS if (value := getattr(head, key))}
    if head.models:
        ours["models"] = list(head.models)
    if head.usage is not None:
        ours["usage"] = of_usage(head.usage)
    line = {"type": "session", "harness": head.agent or head.kind, "id": head.id, "name": name}
    shown = plain({key: value for key, value in line.items() if value is not None})
    return json_text({**shown, OWN: kept(ours)[0]})


def _lines(document: Document, step: Numbered, report: Report) -> Iterator[str]:
    """A message as a line, and a line for each further result in it."""
    results = [part for part in document["parts"] if part["type"] == "tool_result"]
    is_result = bool(results) and results == document["parts"]
    place: Document = {"outside": True} if step.outside else {}
    message = _of_result(results[0], document) if is_result else _of_message(document)
    beyond = header_beyond(document, _known(plain(message)))
    ours: Document = {**place, **({"header": beyond} if beyond else {})}
    if is_result and results[0]["is_error"]:
        ours["is_error"] = True
    stored, whole = kept(ours)
    line = {"type": "message", "message": plain(message), **({OWN: stored} if stored else {})}
    if message_of_line(line) != document:
        stored, whole = kept({**place, "message": document})
        line[OWN] = stored
    if not whole:
        report.lose(FORM, "value", step.message.place)
    yield json_text(line)
    for part in results[is_result:]:
        copy = plain({"type": "message", "message": _of_result(part, document)})
        yield json_text({**copy, OWN: {"copy": True}})


def _of_message(document: Document) -> Document:
    parts = document["parts"]
    role = document["role"] if document["role"] in ("user", "assistant", "system") else "system"
    message: Document = {"role": role, "content": _joined(parts, "text")}
    if thoughts := _joined(parts, "thinking"):
        message["reasoningContent"] = thoughts
    if calls := [_call(part) for part in parts if part["type"] == "tool_call"]:
        message["toolCalls"] = calls
    return message | _stated(document)


def _of_result(part: Document, document: Document) -> Document:
    content = part["content"]
    words = content if isinstance(content, str) else ToolResult(None, content).text
    known = {} if part["id"] is None else {"toolCallId": part["id"]}
    return {"role": "tool", **known, "content": words, **_stated(document)}


def _stated(document: Document) -> Document:
    time = parse_time(document["timestamp"])
    stated = {} if time is None else {"timestamp": int(time.timestamp() * 1000)}
    return stated if document["model"] is None else {**stated, "model": document["model"]}


def _call(part: Document) -> Document:
    function = {"name": part["name"], "arguments": json_text(plain(part["arguments"]))}
    return {"id": part["id"] or "", "function": function}


def _joined(parts: list[Document], kind: str) -> str:
    return "\n\n".join(part["text"] for part in parts if part["type"] == kind)


def _known(message: Document) -> Document:
    """The header of a message by the fields of its line."""
    role, stamp = text_or_none(message.get("role")), message.get("timestamp")
    time = parse_time(stamp) if isinstance(stamp, int | float | str) else None
    return {
        "role": role,
        "origin": _ORIGINS.get(role or "", HARNESS),
        "timestamp": of_time(time),
        "model": text_or_none(message.get("model")),
    }


def _parts(message: Document, ours: Document) -> list[Document]:
    content = message.get("content")
    if message.get("role") == "tool":
        call_id, failed = message.get("toolCallId"), ours.get("is_error") is True
        return [{"type": "tool_result", "id": call_id, "content": content, "is_error": failed}]
    thought = message.get("reasoningContent")
    parts: list[Document] = (
        [{"type": "thinking", "text": thought}] if isinstance(thought, str) and thought else []
    )
    if isinstance(content, str) and content:
        parts.append({"type": "text", "text": content})
    parts += [content_part(block) for block in list_of(content)]
    for call in map(object_of, list_of(message.get("toolCalls"))):
        function = object_of(call.get("function"))
        name, arguments = text_or_none(function.get("name")) or "?", decoded(function.get("arguments"))
        parts.append({"type": "tool_call", "id": call.get("id"), "name": name, "arguments": arguments})
    return parts
