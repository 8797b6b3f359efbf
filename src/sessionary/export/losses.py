"""Losses: data that an export could not include, counted while it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from sessionary.codec import CODES as CODES_OF_LINES
from sessionary.export.steps import Begin, Steps
from sessionary.model import Message, Other, Place, Problem, Severity, Thinking
from sessionary.transcript.typed import Numbered

_PLACES = 3
_HIDDEN = (Severity.hides_data, Severity.lost_data)
_UNREADABLE = "unreadable_file"
_TEXT_BLOCKS = ("text", "input_text", "output_text")

OUTSIDE = "outside"
CONTENT = "content"
THINKING = "thinking"
PROBLEM = "problem"
SESSION = "session"
FORM = "form"
CODES: Mapping[str, str] = {
    OUTSIDE: "{count} × message outside of the conversation, which --branches includes",
    CONTENT: "{count} × {what}, which is not text",
    THINKING: "{count} × thinking of which only a signature is stored",
    PROBLEM: "{count} × {what}: damaged, or passed over by readers",
    SESSION: "{count} × session of a sub-agent that cannot be read",
    FORM: "{count} × {what}, which the format cannot express",
}
"""The kinds of losses, by code, in words."""


class Loss(Struct, frozen=True):
    """Something that an export does not carry.

    Attributes:
        code: one of `CODES`.
        what: of what kind: ``image``, the code of the problem, …
        count: how often.
        places: the first places, as ``file:line``.
    """

    code: str
    what: str
    count: int
    places: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {"code": self.code, "what": self.what, "count": self.count, "places": list(self.places)}


@dataclass(slots=True)
class Report:
    """The report of an export; complete when the last line was read.

    Attributes:
        format: the name of the format.
        sessions: the number of sessions, those of sub-agents included.
        messages: the number of messages in them.
        masked: how often each rule of the redaction has matched.
        hide: redacts what the report says of the places.
    """

    format: str
    hide: Callable[[str], str]
    sessions: int = 0
    messages: int = 0
    masked: Mapping[str, int] = field(default_factory=dict)
    _found: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def losses(self) -> list[Loss]:
        """The losses, sorted."""
        return [
            Loss(code, what, count, tuple(self._found[code, what]))
            for (code, what), count in sorted(self._counts.items())
        ]

    def lose(self, code: str, what: str, place: Place) -> None:
        """Count a loss."""
        key = (code, self.hide(what))
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._found.setdefault(key, [])
        if place.path and len(places) < _PLACES:
            path = self.hide(place.path)
            places.append(path if place.line is None else f"{path}:{place.line}")

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {
            "format": self.format,
            "sessions": self.sessions,
            "messages": self.messages,
            "losses": [loss.as_dict() for loss in self.losses],
            "masked": [{"rule": rule, "count": count} for rule, count in sorted(self.masked.items())],
        }


def counted(steps: Steps, report: Report, *, whole_results: bool, outside: bool) -> Steps:
    """The steps that a format writes, with what cannot be carried counted.

    Args:
        steps: the stream, messages outside of the conversation included.
        whole_results: the format carries tool results as they are stored, not only their text.
    """
    for step in steps:
        if isinstance(step, Begin):
            report.sessions += 1
            for problem in step.problems:
                if is_loss(problem):
                    report.lose(PROBLEM, problem.code, Place(problem.path, problem.line, problem.byte))
        elif isinstance(step, Numbered):
            if step.outside and not outside:
                report.lose(OUTSIDE, "messages", step.message.place)
                continue
            report.messages += 1
            _count_parts(step.message, report, whole_results)
        yield step


def is_loss(problem: Problem) -> bool:
    """True if stored data was not read completely; a problem that only agents have with the data does not count.

    The severity of a damaged line may have been raised for a strict reader: that of its code counts as well.
    """
    line = CODES_OF_LINES.get(problem.code)
    severities = {problem.severity, problem.severity if line is None else line.severity}
    return not severities.isdisjoint(_HIDDEN) or problem.code == _UNREADABLE


def _count_parts(message: Message, report: Report, whole_results: bool) -> None:
    for part in message.parts:
        if isinstance(part, Other) and part.value is None:
            report.lose(CONTENT, part.kind, message.place)
        elif isinstance(part, Thinking) and not part.text:
            report.lose(THINKING, "signature", message.place)
    for result in () if whole_results else message.results:
        for block in result.stored if isinstance(result.stored, list) else ():
            if isinstance(block, dict) and block.get("type") not in _TEXT_BLOCKS:
                report.lose(CONTENT, str(block.get("type")), message.place)
