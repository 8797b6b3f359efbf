"""The half of the store that moves a session: answers, the next iteration, steps back, and what is set beside them.

What each call does to the document is in `moves`; here it is given its file and its time. A class of its own, since to
ask and to keep are two reasons to change; `BrainstormStore` is the one to use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sessionary.errors import TransitionError
from sessionary.layouts.brainstorm import navigation, rounds
from sessionary.layouts.brainstorm.constants import PERSONAS, one_of
from sessionary.layouts.brainstorm.files import Shelf
from sessionary.layouts.brainstorm.navigation import Jump, Session
from sessionary.layouts.brainstorm.session import Brainstorm


class Asking:
    """Calls that ask and answer. Each raises TransitionError if the session is finished."""

    _shelf: Shelf

    def answer(
        self,
        slug: str,
        responses: Sequence[str],
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        duration: int | None = None,
        now: datetime | None = None,
    ) -> Brainstorm:
        """Record answers to the questions of the current iteration; after a step back this begins a branch.

        Durability: when this returns, the answers survive a power cut; no answer that was stored is ever dropped.

        Args:
            slug: the session.
            responses: texts, added to those that the iteration has.
            ems: the score as it is now.
            axes: its five axes.
            phase: the phase as it is now.
            persona: who leads the session from now on.
            mode: how it is led from now on; a mode leaves the other ones.
            duration: minutes that these answers took.
            now: the time.

        Raises:
            TransitionError: the session is finished.
            Invalid: there is no answer, or a value that the format does not allow.
        """

        def step(session: Session, now: datetime) -> None:
            navigation.answer(session, responses, duration=duration, now=now)
            navigation.rescore(session, ems=ems, axes=axes, phase=phase, entry_too=True)
            _led(session, persona, mode)

        return self._shelf.change(slug, "answer", step, now)[0]

    def continue_(
        self,
        slug: str,
        questions: Sequence[str] = (),
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        last_question: str | None = None,
        now: datetime | None = None,
    ) -> Jump:
        """Go on to the next iteration: after a step back to the one that is stored, else to a new one.

        Durability: as `answer`.

        Args:
            slug: the session.
            questions: those of the new iteration.
            ems: the score with which it begins.
            axes: its five axes.
            phase: the phase in which it begins.
            persona: who leads the session from now on.
            mode: how it is led from now on; a mode leaves the other ones.
            last_question: the one to be answered next; by default the last of them.
            now: the time.

        Raises:
            TransitionError: the session is finished, or something new was given after a step back.
        """

        def step(session: Session, now: datetime) -> Jump:
            jump = navigation.go_on(
                session, questions, ems=ems, axes=axes, phase=phase, last_question=last_question, now=now
            )
            _led(session, persona, mode)
            return jump

        return self._shelf.change(slug, "continue", step, now, works=navigation.at_tip)[1]

    def checkpoint(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Store the time that was worked since the last change. Every other call stores what it does, with the time.

        Durability: as `answer`. Where nothing was worked, nothing is written.

        Raises:
            TransitionError: the session is finished.
        """

        def step(session: Session, now: datetime) -> None:
            navigation.pass_time(session, now)

        return self._shelf.change(slug, "save", step, now, works=lambda _: False)[0]

    def back(self, slug: str, n: int = 1, *, now: datetime | None = None) -> Jump:
        """Go back some iterations: score, phase and question are those of then; all else stays, answers included.

        Durability: as `answer`.

        Raises:
            Invalid: `n` is not from 1 to 5, or leads before iteration 1; ``details`` says how far it may be.
            NotFound: the history has no entry of that iteration.
            TransitionError: the session is finished.
        """

        def step(session: Session, now: datetime) -> Jump:
            return navigation.go_back(session, n, now)

        return self._shelf.change(slug, "back", step, now, works=lambda _: False)[1]

    def update(
        self,
        slug: str,
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        transition_summary: Mapping[str, Any] | None = None,
        now: datetime | None = None,
    ) -> Brainstorm:
        """Set what is given of score, phase, persona and mode; a mode leaves the other ones.

        Durability: as `answer`.

        Args:
            slug: the session.
            ems: the score, 0 to 100.
            axes: its five axes.
            phase: the phase.
            persona: who leads the session.
            mode: ``standard``, ``party`` or ``panel``.
            transition_summary: what there is at the middle of a progressive session; any map.
            now: the time.

        Raises:
            TransitionError: the session is finished, or score or phase were given after a step back.
            Invalid: a value that the format does not allow.
        """

        def step(session: Session, now: datetime) -> None:
            if (ems is not None or axes is not None or phase is not None) and not navigation.at_tip(session):
                raise TransitionError(
                    f"the session was taken back to iteration {session['iteration']}",
                    hint="continue to the last iteration, or answer first: that begins a branch",
                )
            navigation.rescore(session, ems=ems, axes=axes, phase=phase, entry_too=True)
            _led(session, persona, mode)
            if transition_summary is not None:
                navigation.sum_up_transition(session, transition_summary)

        return self._shelf.change(slug, "update", step, now)[0]


def _led(session: Session, persona: str | None, mode: str | None) -> None:
    """Set who leads a session and how, if that is given."""
    if persona is not None:
        session["persona"] = one_of(persona, PERSONAS, "persona")
    if mode is not None:
        rounds.set_mode(session, mode)
