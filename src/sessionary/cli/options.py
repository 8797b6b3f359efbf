"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sessionary.cli import output
from sessionary.cli.param_types import Finite, When
from sessionary.workspace.stores import KINDS

Command = TypeVar("Command", bound=Callable[..., Any])

PARTLY = 3
"""The exit code where only a part was done or could be read."""


def flag(*names: str, **more: Any) -> Callable[[Command], Command]:
    """An option without a value."""
    return click.option(*names, is_flag=True, **more)


def repeated(*names: str, help: str, **more: Any) -> Callable[[Command], Command]:  # noqa: A002 - as `click.option`
    """An option that may be given several times."""
    return click.option(*names, multiple=True, help=f"{help} May be repeated.", **more)


def _form(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value:
        return
    form = str(param.name).rstrip("_")
    if ctx.meta.setdefault(output.FORM, form) != form:
        raise click.UsageError("--json and --jsonl exclude each other")


def choice(*names: str, default: str, among: Sequence[str], help: str) -> Callable[[Command], Command]:  # noqa: A002
    """An option that is one of some words."""
    return click.option(*names, type=click.Choice(among), default=default, show_default=True, help=help)


def seconds(*names: str, default: float, least: float, help: str) -> Callable[[Command], Command]:  # noqa: A002
    """An option that is a time in seconds."""
    return click.option(
        *names, type=Finite(least), default=default, show_default=True, metavar="SECONDS", help=help
    )


def json_flag(*names: str, help: str) -> Callable[[Command], Command]:  # noqa: A002 - as `click.option`
    """An option that prints the result as JSON: see `output.shown`. The command itself is not given its value."""
    return flag(*names, help=help, callback=_form, expose_value=False)


def _home(ctx: click.Context, _: click.Parameter, values: tuple[Path, ...]) -> None:
    """Keep the values for `homes.workspace`.

    When the command has ended, print the .gitignore hint if sessions lie in a git work tree.
    """
    from sessionary.cli.homes import HOMES, workspace

    ctx.meta[HOMES] = values

    def hint() -> None:
        from sessionary.cli.gitignore_hint import print_once

        if output.FORM not in ctx.meta:
            print_once(workspace(must_exist=False, places=values).layouts)

    if not ctx.resilient_parsing:  # completion in a shell prints nothing else
        ctx.call_on_close(hint)


home = repeated(
    "--home",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=_home,
    expose_value=False,
    help="Only the sessions in this folder, such as ~/.claude (default: those of all agents; of Amplifier those in "
    "$SESSIONARY_HOME, else ~/.amplifier).",
)


def as_json(what: str, line: str) -> Callable[[Command], Command]:
    """The options ``--json`` (all in one document) and ``--jsonl`` (a stream of lines), which exclude each other."""
    text, texts = f"Print {what} as one JSON document.", f"Print JSON Lines: {line} per line."
    return together(json_flag("--json", "json_", help=text), json_flag("--jsonl", help=texts))


def together(*some: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one, in the order of the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(some):
            command = option(command)
        return command

    return decorate


json_result = json_flag("--json", "json_", help="Print the result as one JSON document.")
dry_run = flag("--dry-run", help="Show what would be done; write nothing.")


since = click.option(
    "--since",
    type=When(),
    metavar="TIME",
    help="Only from this time on: 3d, 1h30m, '2 weeks ago', yesterday, 2026-03-14.",
)
until = click.option(
    "--until",
    type=When(end=True),
    metavar="TIME",
    help="Only up to this time, in the same formats; a day is included.",
)
project = click.option(
    "--project",
    metavar="NAME | DIR",
    help="Only this project: its path, its folder name, or the end of that name.",
)
kinds = click.option(
    "--kind",
    "--agent",
    "kinds",
    type=click.Choice(KINDS, case_sensitive=False),
    metavar="KIND",
    multiple=True,
    help=f"Only sessions of this kind: {', '.join(KINDS)}. May be repeated.",
)
model = click.option(
    "--model",
    metavar="NAME",
    help="Only sessions and usage of models with this text in their names, such as opus.",
)
top_level = flag("--top-level", help="Omit the sessions of sub-agents.")
