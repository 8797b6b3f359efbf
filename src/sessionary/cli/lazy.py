"""A group of commands whose modules are imported only when one of them is called or listed.

Brainstorms and features need YAML, which takes longer to import than a whole `list` takes to print. So the
group itself holds only names, and the module of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sessionary.cli.suggesting import SuggestingGroup


class LazyGroup(SuggestingGroup):
    """A group whose commands lie in modules of one package, as ``<name>_command``.

    Args:
        package: the package of the modules.
        modules: the module of each command, in the order of the help.
    """

    def __init__(self, *args: Any, package: str, modules: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._package = package
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        module = import_module(f"{self._package}.{self._modules[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command
