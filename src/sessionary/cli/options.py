"""The options that several commands share, worded once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

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
