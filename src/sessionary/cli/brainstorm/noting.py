"""The commands that record a technique or an idea."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, options, output, project_options
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
@click.option("--applied", is_flag=True, help="Record it as applied, not only suggested.")
@click.option("--category", default=UNKNOWN_CATEGORY, help="The kind of technique, for example creative.")
@click.option("--reason", default="", help="Reason for the suggestion.")
@click.option("--source", type=click.Choice(SOURCES), default=SOURCES[0], help="Who chose it.")
@click.option("--weak", "weak_axes", multiple=True, metavar="AXIS", help="A weak axis; may be repeated.")
@options.json_result
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
    """Record that a technique was suggested, or applied.

    If it was suggested before, the entry is updated. There is no undo.
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
@click.option("--score", type=click.IntRange(0, 10), help="Score of the idea.")
@click.option("--number", type=click.IntRange(1), help="Score the existing idea with this number.")
@options.json_result
def idea_command(
    slug: str, text: str | None, root: Path, score: int | None, number: int | None, json_: bool
) -> int:
    """Record an idea, or change the score of one.

    There is no undo of a new idea.
    """
    store = given.store_in(root)
    undo = ""
    if number is not None:
        if text is not None or score is None:
            raise click.UsageError("--number needs --score, and no TEXT")
        before = project_options.before(lambda: store.load(slug, store_migration=False))
        store.score_idea(slug, number, score)
        undo = _back_to(before, root, number, score)
    elif text is None:
        raise click.UsageError("give the idea: sessionary brainstorm idea SLUG TEXT")
    else:
        number = store.idea(slug, text, score=score)
    if json_:
        output.value({"slug": slug, "idea": number, "score": score, "undo": undo or None})
        return 0
    scored = "" if score is None else f", score {score}"
    output.lines(changing.done(f"idea {number} of {slug}{scored}"))
    if undo:
        changing.print_command("undo", undo)
    return 0


def _back_to(before: Brainstorm | None, root: Path, number: int, score: int) -> str:
    """The command that sets the old score of an idea; empty if it had none, or the same."""
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
