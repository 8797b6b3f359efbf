"""The commands that save, finish and reopen a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import options, output, project_options
from sessionary.cli.brainstorm import drawn, given
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.files import ABANDONED
from sessionary.layouts.brainstorm.store import LOW_SCORE
from sessionary.layouts.brainstorm.texts import LANGUAGES, checkpoint, say


@click.command(
    "save",
    epilog="""\b
Examples:
  sessionary brainstorm save feature-auth
  sessionary brainstorm save feature-auth --ems 64 --phase convergent
""",
)
@given.slug
@project_options.root
@given.settings
@given.lang
@options.json_result
def save_command(slug: str, root: Path, lang: str, json_: bool, **options: Any) -> int:
    """Store a session, and print its state and how to resume it.

    Every command stores its result; this one also stores the time worked since, and the given options. A file
    of an older version is migrated. There is no undo, except `update` for the options.
    """
    store = given.store_in(root)
    settings = given.set_by(options)
    store.load(slug)  # this stores a migration
    session = store.update(slug, **settings) if settings else store.checkpoint(slug)
    resume = project_options.command_line("brainstorm", root, "start", slug, "--resume")
    if json_:
        output.value(drawn.as_object(session) | {"resume": resume})
    else:
        output.lines(
            harmless(checkpoint(session, project_options.short_path(session.path), resume, lang)).split("\n")
        )
    return 0


@click.command(
    "finish",
    epilog="""\b
Examples:
  sessionary brainstorm finish feature-auth
  sessionary brainstorm finish feature-auth --abandon
""",
)
@given.slug
@project_options.root
@click.option("--abandon", is_flag=True, help="Abandon the session instead of completing it.")
@given.lang
@options.json_result
def finish_command(slug: str, root: Path, abandon: bool, lang: str, json_: bool) -> int:
    """Complete or abandon a session. Undo: `reopen`; the command is printed."""
    store = given.store_in(root)
    before = project_options.before(lambda: store.load(slug, store_migration=False))
    session = store.abandon(slug) if abandon else store.finish(slug)
    if not json_ and lang == LANGUAGES[0]:
        project_options.warn(session.problems)
    elif not json_ and any(problem.code == "low_score" for problem in session.problems):
        output.aside(say(lang, "low_score", ems=session.ems, least=LOW_SCORE))
    changed = before is not None and before.status != session.status
    undo = project_options.command_line("brainstorm", root, "reopen", slug) if changed else ""
    return given.print_outcome(session, lang, json_, undo)


@click.command(
    "reopen",
    epilog="""\b
Example:
  sessionary brainstorm reopen feature-auth
""",
)
@given.slug
@project_options.root
@given.lang
@options.json_result
def reopen_command(slug: str, root: Path, lang: str, json_: bool) -> int:
    """Reopen a session that was completed or abandoned.

    Restore an archived one first: `restore --archived`. Undo: `finish`; the command is printed.
    """
    store = given.store_in(root)
    before = project_options.before(lambda: store.load(slug, store_migration=False))
    session = store.reopen(slug)
    ended = ["--abandon"] if before is not None and before.status == ABANDONED else []
    changed = before is not None and before.status != session.status
    undo = project_options.command_line("brainstorm", root, "finish", slug, *ended) if changed else ""
    return given.print_outcome(session, lang, json_, undo)
