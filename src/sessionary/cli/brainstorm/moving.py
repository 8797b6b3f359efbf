"""The commands that move a session: answers, the next iteration, steps back, the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, in_project, output
from sessionary.cli.brainstorm import drawn, given
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.messages import jump_summary, saved
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import BrainstormStore


@click.command(
    "answer",
    epilog="""\b
Examples:
  sessionary brainstorm answer feature-auth "developers and admins" --ems 38
  sessionary brainstorm answer feature-auth          asks, on a terminal
""",
)
@given.slug
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@in_project.root
@given.settings
@click.option("--minutes", type=click.IntRange(0), help="How long these answers took.")
@given.lang
@in_project.as_json
def answer_command(
    slug: str,
    texts: tuple[str, ...],
    root: Path,
    minutes: int | None,
    lang: str,
    json_: bool,
    **options: Any,
) -> int:
    """Record answers to the questions of the present iteration.

    After a step back they begin a branch; what was answered there before is kept. Without a TEXT each question is
    asked, on a terminal.
    """
    store = given.store_in(root)
    settings = given.set_by(options)  # what cannot be meant is refused before anybody is asked
    answers = list(texts) or _asked(store, slug, json_)
    session = store.answer(slug, answers, duration=minutes, **settings)
    return _told(session, lang, json_)


def _asked(store: BrainstormStore, slug: str, json_: bool) -> list[str]:
    """What the person answers to each question; nothing of it is stored before all are answered."""
    questions = store.load(slug, store_migration=False).questions
    if not in_project.may_ask(json_):
        raise click.UsageError("give the answers: sessionary brainstorm answer SLUG TEXT...")
    return [click.prompt(harmless(question), err=True) for question in questions or ["Answer"]]


@click.command(
    "continue",
    epilog="""\b
Examples:
  sessionary brainstorm continue feature-auth -q "How long does it live?"
  sessionary brainstorm continue feature-auth -q "What if it fails?" --persona sparring
  sessionary brainstorm continue feature-auth    forward again after `back`
""",
)
@given.slug
@in_project.root
@given.questions
@given.settings
@given.lang
@in_project.as_json
def continue_command(
    slug: str,
    root: Path,
    questions: tuple[str, ...],
    lang: str,
    json_: bool,
    **options: Any,
) -> int:
    """Go on to the next iteration.

    After a step back that is the one that is stored, else a new one.
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
@in_project.root
@given.settings
@click.option(
    "--summary",
    "summary",
    multiple=True,
    metavar="NAME=TEXT",
    help="What there is at the middle of it (transition_summary); may be repeated.",
)
@given.lang
@in_project.as_json
def update_command(
    slug: str, root: Path, summary: tuple[str, ...], lang: str, json_: bool, **options: Any
) -> int:
    """Set score, phase, persona or mode, without an answer or another iteration."""
    settings = given.set_by(options)
    if summary:
        settings["transition_summary"] = dict(given.pairs(summary, "--summary"))
    if not settings:
        raise click.UsageError(
            "say what is to be set: --phase, --persona, --mode, --ems, --axis or --summary"
        )
    session = given.store_in(root).update(slug, **settings)
    return _told(session, lang, json_)


@click.command(
    "back",
    epilog="""\b
Examples:
  sessionary brainstorm back feature-auth
  sessionary brainstorm back feature-auth 2 --lang fr
  sessionary brainstorm continue feature-auth        forward again
""",
)
@given.slug
@click.argument("steps", type=int, default=1, metavar="[N]")
@in_project.root
@given.lang
@in_project.as_json
def back_command(slug: str, steps: int, root: Path, lang: str, json_: bool) -> int:
    """Go back N iterations, 1 to 5 (default 1).

    No answer is lost: `continue` goes forward again, and a new answer begins a branch.
    """
    jump = given.store_in(root).back(slug, steps)
    if json_:
        output.value(drawn.jump_object(slug, jump, restored=True))
        return 0
    output.line(harmless(jump_summary(jump, lang)))
    changing.tell("forward", in_project.command_line("brainstorm", root, "continue", slug))
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
    """Complete a session, or give it up. It cannot be opened again."""
    store = given.store_in(root)
    session = store.abandon(slug) if abandon else store.finish(slug)
    if not json_:
        in_project.warn(session.problems)
    return _told(session, lang, json_)


def _told(session: Brainstorm, lang: str, json_: bool) -> int:
    """Say that a session is stored, and where."""
    if json_:
        output.value(drawn.as_object(session))
    else:
        output.line(harmless(saved(in_project.short_path(session.path), lang)))
    return 0
