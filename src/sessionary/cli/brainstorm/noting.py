"""The commands that note a technique or an idea."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, output, project_options
from sessionary.cli.brainstorm import drawn, given
from sessionary.layouts.brainstorm.constants import SOURCES
from sessionary.layouts.brainstorm.rounds import UNKNOWN_CATEGORY
from sessionary.layouts.brainstorm.session import Brainstorm


@click.command(
    "technique",
    epilog="""\b
Examples:
  sessionary brainstorm technique feature-auth six-hats --weak Couverture
  sessionary brainstorm technique feature-auth six-hats --applied
""",
)
@given.slug
@click.argument("technique", metavar="TECHNIQUE")
@project_options.root
@click.option("--applied", is_flag=True, help="It was applied, not only suggested.")
@click.option("--category", default=UNKNOWN_CATEGORY, help="The kind of technique, for example creative.")
@click.option("--reason", default="", help="Why it was suggested.")
@click.option("--source", type=click.Choice(SOURCES), default=SOURCES[0], help="Who chose it.")
@click.option("--weak", "weak_axes", multiple=True, metavar="AXIS", help="A weak axis; may be repeated.")
@project_options.as_json
def technique_command(
    slug: str,
    technique: str,
    root: Path,
    applied: bool,
    category: str,
    reason: str,
    source: str,
    weak_axes: tuple[str, ...],
    json_: bool,
) -> int:
    """Note that a technique was suggested, or applied.

    Applied after it was suggested, it stays one entry. There is no undo.
    """
    session = given.store_in(root).technique(
        slug,
        technique,
        category=category,
        reason=reason,
        applied=applied,
        source=source,
        weak_axes=weak_axes,
    )
    if json_:
        output.value(drawn.as_object(session))
    else:
        done = "applied" if applied else "suggested"
        output.lines(changing.done(f"{technique} {done} in iteration {session.iteration} of {slug}"))
    return 0


@click.command(
    "idea",
    epilog="""\b
Examples:
  sessionary brainstorm idea feature-auth "Magic links" --score 5
  sessionary brainstorm idea feature-auth --number 3 --score 7
""",
)
@given.slug
@click.argument("text", required=False, metavar="[TEXT]")
@project_options.root
@click.option("--score", type=click.IntRange(0, 10), help="How good it is.")
@click.option("--number", type=click.IntRange(1), help="Score the idea of this number instead of noting one.")
@project_options.as_json
def idea_command(
    slug: str, text: str | None, root: Path, score: int | None, number: int | None, json_: bool
) -> int:
    """Note an idea, or give one another score.

    There is no undo for a new one.
    """
    store = given.store_in(root)
    undo = ""
    if number is not None:
        if text is not None or score is None:
            raise click.UsageError("--number goes with --score, and with no TEXT")
        before = given.before(lambda: store.load(slug, store_migration=False))
        store.score_idea(slug, number, score)
        undo = _back_to(before, root, number, score)
    elif text is None:
        raise click.UsageError("give the idea: sessionary brainstorm idea SLUG TEXT")
    else:
        number = store.idea(slug, text, score=score)
    if json_:
        output.value({"slug": slug, "idea": number, "score": score, "undo": undo or None})
        return 0
    told = "" if score is None else f", score {score}"
    output.lines(changing.done(f"idea {number} of {slug}{told}"))
    if undo:
        changing.tell("undo", undo)
    return 0


def _back_to(before: Brainstorm | None, root: Path, number: int, score: int) -> str:
    """The command that gives an idea its old score; empty if it had none, or the same."""
    was = (
        next((idea.get("score") for idea in before.ideas if idea.get("id") == number), None)
        if before
        else None
    )
    if was is None or was == score or before is None:
        return ""
    return project_options.command_line(
        "brainstorm", root, "idea", before.slug, "--number", str(number), "--score", str(was)
    )
