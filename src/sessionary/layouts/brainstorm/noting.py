"""The half of the store that notes what happens beside the questions: techniques, rounds, ideas.

A class of its own only for its length; `BrainstormStore` is the one to use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sessionary.layouts.brainstorm import rounds
from sessionary.layouts.brainstorm.files import Shelf
from sessionary.layouts.brainstorm.navigation import Session
from sessionary.layouts.brainstorm.session import Brainstorm

T = TypeVar("T")


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
        note = partial(
            rounds.technique,
            slug=technique,
            category=category,
            reason=reason,
            applied=applied,
            source=source,
            weak_axes=weak_axes,
        )
        return self._note(slug, "technique", note, now)[0]

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
        note = partial(
            rounds.party_round,
            topic=topic,
            contributions=contributions,
            synthesis=synthesis,
            user_question=user_question,
            personas=personas,
        )
        return self._note(slug, "party", note, now)[1]

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
        note = partial(
            rounds.panel_round,
            topic=topic,
            contributions=contributions,
            phase=phase,
            convergent=convergent,
            tensions=tensions,
            experts=experts,
        )
        return self._note(slug, "panel", note, now)[1]

    def idea(self, slug: str, content: str, *, score: int | None = None, now: datetime | None = None) -> int:
        """Note an idea with its score, 0 to 10; returns its number.

        Durability: as `answer`.
        """
        return self._note(slug, "idea", partial(rounds.add_idea, content=content, score=score), now)[1]

    def score_idea(self, slug: str, number: int, score: int, *, now: datetime | None = None) -> Brainstorm:
        """Give an idea another score, 0 to 10.

        Durability: as `answer`.

        Raises:
            NotFound: there is no idea of that number.
        """
        return self._note(slug, "idea", partial(rounds.score_idea, number=number, score=score), now)[0]

    def _note(
        self, slug: str, operation: str, note: Callable[[Session], T], now: datetime | None
    ) -> tuple[Brainstorm, T]:
        """A change that does not look at the clock; the session then, and what the change gave."""
        return self._shelf.change(slug, operation, lambda session, _: note(session), now)
