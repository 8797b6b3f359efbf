"""The commands that move a session: answer, continue, update, back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.brainstorm import drawn, given
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.constants import AXES
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.texts import jump_summary, say


@click.command(
    "answer",
    epilog="""\b
Examples:
  sessionary brainstorm answer feature-auth "developers and admins" --ems 38
  sessionary brainstorm answer feature-auth          asks on a terminal
""",
)
@given.slug
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@project_options.root
@given.settings
@click.option("--minutes", type=click.IntRange(0), help="Time spent on these answers.")
@given.lang
@options.json_result
def answer_command(
    slug: str,
    texts: tuple[str, ...],
    root: Path,
    minutes: int | None,
    lang: str,
    json_: bool,
    **options: Any,
) -> int:
    """Record answers to the questions of the current iteration.

    After a step back they start a branch; the previous answers there are kept. Without TEXT each question is
    asked on a terminal. There is no undo: no answer is ever dropped.
    """
    store = given.store_in(root)
    settings = given.set_by(options)  # invalid options are refused before the questions
    answers = list(texts) or _asked(store, slug, lang, json_)
    session = store.answer(slug, answers, duration=minutes, **settings)
    return given.print_outcome(session, lang, json_)


def _asked(store: BrainstormStore, slug: str, lang: str, json_: bool) -> list[str]:
    """The user's answers to the questions; nothing is stored until all are answered."""
    questions = store.load(slug, store_migration=False).questions
    if not project_options.may_ask(json_):
        raise click.UsageError("give the answers: sessionary brainstorm answer SLUG TEXT...")
    return [click.prompt(harmless(question), err=True) for question in questions or [say(lang, "answer")]]


@click.command(
    "continue",
    epilog="""\b
Examples:
  sessionary brainstorm continue feature-auth -q "How long does it live?"
  sessionary brainstorm continue feature-auth -q "What if it fails?" --persona sparring
  sessionary brainstorm continue feature-auth    go forward after `back`
""",
)
@given.slug
@project_options.root
@given.questions
@given.settings
@given.lang
@options.json_result
def continue_command(
    slug: str,
    root: Path,
    questions: tuple[str, ...],
    lang: str,
    json_: bool,
    **options: Any,
) -> int:
    """Go to the next iteration.

    After a step back that is the stored one, else a new one. Undo: `back`; the command is printed. It does
    not change persona and mode back.
    """
    store = given.store_in(root)
    before = store.load(slug, store_migration=False)
    jump = store.continue_(slug, questions, **given.set_by(options))
    restored = before.iteration < before.tip
    if json_:
        output.value(drawn.jump_object(slug, jump, restored=restored))
    elif restored:
        output.line(harmless(jump_summary(jump, lang)))
    else:
        output.lines(drawn.state(store.load(slug), lang=lang))
    if not json_:
        changing.print_command(
            say(lang, "undo"), project_options.command_line("brainstorm", root, "back", slug)
        )
    return 0


@click.command(
    "update",
    epilog="""\b
Examples:
  sessionary brainstorm update feature-auth --persona sparring
  sessionary brainstorm update feature-auth --phase convergent --ems 71
  sessionary brainstorm update feature-auth --summary "kept=OAuth2, tokens"
""",
)
@given.slug
@project_options.root
@given.settings
@click.option(
    "--summary",
    "summary",
    multiple=True,
    metavar="NAME=TEXT",
    help="An entry of the mid-session summary (transition_summary); may be repeated.",
)
@given.lang
@options.json_result
def update_command(
    slug: str, root: Path, summary: tuple[str, ...], lang: str, json_: bool, **options: Any
) -> int:
    """Set score, phase, persona or mode, without an answer or a new iteration.

    A summary is undone only by another one.
    """
    settings = given.set_by(options)
    if summary:
        settings["transition_summary"] = dict(given.pairs(summary, "--summary"))
    if not settings:
        raise click.UsageError("give at least one of --phase, --persona, --mode, --ems, --axis or --summary")
    store = given.store_in(root)
    before = project_options.before(lambda: store.load(slug, store_migration=False))
    session = store.update(slug, **settings)
    undo = _back_to(before, session)
    return given.print_outcome(
        session, lang, json_, project_options.command_line("brainstorm", root, *undo) if undo else ""
    )


def _back_to(before: Brainstorm | None, now: Brainstorm) -> list[str]:
    """The words that revert an `update`; none if nothing can be reverted."""
    if before is None:
        return []
    words = []
    for name in ("phase", "persona", "mode"):
        if (was := getattr(before, name)) != getattr(now, name):
            words += [f"--{name}", was]
    axes = before.session.get("ems_axes")
    if isinstance(axes, dict) and axes != now.session.get("ems_axes"):
        words += [word for name in AXES for word in ("--axis", f"{name}={axes.get(name)}")]
    elif before.ems != now.ems:
        words += ["--ems", str(before.ems)]
    return ["update", now.slug, *words] if words else []


@click.command(
    "back",
    epilog="""\b
Examples:
  sessionary brainstorm back feature-auth
  sessionary brainstorm back feature-auth 2 --lang fr
  sessionary brainstorm continue feature-auth        go forward again
""",
)
@given.slug
@click.argument("steps", type=int, default=1, metavar="[N]")
@project_options.root
@given.lang
@options.json_result
def back_command(slug: str, steps: int, root: Path, lang: str, json_: bool) -> int:
    """Go back N iterations, 1 to 5 (default 1).

    No answer is lost: `continue` goes forward again, and a new answer starts a branch.
    Undo: `continue`; the command is printed.
    """
    jump = given.store_in(root).back(slug, steps)
    if json_:
        output.value(drawn.jump_object(slug, jump, restored=True))
        return 0
    output.line(harmless(jump_summary(jump, lang)))
    changing.print_command(
        say(lang, "go_forward"), project_options.command_line("brainstorm", root, "continue", slug)
    )
    return 0
