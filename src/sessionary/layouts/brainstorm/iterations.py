"""Calls that move a session through its iterations: answer, continue, back, update.

The changes of the document are in `navigation`; here they are applied to a file, with a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sessionary.errors import TransitionError
from sessionary.layouts.brainstorm import navigation, rounds
from sessionary.layouts.brainstorm.constants import PERSONAS, one_of
from sessionary.layouts.brainstorm.files import SessionFiles
from sessionary.layouts.brainstorm.navigation import Jump, Session
from sessionary.layouts.brainstorm.session import Brainstorm


def answer(
    files: SessionFiles,
    slug: str,
    responses: Sequence[str],
    *,
    ems: int | None,
    axes: dict[str, int] | None,
    phase: str | None,
    persona: str | None,
    mode: str | None,
    duration: int | None,
    now: datetime | None,
) -> Brainstorm:
    """Record answers; see `BrainstormStore.answer`."""

    def step(session: Session, now: datetime) -> None:
        navigation.answer(session, responses, duration=duration, now=now)
        navigation.rescore(session, ems=ems, axes=axes, phase=phase, entry_too=True)
        _led(session, persona, mode)

    return files.change(slug, "answer", step, now)[0]


def go_on(
    files: SessionFiles,
    slug: str,
    questions: Sequence[str],
    *,
    ems: int | None,
    axes: dict[str, int] | None,
    phase: str | None,
    persona: str | None,
    mode: str | None,
    last_question: str | None,
    now: datetime | None,
) -> Jump:
    """Go to the next iteration; see `BrainstormStore.continue_`."""

    def step(session: Session, now: datetime) -> Jump:
        jump = navigation.go_on(
            session, questions, ems=ems, axes=axes, phase=phase, last_question=last_question, now=now
        )
        _led(session, persona, mode)
        return jump

    return files.change(slug, "continue", step, now, works=navigation.at_tip)[1]


def checkpoint(files: SessionFiles, slug: str, *, now: datetime | None) -> Brainstorm:
    """Store the time worked; see `BrainstormStore.checkpoint`."""

    def step(session: Session, now: datetime) -> None:
        navigation.pass_time(session, now)

    return files.change(slug, "save", step, now, works=lambda _: False)[0]


def back(files: SessionFiles, slug: str, n: int, *, now: datetime | None) -> Jump:
    """Go back some iterations; see `BrainstormStore.back`."""

    def step(session: Session, now: datetime) -> Jump:
        return navigation.go_back(session, n, now)

    return files.change(slug, "back", step, now, works=lambda _: False)[1]


def update(
    files: SessionFiles,
    slug: str,
    *,
    ems: int | None,
    axes: dict[str, int] | None,
    phase: str | None,
    persona: str | None,
    mode: str | None,
    transition_summary: Mapping[str, Any] | None,
    now: datetime | None,
) -> Brainstorm:
    """Set score, phase, persona and mode; see `BrainstormStore.update`."""

    def step(session: Session, now: datetime) -> None:
        if (ems is not None or axes is not None or phase is not None) and not navigation.at_tip(session):
            raise TransitionError(
                f"the session is back at iteration {session['iteration']}",
                hint="continue to the last iteration, or answer first, which starts a branch",
            )
        navigation.rescore(session, ems=ems, axes=axes, phase=phase, entry_too=True)
        _led(session, persona, mode)
        if transition_summary is not None:
            navigation.sum_up_transition(session, transition_summary)

    return files.change(slug, "update", step, now)[0]


def _led(session: Session, persona: str | None, mode: str | None) -> None:
    """Set facilitator and facilitation mode, if given."""
    if persona is not None:
        session["persona"] = one_of(persona, PERSONAS, "persona")
    if mode is not None:
        rounds.set_mode(session, mode)
