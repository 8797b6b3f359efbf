"""The commands that move a session, save it, and end it: answer, continue, update, back, save, finish, reopen."""

from __future__ import annotations

from typing import Any

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.brainstorm import params, render
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.constants import AXES
from sessionary.layouts.brainstorm.files import ABANDONED
from sessionary.layouts.brainstorm.navigation import Jump
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.brainstorm.store import LOW_SCORE, BrainstormStore
from sessionary.layouts.brainstorm.texts import LANGUAGES, checkpoint, jump_summary, say


@command(
    "answer",
    'sessionary brainstorm answer feature-auth "developers and admins" --ems 38',
    "sessionary brainstorm answer feature-auth          asks on a terminal",
)
@params.slug
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@params.store
@params.settings
@click.option("--minutes", "duration", type=click.IntRange(0), help="Time spent on these answers.")
@params.lang
@options.json_result
def answer_command(
    store: BrainstormStore, slug: str, texts: tuple[str, ...], lang: str, **values: Any
) -> int:
    """Record answers to the questions of the current iteration.

    After a step back they start a branch; the previous answers there are kept. Without TEXT each question is
    asked on a terminal. This cannot be undone: no answer is ever dropped.
    """
    settings = params.set_by(values)  # invalid options are refused before the questions
    answers = list(texts) or _asked(store, slug, lang)
    return params.print_outcome(store.answer(slug, answers, **settings), lang)


def _asked(store: BrainstormStore, slug: str, lang: str) -> list[str]:
    """The user's answers to the questions; nothing is stored until all are answered."""
    questions = store.load(slug, store_migration=False).questions
    if not project_options.may_ask():
        raise click.UsageError("give the answers: sessionary brainstorm answer SLUG TEXT...")
    return [click.prompt(harmless(question), err=True) for question in questions or [say(lang, "answer")]]


@command(
    "continue",
    'sessionary brainstorm continue feature-auth -q "How long does it live?"',
    'sessionary brainstorm continue feature-auth -q "What if it fails?" --persona sparring',
    "sessionary brainstorm continue feature-auth    go forward after `back`",
)
@params.slug
@params.store
@params.questions
@params.settings
@params.lang
@options.json_result
def continue_command(
    store: BrainstormStore, slug: str, questions: tuple[str, ...], lang: str, **values: Any
) -> int:
    """Go to the next iteration.

    After a step back that is the stored one, else a new one. Undo: `back`; the command is printed. It does
    not change persona and mode back.
    """
    before = store.load(slug, store_migration=False)
    jump = store.continue_(slug, questions, **params.set_by(values))
    if before.iteration < before.tip or output.is_json():
        return _print_jump(slug, jump, lang, "undo", "back", restored=before.iteration < before.tip)
    output.lines(render.state(store.load(slug), lang=lang))
    changing.print_command(say(lang, "undo"), project_options.command_line("back", slug))
    return 0


@command(
    "update",
    "sessionary brainstorm update feature-auth --persona sparring",
    "sessionary brainstorm update feature-auth --phase convergent --ems 71",
    'sessionary brainstorm update feature-auth --summary "kept=OAuth2, tokens"',
)
@params.slug
@params.store
@params.settings
@options.repeated(
    "--summary",
    "summary",
    metavar="NAME=TEXT",
    help="An entry of the mid-session summary (transition_summary).",
)
@params.lang
@options.json_result
def update_command(
    store: BrainstormStore, slug: str, summary: tuple[str, ...], lang: str, **values: Any
) -> int:
    """Set score, phase, persona or mode, and nothing else.

    A summary is undone only by another one.
    """
    settings = params.set_by(values)
    if summary:
        settings["transition_summary"] = dict(params.pairs(summary, "--summary"))
    if not settings:
        raise click.UsageError("give at least one of --phase, --persona, --mode, --ems, --axis or --summary")
    before = params.before(store, slug)
    session = store.update(slug, **settings)
    return params.print_outcome(session, lang, _back_to(before, session))


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


@command(
    "back",
    "sessionary brainstorm back feature-auth",
    "sessionary brainstorm back feature-auth 2 --lang fr",
    "sessionary brainstorm continue feature-auth        go forward again",
)
@params.slug
@click.argument("steps", type=int, default=1, metavar="[N]")
@params.store
@params.lang
@options.json_result
def back_command(store: BrainstormStore, slug: str, steps: int, lang: str) -> int:
    """Go back N iterations, 1 to 5 (default 1).

    No answer is lost: `continue` goes forward again, and a new answer starts a branch.
    Undo: `continue`; the command is printed.
    """
    return _print_jump(slug, store.back(slug, steps), lang, "go_forward", "continue")


def _print_jump(slug: str, jump: Jump, lang: str, label: str, undo: str, *, restored: bool = True) -> int:
    """Print a step to a stored iteration, and the command that goes back."""
    document = render.jump_object(slug, jump, restored=restored)
    back = changing.to_run(say(lang, label), project_options.command_line(undo, slug))
    return output.shown(document, [harmless(jump_summary(jump, lang))], asides=[back])


@command(
    "save",
    "sessionary brainstorm save feature-auth",
    "sessionary brainstorm save feature-auth --ems 64 --phase convergent",
)
@params.slug
@params.store
@params.settings
@params.lang
@options.json_result
def save_command(store: BrainstormStore, slug: str, lang: str, **values: Any) -> int:
    """Store a session, and print its state and how to resume it.

    Every command stores its result; this one also stores the time worked since, and the given options. A file
    of an older version is migrated. This cannot be undone, except options by `update`.
    """
    settings = params.set_by(values)
    store.load(slug)  # this stores a migration
    session = store.update(slug, **settings) if settings else store.checkpoint(slug)
    resume = project_options.command_line("start", slug, "--resume")
    text = checkpoint(session, project_options.near_path(session.path), resume, lang)
    document = render.as_object(session) | {"resume": resume}
    return output.shown(document, harmless(text).split("\n"))


@command(
    "finish",
    "sessionary brainstorm finish feature-auth",
    "sessionary brainstorm finish feature-auth --abandon",
)
@params.slug
@params.store
@options.flag("--abandon", help="Abandon the session instead of completing it.")
@params.lang
@options.json_result
def finish_command(store: BrainstormStore, slug: str, abandon: bool, lang: str) -> int:
    """Complete or abandon a session. Undo: `reopen`; the command is printed."""
    before = params.before(store, slug)
    session = store.abandon(slug) if abandon else store.finish(slug)
    if not output.is_json() and lang == LANGUAGES[0]:
        project_options.warn(session.problems)
    elif not output.is_json() and any(problem.code == "low_score" for problem in session.problems):
        output.aside(say(lang, "low_score", ems=session.ems, least=LOW_SCORE))
    changed = before is not None and before.status != session.status
    return params.print_outcome(session, lang, ["reopen", slug] if changed else ())


@command("reopen", "sessionary brainstorm reopen feature-auth")
@params.slug
@params.store
@params.lang
@options.json_result
def reopen_command(store: BrainstormStore, slug: str, lang: str) -> int:
    """Reopen a session that was completed or abandoned.

    Restore an archived one first: `restore --archived`. Undo: `finish`; the command is printed.
    """
    before = params.before(store, slug)
    session = store.reopen(slug)
    changed = before is not None and before.status != session.status
    ended = ["--abandon"] if before is not None and before.status == ABANDONED else []
    return params.print_outcome(session, lang, ["finish", slug, *ended] if changed else ())
