"""Print a brainstorm session: as JSON, as a short state, or in full."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sessionary.cli import formatting, output
from sessionary.cli.problems import item
from sessionary.cli.project_options import heading, label
from sessionary.cli.text import cells, fit, one_line
from sessionary.layouts.brainstorm.constants import AXES, is_whole, write_time
from sessionary.layouts.brainstorm.navigation import Jump, list_in
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.texts import ago, say, sparkline, words


def as_object(session: Brainstorm, *, whole: bool = False) -> dict[str, Any]:
    """The session with the field names of docs/cli-json.md; `whole`: with its document."""
    names = "id slug path status phase mode persona ems iteration tip ems_line weak_axes suggested_phase questions"
    fields: dict[str, Any] = {name: getattr(session, name) for name in names.split()}
    fields["ems_axes"] = session.session.get("ems_axes")
    fields["last_question"] = session.session.get("last_question")
    fields["duration_minutes"] = session.session.get("duration_minutes")
    fields |= {"created": session.created, "updated": session.updated}
    fields["problems"] = [problem.as_dict() for problem in session.problems]
    return fields | ({"document": session.document} if whole else {})


def found_object(row: Row, now: datetime) -> dict[str, Any]:
    """A session that `start` has found, with the field names of docs/cli-json.md."""
    fields = {name: getattr(row, name) for name in ("slug", "path", "status", "phase", "ems", "iteration")}
    return fields | {
        "updated": None if row.updated is None else write_time(row.updated),
        "age": ago(row.updated, now),
    }


def jump_object(slug: str, jump: Jump, *, restored: bool) -> dict[str, Any]:
    """A step with the field names of docs/cli-json.md."""
    fields: dict[str, Any] = {"slug": slug, "steps": jump.steps, "restored": restored}
    for name in ("iteration", "ems", "phase"):
        fields[name] = dict(zip(("from", "to"), getattr(jump, name), strict=True))
    return fields | {"questions": jump.questions}


def state(session: Brainstorm, now: datetime | None = None, lang: str = "en") -> Iterator[str]:
    """The state of a session: score and axes, phase, iteration, open questions."""
    now = now or datetime.now(UTC)
    table = words(lang)
    status = fit(one_line(table.get(session.status, session.status)), 20)
    name = fit(one_line(session.slug), output.width() - cells(status) - 2)
    yield f"{output.paint(name, 'bold')}  {status}"
    line = session.ems_line
    yield from label("EMS", f"{session.ems}/100" + (f"  {sparkline(line[-40:])}" if len(line) > 1 else ""))
    yield from _axes(session, lang)
    phase = session.phase
    if session.status == "in_progress" and phase != session.suggested_phase:
        phase = say(lang, "suggests", phase=phase, suggested=session.suggested_phase)
    yield from label("phase", phase)
    is_back = session.tip > session.iteration
    place = say(lang, "of", iteration=session.iteration, tip=session.tip) if is_back else session.iteration
    yield from label("iteration", str(place))
    yield from label("mode", say(lang, "led", mode=session.mode, persona=session.persona))
    minutes = session.session.get("duration_minutes")
    if is_whole(minutes, 0, None):
        yield from label(table["worked"], say(lang, "minutes", minutes=minutes))
    yield from label(table["changed"], ago(session.updated, now, lang))
    for question in session.questions:
        yield from item(f"{'?':>10} ", question)
    last = session.session.get("last_question")
    if isinstance(last, str) and last and last not in session.questions:
        yield from label(table["next"], last)


def _axes(session: Brainstorm, lang: str) -> Iterator[str]:
    axes = session.session.get("ems_axes")
    if not isinstance(axes, dict):
        return
    scores = [f"{name} {axes[name]}" for name in AXES if is_whole(axes.get(name), 0, 100)]
    yield from label(words(lang)["axes"], "  ".join(scores))
    if session.weak_axes:
        yield from label(words(lang)["weak"], ", ".join(session.weak_axes))


def page(session: Brainstorm) -> Iterator[str]:
    """The whole session."""
    yield from state(session)
    for entry in session.history:
        yield from _entry(entry, session)
    if session.superseded:
        yield ""
        yield f"{formatting.count(len(session.superseded), 'entry', 'entries')} superseded (--json has them)"
    yield from _ideas(session)
    yield from _techniques(session)
    yield from _rounds(session, "party")
    yield from _rounds(session, "panel")


def _entry(entry: dict[str, Any], session: Brainstorm) -> Iterator[str]:
    here = " ←" if entry["iteration"] == session.iteration < session.tip else ""
    delta = entry.get("ems_delta")
    change = f" ({delta:+d})" if type(delta) is int and delta else ""
    yield from heading(f"Iteration {entry['iteration']}{here}")
    yield from item("  ", f"EMS {entry.get('ems', '?')}{change}, {entry.get('phase', '?')}")
    for question in list_in(entry, "questions"):
        yield from item("  ? ", str(question))
    for answer in list_in(entry, "responses"):
        yield from item("  > ", str(answer))


def _ideas(session: Brainstorm) -> Iterator[str]:
    if session.ideas:
        yield from heading("Ideas")
    for idea in sorted(session.ideas, key=_score, reverse=True):
        score = one_line(str(idea.get("score", "-")))
        yield from item(f"  {one_line(str(idea.get('id', '?'))):>3}  {score:>2}  ", str(idea.get("content")))


def _score(idea: dict[str, Any]) -> int:
    score = idea.get("score")
    return score if type(score) is int else -1


def _techniques(session: Brainstorm) -> Iterator[str]:
    found = [note for note in list_in(session.session, "techniques_history") if isinstance(note, dict)]
    if found:
        yield from heading("Techniques")
    for note in found:
        done = "applied" if note.get("applied") else "suggested"
        reason = note.get("suggested_reason")
        words = f"{note.get('technique_slug')}, {done} in iteration {note.get('iteration')}"
        yield from item("  ", words + (f" ({reason})" if reason else ""))


def _rounds(session: Brainstorm, mode: str) -> Iterator[str]:
    for found in list_in(session.session, f"{mode}_history"):
        if isinstance(found, dict):
            yield from heading(f"{mode.capitalize()}, round {one_line(str(found.get('round', '?')))}")
            yield from item("  ", str(found.get("topic", "")))
            yield from _contributions(found)
            yield from _synthesis(found)


def _contributions(found: dict[str, Any]) -> Iterator[str]:
    for contribution in list_in(found, "contributions"):
        if not isinstance(contribution, dict):
            continue
        who = str(contribution.get("persona") or contribution.get("expert") or "?")
        who += f" ({contribution['framework']})" if contribution.get("framework") else ""
        points = [str(point) for point in list_in(contribution, "key_points")] or [
            str(contribution.get("position", ""))
        ]
        yield from item("  - ", f"{who}: " + "; ".join(point for point in points if point))


def _synthesis(found: dict[str, Any]) -> Iterator[str]:
    synthesis = found.get("synthesis")
    if isinstance(synthesis, dict):
        for sign, name in (("  = ", "convergent"), ("  ! ", "tensions")):
            for text in list_in(synthesis, name):
                yield from item(sign, str(text))
    elif synthesis:
        yield from item("  = ", str(synthesis))
    if found.get("user_question"):
        yield from item("  ? ", str(found["user_question"]))
