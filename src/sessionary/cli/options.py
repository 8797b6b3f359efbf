"""The options that several commands share, worded once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sessionary.cli.when import When

Command = TypeVar("Command", bound=Callable[..., Any])

home = click.option(
    "--home",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder that holds projects/ (default: ~/.amplifier).",
)


def as_json(what: str, line: str) -> Callable[[Command], Command]:
    """The options ``--json`` (all in one document) and ``--jsonl`` (a stream of lines), which exclude each other."""

    def decorate(command: Command) -> Command:
        command = click.option("--jsonl", is_flag=True, help=f"Print JSON Lines: {line} per line.")(command)
        return click.option("--json", "json_", is_flag=True, help=f"Print {what} as one JSON document.")(
            command
        )

    return decorate


def one_format(json_: bool, jsonl: bool) -> None:
    """Refuse both formats at once."""
    if json_ and jsonl:
        raise click.UsageError("--json and --jsonl exclude each other")


since = click.option(
    "--since", type=When(), metavar="TIME", help="Nothing older: 3d, 2h, yesterday, 'last week', 2026-03-14."
)
until = click.option(
    "--until", type=When(end=True), metavar="TIME", help="Nothing newer: the same words; the day is included."
)
project = click.option(
    "--project", metavar="NAME", help="Only this project: its path, its folder name, or the end of that."
)
top_level = click.option("--top-level", is_flag=True, help="Leave the sessions of sub-agents out.")
