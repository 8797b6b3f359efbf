"""A group of commands whose modules are imported when one of them is called or listed, and not before.

Brainstorms and features are YAML, which takes longer to import than a whole `list` of sessions takes to print. So the
group itself knows only names, and the module in which each is defined.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sessionary.cli.suggesting import SuggestingGroup


class ReaderGone(Exception):
    """The reader of our output has closed the pipe.

    An error of our own, because click ends the process on the plain one, with the exit code of a bug.
    """


class LazyGroup(SuggestingGroup):
    """A group of commands that are imported on first use.

    Args:
        places: name of a command -> ``module:attribute``, in the order of the help; see `places_in`.
        short: other names of commands -> their names.
        called: how its commands are called in examples: the written words, and the words to show instead.
    """

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str],
        short: Mapping[str, str] | None = None,
        called: tuple[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._places = places
        self._short = short or {}
        self._called = called

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._places.get(self._short.get(cmd_name, cmd_name))
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command if self._called is None else _retold(command, *self._called)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


def places_in(package: str, modules: Mapping[str, str]) -> dict[str, str]:
    """The places of commands that are called ``<name>_command``, from the modules of a package in which they are."""
    return {name: f"{package}.{module}:{name.replace('-', '_')}_command" for name, module in modules.items()}


def _retold(command: click.Command, old: str, new: str) -> click.Command:
    """The command with other words in its examples; the command itself stays as it is."""
    told = copy.copy(command)
    told.epilog = command.epilog and command.epilog.replace(old, new)
    if isinstance(told, click.Group):
        told.commands = {name: _retold(each, old, new) for name, each in told.commands.items()}
    return told
