"""Records besides the questions: techniques, party and panel rounds, ideas. Pure, as `navigation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionary.errors import Invalid, NotFound
from sessionary.layouts.brainstorm.constants import (
    MODES,
    PANEL_PHASES,
    PERSONAS,
    SOURCES,
    is_slug,
    one_of,
    whole,
)
from sessionary.layouts.brainstorm.navigation import Session, grown, texts

UNKNOWN_CATEGORY = "unknown"


def set_mode(session: Session, mode: str) -> None:
    """Enter a mode, which leaves the other one. The records of that one stay."""
    session["mode"] = one_of(mode, MODES, "mode")
    for name in ("party", "panel"):
        session[f"{name}_active"] = mode == name
        grown(session, f"{name}_history")


def lead(session: Session, persona: str | None, mode: str | None) -> None:
    """Set facilitator and facilitation mode, if given."""
    if persona is not None:
        session["persona"] = one_of(persona, PERSONAS, "persona")
    if mode is not None:
        set_mode(session, mode)


def technique(
    session: Session,
    slug: str,
    category: str,
    reason: str,
    applied: bool,
    source: str,
    weak_axes: Sequence[str],
) -> None:
    """Record that a technique was suggested, or that the one suggested in this iteration was applied."""
    if not is_slug(slug):
        raise Invalid(f"{slug!r} is not a technique", hint="give its slug, for example six-hats")
    one_of(source, SOURCES, "source")
    weak = texts(weak_axes, "an axis")
    history = grown(session, "techniques_history")
    open_one = next((note for note in reversed(history) if _is_open(note, session, slug)), None)
    if applied and open_one is not None:
        open_one["applied"] = True
    else:
        history.append({
            "iteration": session["iteration"],
            "technique_slug": slug,
            "category": category or UNKNOWN_CATEGORY,
            "suggested_reason": reason,
            "applied": bool(applied),
            "source": source,
            "weak_axes": weak,
        })  # fmt: skip
        if source == "random":
            _count_random(session, category or UNKNOWN_CATEGORY)
    if applied and slug not in (used := grown(session, "techniques_used")):
        used.append(slug)


def _is_open(note: Any, session: Session, slug: str) -> bool:
    return (
        isinstance(note, dict)
        and note.get("technique_slug") == slug
        and note.get("iteration") == session["iteration"]
        and note.get("applied") is False
    )


def _count_random(session: Session, category: str) -> None:
    """Update the older record of random choices, which is used to balance the next one."""
    state = session.get("random_state")
    if not isinstance(state, dict):
        state = session["random_state"] = {}
    counts = state.get("category_counts")
    if not isinstance(counts, dict):
        counts = state["category_counts"] = {}
    state["last_category"] = category
    present = counts.get(category)
    counts[category] = (present if type(present) is int else 0) + 1


def party(
    session: Session,
    topic: str,
    contributions: Sequence[Mapping[str, Any]],
    synthesis: str,
    user_question: str,
    personas: Sequence[str] | None,
) -> int:
    """Record a round of the party, entering its mode; return its number."""
    parts = [_contribution(given, "persona", ("key_points", "references"), ()) for given in contributions]
    set_mode(session, "party")
    return _add_round(session, "party_history", {
        "topic": _text(topic, "topic"),
        "personas_selected": _names(personas, parts, "persona"),
        "contributions": parts,
        "synthesis": _text(synthesis, "synthesis"),
        "user_question": _text(user_question, "user_question"),
    })  # fmt: skip


def panel(
    session: Session,
    topic: str,
    contributions: Sequence[Mapping[str, Any]],
    phase: str,
    convergent: Sequence[str],
    tensions: Sequence[str],
    experts: Sequence[str] | None,
) -> int:
    """Record a round of the panel, entering its mode; return its number."""
    one_of(phase, PANEL_PHASES, "panel phase")
    parts = [
        _contribution(given, "expert", ("references",), ("framework", "position")) for given in contributions
    ]
    set_mode(session, "panel")
    return _add_round(session, "panel_history", {
        "topic": _text(topic, "topic"),
        "phase": phase,
        "experts_selected": _names(experts, parts, "expert"),
        "contributions": parts,
        "synthesis": {
            "convergent": texts(convergent, "a point of agreement"),
            "tensions": texts(tensions, "a tension"),
        },
    })  # fmt: skip


def _add_round(session: Session, name: str, content: dict[str, Any]) -> int:
    history = grown(session, name)
    number = _next(history, "round")
    history.append({"round": number, **content})
    return number


def _next(items: Sequence[Any], field: str) -> int:
    """The number after the largest of these items."""
    numbers: list[int] = [
        item[field] for item in items if isinstance(item, dict) and type(item.get(field)) is int
    ]
    return max([*numbers, 0]) + 1


def _contribution(
    given: Mapping[str, Any], who: str, lists: Sequence[str], words: Sequence[str]
) -> dict[str, Any]:
    """One contribution with its fields in the order of the format, and other given fields after them."""
    if not isinstance(given.get(who), str) or not given[who]:
        raise Invalid(f"a contribution without {who}", hint=f"give each a text under {who!r}")
    known: dict[str, Any] = {who: given[who]}
    known |= {name: _text(given.get(name, ""), name) for name in words}
    known |= {name: texts(given.get(name, ()), name) for name in lists}
    return {**known, **{name: value for name, value in given.items() if name not in known}}


def _names(given: Sequence[str] | None, parts: Sequence[Mapping[str, Any]], who: str) -> list[str]:
    if given is not None:
        return texts(given, f"a {who}")
    return list(dict.fromkeys(contribution[who] for contribution in parts))


def _text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    raise Invalid(f"{what} is {value!r}", hint="give a text")


def add_idea(session: Session, content: str, score: int | None) -> int:
    """Record an idea; return its number."""
    if not _text(content, "an idea").strip():
        raise Invalid("the idea is empty", hint="give a text")
    ideas = grown(session, "ideas")
    number = _next(ideas, "id")
    idea: dict[str, Any] = {"id": number, "content": content}
    if score is not None:
        idea["score"] = whole(score, 0, 10, "the score")
    ideas.append(idea)
    return number


def score_idea(session: Session, number: int, score: int) -> None:
    """Set the score of an idea."""
    whole(score, 0, 10, "the score")
    for idea in grown(session, "ideas"):
        if isinstance(idea, dict) and idea.get("id") == number:
            idea["score"] = score
            return
    raise NotFound(f"no idea {number}", details={"idea": number}, hint="`show` lists the ideas")
