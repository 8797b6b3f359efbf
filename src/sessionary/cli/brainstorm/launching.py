"""`sessionary brainstorm start`: find sessions to resume, ask which one, start or resume it.

Without a terminal an option must decide: a session in progress is neither resumed nor archived by default.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.brainstorm import drawn, given
from sessionary.cli.text import harmless
from sessionary.errors import AlreadyExists, TransitionError
from sessionary.layouts.brainstorm.constants import DAYS_KEPT, MODES, PERSONAS
from sessionary.layouts.brainstorm.files import IN_PROGRESS
from sessionary.layouts.brainstorm.maintenance import Cleaned
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.store import BrainstormStore, Found
from sessionary.layouts.brainstorm.texts import launch_prompt, saved, say

_RESUME, _NEW = "1", "2"


@click.command(
    "start",
    epilog="""\b
Examples:
  sessionary brainstorm start feature-auth -q "Who signs in?"
  sessionary brainstorm start                     list what is in progress
  sessionary brainstorm start feature-auth --resume
  sessionary brainstorm start feature-auth --new   archives the current one
""",
)
@click.argument("slug", required=False, metavar="[SLUG]", shell_complete=given.complete)
@project_options.root
@given.questions
@click.option("--persona", type=click.Choice(PERSONAS), default=PERSONAS[0], help="Facilitator.")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], help="Facilitation mode.")
@given.scores
@click.option("--progressive", is_flag=True, help="Record the phases that are done.")
@click.option("--resume", is_flag=True, help="Resume the existing session.")
@click.option("--new", is_flag=True, help="Start a new session; an existing one moves to archive/.")
@click.option(
    "--days",
    type=click.IntRange(0),
    default=DAYS_KEPT,
    help="Age in days after which ended sessions are cleaned up.",
)
@given.lang
@options.json_result
def start_command(
    slug: str | None, root: Path, resume: bool, new: bool, days: int, lang: str, json_: bool, **fields: Any
) -> int:
    """Start a session, or resume one that is in progress.

    On a terminal you are asked which; elsewhere --resume or --new decides (otherwise the sessions found are
    printed, with exit code 11). Sessions that ended more than 30 days ago are moved to .trash/. A new session
    has no undo; the one that it replaced is restored by `restore --archived --replace`.
    """
    if resume and new:
        raise click.UsageError("--resume and --new exclude each other")
    store = given.store_in(root)
    found, cleaned = store.launch(slug, days=days)
    _print_cleaned(cleaned, lang)
    present = _present(found, root, slug, lang)
    if _wants_to_resume(present, resume=resume, new=new, lang=lang, json_=json_):
        assert present is not None
        return _go_on(store, root, present, lang, json_)
    name = slug or _ask_name(new=new, found=bool(found.sessions), json_=json_)
    agreed = new or (present is not None and present.slug == name)
    return _begin(store, root, name, given.set_by(fields), lang, json_, agreed=agreed)


def _present(found: Found, root: Path, slug: str | None, lang: str) -> Row | None:
    """The session to resume; of several the one that changed last; the others are printed."""
    if not found.sessions:
        return None
    if slug is None:
        given.warn(found.problems, root, lang)
        others = [row.slug for row in found.sessions[1:]]
        if others:
            output.aside(harmless(say(lang, "also", slugs=", ".join(others))))
    return found.sessions[0]


def _wants_to_resume(row: Row | None, *, resume: bool, new: bool, lang: str, json_: bool) -> bool:
    if row is None or row.status != IN_PROGRESS:
        if resume:
            reason = "no session in progress" if row is None else f"session {row.slug} is {row.status}"
            raise TransitionError(reason, hint="start one without --resume")
        return False
    if resume or new:
        return resume
    now = datetime.now(UTC)
    if not project_options.may_ask(json_):
        if not json_:
            output.aside(harmless(launch_prompt(row, now, lang, choices=False)))
        raise AlreadyExists(
            say(lang, "is_open", slug=row.slug),
            path=row.path,
            session=row.slug,
            details={"found": drawn.found_object(row, now)},
            hint=say(lang, "open_hint"),
        )
    output.aside(harmless(launch_prompt(row, now, lang)))
    choice: str = click.prompt(
        "", type=click.Choice([_RESUME, _NEW]), prompt_suffix="> ", show_choices=False, err=True
    )
    return choice == _RESUME


def _ask_name(*, new: bool, found: bool, json_: bool) -> str:
    if not project_options.may_ask(json_) or not (new or found):
        raise click.UsageError("name the session to start: sessionary brainstorm start SLUG")
    name: str = click.prompt("SLUG", err=True)
    return name


def _go_on(store: BrainstormStore, root: Path, row: Row, lang: str, json_: bool) -> int:
    found = drawn.found_object(row, datetime.now(UTC))
    session = store.load(row.slug)
    if json_:
        output.value({"action": "resumed", "found": found, **drawn.as_object(session)})
        return 0
    given.warn(session.problems, root, lang, session.slug)
    output.lines(drawn.state(session, lang=lang))
    return 0


def _begin(
    store: BrainstormStore,
    root: Path,
    slug: str,
    settings: dict[str, Any],
    lang: str,
    json_: bool,
    *,
    agreed: bool,
) -> int:
    """Start a session. An existing one of that name is moved if it has ended, or if the user `agreed` to it.

    Another process may have started it in the meantime: then the user has agreed to nothing.
    """
    before = store.detect(slug).sessions
    ended = bool(before) and before[0].status != IN_PROGRESS
    session = store.create(slug, new=bool(before) and (agreed or ended), **settings)
    archived = before[0].id if before else None
    back = project_options.command_line("brainstorm", root, "restore", slug, "--archived", "--replace")
    undo = back if before else None
    if json_:
        found = drawn.found_object(before[0], datetime.now(UTC)) if before else None
        began = {"action": "created", "archived": archived, "found": found, "undo": undo}
        output.value({**began, **drawn.as_object(session)})
        return 0
    if archived is not None:
        output.aside(harmless(say(lang, "archived", id=archived)))
    output.line(harmless(saved(project_options.short_path(session.path), lang)))
    if undo:
        changing.print_command(say(lang, "undo"), undo)
    return 0


def _print_cleaned(cleaned: list[Cleaned], lang: str) -> None:
    for one in cleaned:
        output.aside(harmless(say(lang, "not_cleaned" if one.problem else "cleaned", slug=one.row.slug)))
