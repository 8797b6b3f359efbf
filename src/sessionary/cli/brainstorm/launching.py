"""`sessionary brainstorm start`: find sessions to resume, ask which one, start or resume it.

Without a terminal an option must decide: a session in progress is neither resumed nor archived by default.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import options, output, project_options
from sessionary.cli.brainstorm import params, render
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless
from sessionary.errors import AlreadyExists, TransitionError
from sessionary.layouts.brainstorm.constants import DAYS_KEPT, MODES, PERSONAS
from sessionary.layouts.brainstorm.files import IN_PROGRESS
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.texts import launch_prompt, say

_RESUME, _NEW = "1", "2"


@command(
    "start",
    'sessionary brainstorm start feature-auth -q "Who signs in?"',
    "sessionary brainstorm start                     list what is in progress",
    "sessionary brainstorm start feature-auth --resume",
    "sessionary brainstorm start feature-auth --new   archives the current one",
)
@click.argument("slug", required=False, metavar="[SLUG]", shell_complete=params.complete)
@params.store
@params.questions
@click.option("--persona", type=click.Choice(PERSONAS), default=PERSONAS[0], help="Facilitator.")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], help="Facilitation mode.")
@params.scores
@options.flag("--progressive", help="Record the phases that are done.")
@options.flag("--resume", help="Resume the existing session.")
@options.flag("--new", help="Start a new session; an existing one moves to archive/.")
@click.option(
    "--days",
    type=click.IntRange(0),
    default=DAYS_KEPT,
    help="Age in days after which ended sessions are cleaned up.",
)
@params.lang
@options.json_result
def start_command(
    store: BrainstormStore, slug: str | None, resume: bool, new: bool, days: int, lang: str, **fields: Any
) -> int:
    """Start a session, or resume one that is in progress.

    On a terminal you are asked which; elsewhere --resume or --new decides (otherwise the sessions found are
    printed, with exit code 11). Sessions that ended more than 30 days ago are moved to .trash/. A new session
    cannot be undone; the one that it replaced is restored by `restore --archived --replace`.
    """
    if resume and new:
        raise click.UsageError("--resume and --new exclude each other")
    found, cleaned = store.launch(slug, days=days)
    for one in cleaned:
        output.aside(harmless(say(lang, "not_cleaned" if one.problem else "cleaned", slug=one.row.slug)))
    if slug is None and found.sessions:
        params.warn(found.problems, lang)
        if others := [row.slug for row in found.sessions[1:]]:
            output.aside(harmless(say(lang, "also", slugs=", ".join(others))))
    present = found.sessions[0] if found.sessions else None
    if _wants_to_resume(present, resume=resume, new=new, lang=lang):
        assert present is not None
        return _go_on(store, present, lang)
    name = slug or _ask_name(new=new, found=bool(found.sessions))
    agreed = new or (present is not None and present.slug == name)
    return _begin(store, name, params.set_by(fields), lang, agreed=agreed)


def _wants_to_resume(row: Row | None, *, resume: bool, new: bool, lang: str) -> bool:
    if row is None or row.status != IN_PROGRESS:
        if resume:
            reason = "no session in progress" if row is None else f"session {row.slug} is {row.status}"
            raise TransitionError(reason, hint="start one without --resume")
        return False
    if resume or new:
        return resume
    now = datetime.now(UTC)
    if not project_options.may_ask():
        if not output.is_json():
            output.aside(harmless(launch_prompt(row, now, lang, choices=False)))
        raise AlreadyExists(
            say(lang, "is_open", slug=row.slug),
            path=row.path,
            session=row.slug,
            details={"found": render.found_object(row, now)},
            hint=say(lang, "open_hint"),
        )
    output.aside(harmless(launch_prompt(row, now, lang)))
    choice: str = click.prompt(
        "", type=click.Choice([_RESUME, _NEW]), prompt_suffix="> ", show_choices=False, err=True
    )
    return choice == _RESUME


def _ask_name(*, new: bool, found: bool) -> str:
    if not project_options.may_ask() or not (new or found):
        raise click.UsageError("name the session to start: sessionary brainstorm start SLUG")
    name: str = click.prompt("SLUG", err=True)
    return name


def _go_on(store: BrainstormStore, row: Row, lang: str) -> int:
    found = render.found_object(row, datetime.now(UTC))
    session = store.load(row.slug)
    if not output.is_json():
        params.warn(session.problems, lang, session.slug)
    document = {"action": "resumed", "found": found, **render.as_object(session)}
    return output.shown(document, render.state(session, lang=lang))


def _begin(store: BrainstormStore, slug: str, settings: dict[str, Any], lang: str, *, agreed: bool) -> int:
    """Start a session. An existing one of that name is moved if it has ended, or if the user `agreed` to it.

    Another process may have started it in the meantime: then the user has agreed to nothing.
    """
    before = next(iter(store.detect(slug).sessions), None)
    ended = before is not None and before.status != IN_PROGRESS
    session = store.create(slug, new=before is not None and (agreed or ended), **settings)
    undo = None
    if before is not None:
        undo = project_options.command_line("restore", slug, "--archived", "--replace")
    found = render.found_object(before, datetime.now(UTC)) if before else None
    began = {"action": "created", "archived": before and before.id, "found": found, "undo": undo}
    if not output.is_json() and before is not None and before.id is not None:
        output.aside(harmless(say(lang, "archived", id=before.id)))
    return params.print_saved(session, lang, undo, {**began, **render.as_object(session)})
