"""Options that several commands on brainstorms share, and the parsing of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sessionary.cli import changing, completing, options, output, project_options
from sessionary.cli.brainstorm import render
from sessionary.cli.text import harmless
from sessionary.errors import Invalid
from sessionary.layouts.brainstorm.constants import AXES, MODES, PERSONAS, PHASES
from sessionary.layouts.brainstorm.reading import newest_first
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.texts import LANGUAGES, saved, say
from sessionary.model import Problem


def _slugs(ctx: click.Context) -> list[str]:
    """The slugs of the project, newest first."""
    return [row.slug for row in newest_first(BrainstormStore(ctx.params["root"]).list())]


complete = completing.ids(_slugs)
_named = {
    "callback": project_options.resolving(lambda root, word: BrainstormStore(root).find(word)),
    "shell_complete": complete,
}
slug = click.argument("slug", metavar="SLUG", **_named)  # type: ignore[arg-type]
optional_slug = click.argument("slug", required=False, metavar="[SLUG]", **_named)  # type: ignore[arg-type]
store = project_options.on_store(BrainstormStore)
lang = click.option(
    "--lang", type=click.Choice(LANGUAGES), default=LANGUAGES[0], help="Language of the output."
)
questions = options.repeated("-q", "--question", "questions", help="A question.")


scores = options.together(
    click.option("--ems", type=click.IntRange(0, 100), help="The current score."),
    click.option(
        "--axis",
        "axes",
        multiple=True,
        metavar="NAME=N",
        help=f"An axis of the score, 0 to 100; give all of {', '.join(AXES)}.",
    ),
    click.option("--phase", type=click.Choice(PHASES), help="The current phase."),
)
settings = options.together(
    scores,
    click.option("--persona", type=click.Choice(PERSONAS), help="Facilitator from now on."),
    click.option("--mode", type=click.Choice(MODES), help="Facilitation mode from now on."),
)


def set_by(values: dict[str, Any]) -> dict[str, Any]:
    """The values of the options of `scores` and `settings`, with the axes parsed; missing ones are left out.

    Raises:
        Invalid: an axis is not a whole number.
    """
    values = {**values, "axes": _axes_of(values["axes"])}
    return {name: value for name, value in values.items() if value is not None}


def before(store: BrainstormStore, slug: str) -> Brainstorm | None:
    """The session before a change, for its undo line; None if it cannot be read: the change then reports why."""
    return project_options.before(lambda: store.load(slug, store_migration=False))


def warn(problems: Sequence[Problem], lang: str, *slug: str) -> None:
    """Print problems of sessions, on standard error.

    Problems are worded in English, and a screen has one language: in another language only their number is
    printed, with the command that prints them.
    """
    if lang == LANGUAGES[0] or not problems:
        project_options.warn(problems)
        return
    command = project_options.command_line("validate", *slug, "--notes")
    output.aside(harmless(say(lang, "notes", count=len(problems), command=command)))


def print_outcome(session: Brainstorm, lang: str, undo: Sequence[str] = ()) -> int:
    """Print that a session is stored, and where; and the command that undoes it, if there is one."""
    line = project_options.command_line(*undo) if undo else None
    return print_saved(session, lang, line, render.as_object(session) | {"undo": line})


def print_saved(session: Brainstorm, lang: str, undo: str | None, document: dict[str, Any]) -> int:
    """Print a document; or where a session is stored, and the command that undoes that."""
    place = harmless(saved(project_options.near_path(session.path), lang))
    asides = [] if undo is None else [changing.to_run(say(lang, "undo"), undo)]
    return output.shown(document, [place], asides=asides)


def _axes_of(given: Sequence[str]) -> dict[str, int] | None:
    """The axes that were given, by name in any case; None if there are none."""
    if not given:
        return None
    names = {name.casefold(): name for name in AXES}
    found: dict[str, int] = {}
    for name, value in pairs(given, "--axis"):
        try:
            found[names.get(name.casefold(), name)] = int(value)
        except ValueError:
            raise Invalid(f"axis {name} is {value!r}", hint="give a whole number from 0 to 100") from None
    return found


def pairs(given: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Parse ``NAME=VALUE`` words.

    Raises:
        click.UsageError: one of them has no name or no ``=``.
    """
    found = []
    for word in given:
        name, sign, value = word.partition("=")
        if not sign or not name.strip():
            raise click.UsageError(f"{option} takes NAME=VALUE, not {word!r}")
        found.append((name.strip(), value.strip()))
    return found
