"""The commands that record a round of the party or of the panel, and leave either mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.brainstorm import given
from sessionary.layouts.brainstorm.constants import PANEL_PHASES
from sessionary.layouts.brainstorm.store import BrainstormStore

_topic = click.argument("topic", required=False, metavar="[TOPIC]")
_exit = click.option("--exit", "leave", is_flag=True, help="Leave the mode; recorded rounds stay.")
_refers = click.option(
    "--refers", multiple=True, metavar="NAME=OTHER", help="NAME refers to OTHER; may be repeated."
)


@click.command(
    "party",
    epilog="""\b
Examples:
  sessionary brainstorm party checkout Payments --says Architect="a facade" \\
      --says Security="tokens" --refers Security=Architect --synthesis "both"
  sessionary brainstorm party checkout --exit
""",
)
@given.slug
@_topic
@project_options.root
@click.option("--says", multiple=True, metavar="NAME=POINT", help="A point of a persona; may be repeated.")
@_refers
@click.option(
    "--persona", "who", multiple=True, metavar="NAME", help="A participant (default: all who have a point)."
)
@click.option("--synthesis", default="", help="Synthesis of the round.")
@click.option("--ask", default="", metavar="QUESTION", help="A question to the user.")
@_exit
@options.json_result
def party_command(
    slug: str,
    topic: str | None,
    root: Path,
    says: tuple[str, ...],
    refers: tuple[str, ...],
    who: tuple[str, ...],
    synthesis: str,
    ask: str,
    leave: bool,
    json_: bool,
) -> int:
    """Record a round of the party.

    This enters party mode, and leaves panel mode. There is no undo: rounds stay.
    """
    store = given.store_in(root)
    if _left(store, slug, topic, "party", leave=leave, json_=json_):
        return 0
    contributions = _gathered(given.pairs(says, "--says"), "persona", "key_points")
    number = store.party(
        slug,
        str(topic),
        _referring(contributions, "persona", refers),
        synthesis=synthesis,
        user_question=ask,
        personas=who or None,
    )
    return _print_round(slug, "party", number, json_)


@click.command(
    "panel",
    epilog="""\b
Examples:
  sessionary brainstorm panel refactor-api "Data access" --phase debate \\
      --says Martin="a repository" --framework Martin=SOLID --agrees tests
  sessionary brainstorm panel refactor-api --exit
""",
)
@given.slug
@_topic
@project_options.root
@click.option(
    "--phase", type=click.Choice(PANEL_PHASES), default=PANEL_PHASES[0], help="Phase of the discussion."
)
@click.option(
    "--says", multiple=True, metavar="NAME=POSITION", help="The position of an expert; may be repeated."
)
@click.option("--framework", multiple=True, metavar="NAME=FRAMEWORK", help="Framework of an expert.")
@_refers
@click.option(
    "--expert", "who", multiple=True, metavar="NAME", help="A participant (default: all who have a position)."
)
@click.option("--agrees", multiple=True, metavar="TEXT", help="A point of agreement; may be repeated.")
@click.option(
    "--tension", "tensions", multiple=True, metavar="TEXT", help="A point of tension; may be repeated."
)
@_exit
@options.json_result
def panel_command(
    slug: str,
    topic: str | None,
    root: Path,
    phase: str,
    says: tuple[str, ...],
    framework: tuple[str, ...],
    refers: tuple[str, ...],
    who: tuple[str, ...],
    agrees: tuple[str, ...],
    tensions: tuple[str, ...],
    leave: bool,
    json_: bool,
) -> int:
    """Record a round of the panel.

    This enters panel mode, and leaves party mode. There is no undo: rounds stay.
    """
    store = given.store_in(root)
    if _left(store, slug, topic, "panel", leave=leave, json_=json_):
        return 0
    contributions = _gathered(given.pairs(says, "--says"), "expert", "positions")
    frameworks = dict(given.pairs(framework, "--framework"))
    for one in contributions:
        one["framework"] = frameworks.get(one["expert"], "")
        one["position"] = "; ".join(one.pop("positions"))
    number = store.panel(
        slug,
        str(topic),
        _referring(contributions, "expert", refers),
        phase=phase,
        convergent=agrees,
        tensions=tensions,
        experts=who or None,
    )
    return _print_round(slug, "panel", number, json_)


def _left(
    store: BrainstormStore, slug: str, topic: str | None, mode: str, *, leave: bool, json_: bool
) -> bool:
    """True if --exit was given and the mode was left; also true if the session is in the other mode."""
    if not leave:
        if topic is None:
            raise click.UsageError(f"give the topic: sessionary brainstorm {mode} SLUG TOPIC")
        return False
    if topic is not None:
        raise click.UsageError("--exit takes no TOPIC")
    if store.load(slug).mode == mode:
        store.update(slug, mode="standard")
    now = store.load(slug).mode
    if json_:
        output.value({"slug": slug, "mode": now})
    else:
        output.lines(changing.done(f"{slug} is in {now} mode"))
    return True


def _gathered(contributions: Sequence[tuple[str, str]], who: str, what: str) -> list[dict[str, Any]]:
    """The contributions, one per participant, in the order of their first points."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in contributions:
        found.setdefault(name, {who: name, what: []})[what].append(text)
    return list(found.values())


def _referring(contributions: list[dict[str, Any]], who: str, refers: Sequence[str]) -> list[dict[str, Any]]:
    """The contributions with their references."""
    by_name = {one[who]: one for one in contributions}
    for name, other in given.pairs(refers, "--refers"):
        if name not in by_name:
            raise click.UsageError(f"--refers names {name}, who has no point")
        by_name[name].setdefault("references", []).append(other)
    return contributions


def _print_round(slug: str, mode: str, number: int, json_: bool) -> int:
    if json_:
        output.value({"slug": slug, "mode": mode, "round": number})
    else:
        output.lines(changing.done(f"recorded round {number} of the {mode} of {slug}"))
    return 0
