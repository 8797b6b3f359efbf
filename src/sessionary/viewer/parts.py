"""Messages as JSON for the page: harmless text, cut to what is shown at first."""

from __future__ import annotations

import difflib
from itertools import count, islice
from typing import Any, NamedTuple

from sessionary.escaping import harmless
from sessionary.export.wording import call_words, one_line, pretty_json, speaker
from sessionary.model import Part, Problem, Text, Thinking, ToolCall, ToolResult
from sessionary.transcript.typed import Numbered
from sessionary.viewer.images import images_of

TEXT, THINKING, CALL, RESULT, OTHER = "text", "thinking", "call", "result", "other"
_OLD = ("old_string", "old_str", "oldText", "old_text")
_NEW = ("new_string", "new_str", "newText", "new_text")
_PATCH = ("patch", "input")
_LONGEST_DIFF = 50_000
_FEW = 8
"""Lines that are not worth to be hidden."""


class Limits(NamedTuple):
    """How much of each part is sent.

    Attributes:
        text: characters of a text or a difference.
        argument: characters of the arguments of a call.
        head, tail: lines of a result.
        line: characters of a line of a result.
    """

    text: int
    argument: int
    head: int
    tail: int
    line: int


SHORT = Limits(20_000, 4_000, 8, 4, 500)
WHOLE = Limits(5_000_000, 5_000_000, 1_000_000, 0, 5_000_000)


def item_of(one: Numbered, at: int, limits: Limits = SHORT) -> dict[str, Any]:
    """A message, and its number among all messages of the session, those outside of the conversation included."""
    message = one.message
    usage = message.usage
    images = count()
    return {
        "at": at,
        "index": one.index,
        "turn": one.turn,
        "origin": message.origin,
        "speaker": speaker(message),
        "time": message.time,
        "model": None if message.model is None else one_line(message.model),
        "tokens": None if usage is None else {"in": usage.context, "out": usage.output},
        "outside": one.outside,
        "inherited": one.inherited,
        "line": message.place.line,
        "row": harmless((message.place.path or "").partition("#")[2]),
        "parts": [_part(part, limits, images) for part in message.parts if not _is_empty(part)],
    }


def problem_item(problem: Problem) -> dict[str, Any]:
    """A problem, at the place where it occurs."""
    return {"problem": problem.severity.name, "text": one_line(problem.message, 500), "line": problem.line}


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text | Thinking) and not part.text.strip()


def _part(part: Part, limits: Limits, images: count[int]) -> dict[str, Any]:
    found = _shown(part, limits)
    numbers = list(islice(images, images_of(part)))
    return found | {"images": numbers} if numbers else found


def _shown(part: Part, limits: Limits) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"kind": TEXT, **_cut(part.text, limits.text)}
    if isinstance(part, Thinking):
        return {"kind": THINKING, **_cut(part.text, limits.text)}
    if isinstance(part, ToolCall):
        return _call(part, limits)
    if isinstance(part, ToolResult):
        return {"kind": RESULT, "id": part.call_id, "error": part.is_error, **_lines(part.text, limits)}
    value = {} if part.value is None or images_of(part) else _cut(pretty_json(part.value), limits.argument)
    return {"kind": OTHER, "name": one_line(part.kind), **value}


def _call(call: ToolCall, limits: Limits) -> dict[str, Any]:
    found = {"kind": CALL, "id": call.call_id, "name": one_line(call.name), "telling": call_words(call)}
    difference = _difference(call.arguments)
    if difference is not None:
        counts = [sum(line.startswith(sign) for line in difference) for sign in "+-"]
        return (
            found
            | {"diff": True, "added": counts[0], "removed": counts[1]}
            | _cut("\n".join(difference), limits.text)
        )
    return found | _cut(pretty_json(call.arguments), limits.argument)


def _difference(arguments: Any) -> list[str] | None:
    """The lines of an edit, with their signs; None if the call is not an edit."""
    if not isinstance(arguments, dict):
        return None
    old, new = (
        next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)
        for names in (_OLD, _NEW)
    )
    if old is not None and new is not None and len(old) + len(new) <= _LONGEST_DIFF:
        lines = difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=3)
        return [line for at, line in enumerate(lines) if at >= 2 and not line.startswith("@@")]
    patch = next((arguments[name] for name in _PATCH if isinstance(arguments.get(name), str)), "")
    return str(patch).split("\n") if str(patch).startswith("*** Begin Patch") else None


def _cut(text: str, longest: int) -> dict[str, Any]:
    """The text; `more` is the number of characters that were left out."""
    more = max(len(text) - longest, 0)
    return {"text": harmless(text[:longest]), **({"more": more} if more else {})}


def _lines(text: str, limits: Limits) -> dict[str, Any]:
    """The first and last lines of a result; `hidden` is the number of lines between them."""
    lines = text.split("\n")
    hidden = len(lines) - limits.head - limits.tail
    if hidden <= _FEW:
        hidden, head, tail = 0, lines, list[str]()
    else:
        head, tail = lines[: limits.head], lines[len(lines) - limits.tail :]
    long = any(len(line) > limits.line for line in (*head, *tail))
    return {
        "text": _joined(head, limits.line),
        "tail": _joined(tail, limits.line),
        "hidden": hidden,
        "cut": hidden > 0 or long,
    }


def _joined(lines: list[str], longest: int) -> str:
    return harmless("\n".join(line if len(line) <= longest else line[:longest] + "…" for line in lines))
