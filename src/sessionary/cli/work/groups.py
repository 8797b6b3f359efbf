"""Groups of commands that are loaded on demand."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sessionary.cli.app import ReaderGone
from sessionary.cli.suggesting import SuggestingGroup


class InOrder(SuggestingGroup):
    """A group that lists its commands in the order of definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class PlacedGroup(SuggestingGroup):
    """A group that imports its commands on demand.

    Args:
        places: name of a command -> ``module:attribute``, in the order of the help.
        short: aliases of commands -> their names.
        called: program names to replace in examples: old, new.
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
        return command if self._called is None else _renamed(command, *self._called)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


def _renamed(command: click.Command, old: str, new: str) -> click.Command:
    """A copy of the command with other program names in its examples."""
    renamed = copy.copy(command)
    renamed.epilog = command.epilog and command.epilog.replace(old, new)
    if isinstance(renamed, click.Group):
        renamed.commands = {name: _renamed(each, old, new) for name, each in renamed.commands.items()}
    return renamed
