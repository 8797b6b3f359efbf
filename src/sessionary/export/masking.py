"""Redaction of the stream of steps: every text in it, before any format sees it."""

from __future__ import annotations

from msgspec.structs import replace

from sessionary.export.steps import Begin, Head, Step, Steps
from sessionary.model import Message, Other, Part, Place, Problem, Text, Thinking, ToolCall, ToolResult
from sessionary.redaction import Redaction
from sessionary.transcript.typed import Numbered

_CUT = "…"
"""Ends a title that is the beginning of a longer text. Its last word may be half a secret, so it is left out."""


def masked(steps: Steps, redaction: Redaction, *, whole_titles: bool) -> Steps:
    """The steps with each text in them redacted.

    Args:
        steps: the stream.
        redaction: the rules.
        whole_titles: keep the last word of a title that was cut.
    """
    for step in steps:
        if isinstance(step, Begin) and not whole_titles:
            step = step._replace(head=_without_half_word(step.head))  # noqa: PLW2901 - the same step
        yield _step(step, redaction)


def _step(step: Step, redaction: Redaction) -> Step:
    if isinstance(step, Numbered):
        return Numbered(step.index, step.turn, _message(step.message, redaction), step.outside)
    if isinstance(step, Problem):
        return _problem(step, redaction)
    if isinstance(step, Begin):
        problems = tuple(_problem(one, redaction) for one in step.problems)
        return Begin(_head(step.head, redaction), problems, step.depth)
    return step


def _without_half_word(head: Head) -> Head:
    if head.title is None or not head.title.endswith(_CUT):
        return head
    words = head.title.removesuffix(_CUT).split(" ")
    return head._replace(title=" ".join([*words[:-1], _CUT]))


def _head(head: Head, redaction: Redaction) -> Head:
    texts = {name: redaction.value(value) for name, value in head._asdict().items() if isinstance(value, str)}
    return head._replace(**texts, models=tuple(map(redaction.text, head.models)))


def _problem(problem: Problem, redaction: Redaction) -> Problem:
    repair = None if problem.repair is None else redaction.text(problem.repair)
    return problem._replace(
        path=redaction.text(problem.path), message=redaction.text(problem.message), repair=repair
    )


def _message(message: Message, redaction: Redaction) -> Message:
    def optional(text: str | None) -> str | None:
        return None if text is None else redaction.text(text)

    place = message.place
    return replace(
        message,
        role=optional(message.role),
        parts=tuple(_part(part, redaction) for part in message.parts),
        id=optional(message.id),
        parent=optional(message.parent),
        model=optional(message.model),
        place=Place(optional(place.path), place.line, place.byte),
    )


def _part(part: Part, redaction: Redaction) -> Part:
    if isinstance(part, Text):
        return Text(redaction.value(part.text))
    if isinstance(part, Thinking):
        return Thinking(redaction.value(part.text))
    call_id = None
    if isinstance(part, ToolCall | ToolResult) and part.call_id is not None:
        call_id = redaction.text(part.call_id)
    if isinstance(part, ToolCall):
        return ToolCall(call_id, redaction.text(part.name), redaction.value(part.arguments))
    if isinstance(part, ToolResult):
        return ToolResult(call_id, redaction.value(part.stored), part.is_error)
    return Other(redaction.text(part.kind), redaction.value(part.value))
