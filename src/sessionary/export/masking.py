"""Redaction of the stream of steps: every text in it, before any format sees it."""

from __future__ import annotations

from sessionary.export.steps import Begin, Step, Steps
from sessionary.model import Problem
from sessionary.redaction import Redaction
from sessionary.transcript.redacted import redacted_message, without_half_word
from sessionary.transcript.typed import Numbered


def masked(steps: Steps, redaction: Redaction, *, whole_titles: bool) -> Steps:
    """The steps with each text in them redacted.

    Args:
        whole_titles: keep the last word of a title that was cut.
    """
    for step in steps:
        if isinstance(step, Begin) and not whole_titles:
            step = step._replace(head=step.head._replace(title=without_half_word(step.head.title)))  # noqa: PLW2901 - the same step
        yield _step(step, redaction)


def _step(step: Step, redaction: Redaction) -> Step:
    if isinstance(step, Numbered):
        return Numbered(step.index, step.turn, redacted_message(step.message, redaction), step.outside)
    if isinstance(step, Problem):
        return _problem(step, redaction)
    if isinstance(step, Begin):
        problems = tuple(_problem(one, redaction) for one in step.problems)
        fields = step.head._asdict().items()
        texts = {name: redaction.value(value) for name, value in fields if isinstance(value, str)}
        head = step.head._replace(**texts, models=tuple(map(redaction.text, step.head.models)))
        return Begin(head, problems, step.depth)
    return step


def _problem(problem: Problem, redaction: Redaction) -> Problem:
    repair = None if problem.repair is None else redaction.text(problem.repair)
    return problem._replace(
        path=redaction.text(problem.path), message=redaction.text(problem.message), repair=repair
    )
