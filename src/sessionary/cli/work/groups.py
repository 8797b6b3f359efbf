"""Groups of commands that load a command when it is asked for."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sessionary.cli.app import ReaderGone
from sessionary.cli.suggesting import SuggestingGroup


class InOrder(SuggestingGroup):
    """A group whose commands stand in the order in which they are written."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class PlacedGroup(SuggestingGroup):
    """A group that knows where its commands lie.

    Args:
        places: name of a command -> ``module:attribute``, in the order of the help.
        short: other names of commands -> their names.
        called: how its commands are called in examples: what stands there, and what is shown instead.
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


def _retold(command: click.Command, old: str, new: str) -> click.Command:
    """The command with other words in its examples; the command itself stays as it is."""
    told = copy.copy(command)
    told.epilog = command.epilog and command.epilog.replace(old, new)
    if isinstance(told, click.Group):
        told.commands = {name: _retold(each, old, new) for name, each in told.commands.items()}
    return told
