"""The commands that record something besides answers: a technique, an idea, a round of the party or of the panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.brainstorm import params, render
from sessionary.cli.lazy import command
from sessionary.layouts.brainstorm.constants import PANEL_PHASES, SOURCES
from sessionary.layouts.brainstorm.rounds import UNKNOWN_CATEGORY
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore


def _or_none(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    return value or None


_topic = click.argument("topic", required=False, metavar="[TOPIC]")
_exit = options.flag("--exit", "leave", help="Leave the mode; recorded rounds stay.")
_refers = options.repeated("--refers", metavar="NAME=OTHER", help="NAME refers to OTHER.")


@command(
    "technique",
    "sessionary brainstorm technique feature-auth six-hats --weak Couverture",
    "sessionary brainstorm technique feature-auth six-hats --applied",
)
@params.slug
@click.argument("technique", metavar="TECHNIQUE")
@params.store
@options.flag("--applied", help="Record it as applied, not only suggested.")
@click.option("--category", default=UNKNOWN_CATEGORY, help="The kind of technique, for example creative.")
@click.option("--reason", default="", help="Reason for the suggestion.")
@click.option("--source", type=click.Choice(SOURCES), default=SOURCES[0], help="Who chose it.")
@options.repeated("--weak", "weak_axes", metavar="AXIS", help="A weak axis.")
@options.json_result
def technique_command(store: BrainstormStore, slug: str, technique: str, applied: bool, **values: Any) -> int:
    """Record that a technique was suggested, or applied.

    If it was suggested before, the entry is updated. This cannot be undone.
    """
    session = store.technique(slug, technique, applied=applied, **values)
    done = "applied" if applied else "suggested"
    text = f"{technique} {done} in iteration {session.iteration} of {slug}"
    return output.shown(render.as_object(session), changing.done(text))


@command(
    "idea",
    'sessionary brainstorm idea feature-auth "Magic links" --score 5',
    "sessionary brainstorm idea feature-auth --number 3 --score 7",
)
@params.slug
@click.argument("text", required=False, metavar="[TEXT]")
@params.store
@click.option("--score", type=click.IntRange(0, 10), help="Score of the idea.")
@click.option("--number", type=click.IntRange(1), help="Score the existing idea with this number.")
@options.json_result
def idea_command(
    store: BrainstormStore, slug: str, text: str | None, score: int | None, number: int | None
) -> int:
    """Record an idea, or change the score of one.

    A new idea cannot be undone.
    """
    undo: list[str] = []
    if number is not None:
        if text is not None or score is None:
            raise click.UsageError("--number needs --score, and no TEXT")
        before = params.before(store, slug)
        store.score_idea(slug, number, score)
        undo = _back_to(before, number, score)
    elif text is None:
        raise click.UsageError("give the idea: sessionary brainstorm idea SLUG TEXT")
    else:
        number = store.idea(slug, text, score=score)
    scored = "" if score is None else f", score {score}"
    document = {"slug": slug, "idea": number, "score": score}
    return project_options.outcome(document, f"idea {number} of {slug}{scored}", undo=undo)


def _back_to(before: Brainstorm | None, number: int, score: int) -> list[str]:
    """The words that set the old score of an idea; none if it had none, or the same."""
    ideas = before.ideas if before is not None else []
    was = next((idea.get("score") for idea in ideas if idea.get("id") == number), None)
    if before is None or was is None or was == score:
        return []
    return ["idea", before.slug, "--number", str(number), "--score", str(was)]


@command(
    "party",
    'sessionary brainstorm party checkout Payments --says Architect="a facade" \\',
    '    --says Security="tokens" --refers Security=Architect --synthesis "both"',
    "sessionary brainstorm party checkout --exit",
)
@params.slug
@_topic
@params.store
@options.repeated("--says", metavar="NAME=POINT", help="A point of a persona.")
@_refers
@options.repeated(
    "--persona",
    "personas",
    callback=_or_none,
    metavar="NAME",
    help="A participant (default: all who have a point).",
)
@click.option("--synthesis", default="", help="Synthesis of the round.")
@click.option("--ask", "user_question", default="", metavar="QUESTION", help="A question to the user.")
@_exit
@options.json_result
def party_command(
    store: BrainstormStore,
    slug: str,
    topic: str | None,
    says: tuple[str, ...],
    refers: tuple[str, ...],
    leave: bool,
    **values: Any,
) -> int:
    """Record a round of the party.

    This enters party mode, and leaves panel mode. This cannot be undone: rounds stay.
    """
    if topic is None or leave:
        return _leave(store, slug, topic, "party", leave=leave)
    said = _referring(_gathered(params.pairs(says, "--says"), "persona", "key_points"), "persona", refers)
    return _print_round(slug, "party", store.party(slug, topic, said, **values))


@command(
    "panel",
    'sessionary brainstorm panel refactor-api "Data access" --phase debate \\',
    '    --says Martin="a repository" --framework Martin=SOLID --agrees tests',
    "sessionary brainstorm panel refactor-api --exit",
)
@params.slug
@_topic
@params.store
@click.option(
    "--phase", type=click.Choice(PANEL_PHASES), default=PANEL_PHASES[0], help="Phase of the discussion."
)
@options.repeated("--says", metavar="NAME=POSITION", help="The position of an expert.")
@options.repeated("--framework", metavar="NAME=FRAMEWORK", help="Framework of an expert.")
@_refers
@options.repeated(
    "--expert",
    "experts",
    callback=_or_none,
    metavar="NAME",
    help="A participant (default: all who have a position).",
)
@options.repeated("--agrees", "convergent", metavar="TEXT", help="A point of agreement.")
@options.repeated("--tension", "tensions", metavar="TEXT", help="A point of tension.")
@_exit
@options.json_result
def panel_command(
    store: BrainstormStore,
    slug: str,
    topic: str | None,
    says: tuple[str, ...],
    framework: tuple[str, ...],
    refers: tuple[str, ...],
    leave: bool,
    **values: Any,
) -> int:
    """Record a round of the panel.

    This enters panel mode, and leaves party mode. This cannot be undone: rounds stay.
    """
    if topic is None or leave:
        return _leave(store, slug, topic, "panel", leave=leave)
    said = _gathered(params.pairs(says, "--says"), "expert", "positions")
    frameworks = dict(params.pairs(framework, "--framework"))
    for one in said:
        one["framework"] = frameworks.get(one["expert"], "")
        one["position"] = "; ".join(one.pop("positions"))
    said = _referring(said, "expert", refers)
    return _print_round(slug, "panel", store.panel(slug, topic, said, **values))


def _leave(store: BrainstormStore, slug: str, topic: str | None, mode: str, *, leave: bool) -> int:
    """Leave a mode, for --exit; a session in another mode stays in that."""
    if not leave:
        raise click.UsageError(f"give the topic: sessionary brainstorm {mode} SLUG TOPIC")
    if topic is not None:
        raise click.UsageError("--exit takes no TOPIC")
    if store.load(slug).mode == mode:
        store.update(slug, mode="standard")
    now = store.load(slug).mode
    text = f"{slug} is in {now} mode"
    return output.shown({"slug": slug, "mode": now}, changing.done(text))


def _gathered(contributions: Sequence[tuple[str, str]], who: str, what: str) -> list[dict[str, Any]]:
    """The contributions, one per participant, in the order of their first points."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in contributions:
        found.setdefault(name, {who: name, what: []})[what].append(text)
    return list(found.values())


def _referring(contributions: list[dict[str, Any]], who: str, refers: Sequence[str]) -> list[dict[str, Any]]:
    """The contributions with their references."""
    by_name = {one[who]: one for one in contributions}
    for name, other in params.pairs(refers, "--refers"):
        if name not in by_name:
            raise click.UsageError(f"--refers names {name}, who has no point")
        by_name[name].setdefault("references", []).append(other)
    return contributions


def _print_round(slug: str, mode: str, number: int) -> int:
    document = {"slug": slug, "mode": mode, "round": number}
    text = f"recorded round {number} of the {mode} of {slug}"
    return output.shown(document, changing.done(text))
