"""The commands that save a session, end it, and open it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import in_project, output
from sessionary.cli.brainstorm import drawn, given
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.ending import LOW_SCORE
from sessionary.layouts.brainstorm.messages import LANGUAGES, checkpoint, say
from sessionary.layouts.brainstorm.writing import ABANDONED


@click.command(
    "save",
    epilog="""\b
Examples:
  sessionary brainstorm save feature-auth
  sessionary brainstorm save feature-auth --ems 64 --phase convergent
""",
)
@given.slug
@in_project.root
@given.settings
@given.lang
@in_project.as_json
def save_command(slug: str, root: Path, lang: str, json_: bool, **options: Any) -> int:
    """Store a session, and print where it stands and how to resume it.

    Every command stores what it does; this one also stores the time worked since, and what is set by an option. A
    file of an older version is migrated. There is no undo, but that of `update` for the options.
    """
    store = given.store_in(root)
    settings = given.set_by(options)
    store.load(slug)  # which stores a migration
    session = store.update(slug, **settings) if settings else store.checkpoint(slug)
    resume = in_project.command_line("brainstorm", root, "start", slug, "--resume")
    if json_:
        output.value(drawn.as_object(session) | {"resume": resume})
    else:
        output.lines(
            harmless(checkpoint(session, in_project.short_path(session.path), resume, lang)).split("\n")
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
@in_project.root
@click.option("--abandon", is_flag=True, help="Give it up instead of completing it.")
@given.lang
@in_project.as_json
def finish_command(slug: str, root: Path, abandon: bool, lang: str, json_: bool) -> int:
    """Complete a session, or give it up. Undo: `reopen`, whose line is printed."""
    store = given.store_in(root)
    before = given.before(lambda: store.load(slug, store_migration=False))
    session = store.abandon(slug) if abandon else store.finish(slug)
    if not json_ and lang == LANGUAGES[0]:
        in_project.warn(session.problems)
    elif not json_ and any(problem.code == "low_score" for problem in session.problems):
        output.aside(say(lang, "low_score", ems=session.ems, least=LOW_SCORE))
    changed = before is not None and before.status != session.status
    undo = in_project.command_line("brainstorm", root, "reopen", slug) if changed else ""
    return given.told(session, lang, json_, undo)


@click.command(
    "reopen",
    epilog="""\b
Example:
  sessionary brainstorm reopen feature-auth
""",
)
@given.slug
@in_project.root
@given.lang
@in_project.as_json
def reopen_command(slug: str, root: Path, lang: str, json_: bool) -> int:
    """Go on with a session that was completed or given up.

    One in archive/ is brought back first: `restore --archived`. Undo: `finish`, whose line is printed.
    """
    store = given.store_in(root)
    before = given.before(lambda: store.load(slug, store_migration=False))
    session = store.reopen(slug)
    ended = ["--abandon"] if before is not None and before.status == ABANDONED else []
    changed = before is not None and before.status != session.status
    undo = in_project.command_line("brainstorm", root, "finish", slug, *ended) if changed else ""
    return given.told(session, lang, json_, undo)
