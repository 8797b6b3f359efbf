"""The half of the store that notes what happens beside the questions: techniques, rounds, ideas.

A class of its own only for its length; `BrainstormStore` is the one to use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sessionary.layouts.brainstorm import rounds
from sessionary.layouts.brainstorm.moves import Session
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.writing import Shelf


class NoteTaking:
    """Calls that add to a session and move nothing. Each raises TransitionError if the session is finished."""

    _shelf: Shelf

    def technique(
        self,
        slug: str,
        technique: str,
        *,
        category: str = rounds.UNKNOWN_CATEGORY,
        reason: str = "",
        applied: bool = False,
        source: str = "auto",
        weak_axes: Sequence[str] = (),
        now: datetime | None = None,
    ) -> Brainstorm:
        """Note that a technique was suggested; with `applied`, that it (or the suggestion before) was applied.

        Durability: as `answer`.
        """

        def step(session: Session, now: datetime) -> None:
            rounds.technique(
                session,
                technique,
                category=category,
                reason=reason,
                applied=applied,
                source=source,
                weak_axes=weak_axes,
            )

        return self._shelf.change(slug, "technique", step, now)[0]

    def party(
        self,
        slug: str,
        topic: str,
        contributions: Sequence[Mapping[str, Any]] = (),
        *,
        synthesis: str = "",
        user_question: str = "",
        personas: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> int:
        """Note a round of the party, entering its mode; returns its number.

        Durability: as `answer`.

        Args:
            slug: the session.
            topic: what was discussed.
            contributions: each with ``persona`` and, as wanted, ``key_points`` and ``references``.
            synthesis: what came of it.
            user_question: what is put to the user.
            personas: who took part; by default those who contributed.
            now: the time.
        """

        def step(session: Session, now: datetime) -> int:
            return rounds.party_round(
                session,
                topic,
                contributions,
                synthesis=synthesis,
                user_question=user_question,
                personas=personas,
            )

        return self._shelf.change(slug, "party", step, now)[1]

    def panel(
        self,
        slug: str,
        topic: str,
        contributions: Sequence[Mapping[str, Any]] = (),
        *,
        phase: str = "discussion",
        convergent: Sequence[str] = (),
        tensions: Sequence[str] = (),
        experts: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> int:
        """Note a round of the panel, entering its mode; returns its number.

        Durability: as `answer`.

        Args:
            slug: the session.
            topic: what was analysed.
            contributions: each with ``expert`` and, as wanted, ``framework``, ``position`` and ``references``.
            phase: ``discussion``, ``debate`` or ``socratic``.
            convergent: points of agreement.
            tensions: points of tension.
            experts: who took part; by default those who contributed.
            now: the time.
        """

        def step(session: Session, now: datetime) -> int:
            return rounds.panel_round(
                session,
                topic,
                contributions,
                phase=phase,
                convergent=convergent,
                tensions=tensions,
                experts=experts,
            )

        return self._shelf.change(slug, "panel", step, now)[1]

    def idea(self, slug: str, content: str, *, score: int | None = None, now: datetime | None = None) -> int:
        """Note an idea with its score, 0 to 10; returns its number.

        Durability: as `answer`.
        """
        return self._shelf.change(
            slug, "idea", lambda session, now: rounds.add_idea(session, content, score), now
        )[1]

    def score_idea(self, slug: str, number: int, score: int, *, now: datetime | None = None) -> Brainstorm:
        """Give an idea another score, 0 to 10.

        Durability: as `answer`.

        Raises:
            NotFound: there is no idea of that number.
        """
        return self._shelf.change(
            slug, "idea", lambda session, now: rounds.score_idea(session, number, score), now
        )[0]
