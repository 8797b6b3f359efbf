"""Groups of commands: they suggest a command for a mistyped one, refuse text that is not valid UTF-8, and import late.

The modules of a lazy group are imported when one of its commands is called or listed, and not before. Brainstorms and
features are YAML, which takes longer to import than a whole `list` of sessions takes to print. So the group itself
knows only names, and the module in which each is defined.

Python passes bytes that are not valid UTF-8 as lone surrogates, which no file that other programs read can hold. They
are allowed in paths and refused in text before a command begins, with the same message for every command. A parameter
is a path by its type or its metavar: DIR, FILE, FOLDER, NEWPATH, PROJECT, CONTRACT. One that names something by its
name on the disk counts as a path too, since that name may be any bytes.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click


class SuggestingGroup(click.Group):
    """A group that suggests similar commands for an unknown one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are written."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; see `click.Group.resolve_command`.

        Raises:
            UsageError: no command has that name.
        """
        word = args[0]
        if not (ctx.resilient_parsing or word.startswith("-")) and self.get_command(ctx, word) is None:
            ctx.fail(f"No such command '{word}'.{_meant(word, self.list_commands(ctx))}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and text_only(command, rest), rest


def _meant(word: str, commands: list[str]) -> str:
    from difflib import get_close_matches  # imported here: slow to import and rarely needed

    near = get_close_matches(word.casefold(), commands)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def command(
    name: str, *examples: str, group: click.Group | None = None, **more: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator of a command or group with examples at the end of its help.

    Args:
        examples: a line each; one that begins with blanks continues the line before.
        group: the group that it belongs to; by default none yet.
        more: arguments of `click.command`, such as `cls`.
    """
    heading = "Examples" if sum(not line.startswith(" ") for line in examples) > 1 else "Example"
    epilog = "\n".join(["\b", f"{heading}:", *(f"  {line}" for line in examples), ""])
    return (click if group is None else group).command(name, epilog=epilog, **more)


class ReaderGone(Exception):
    """The reader of our output has closed the pipe.

    An error of our own, because click ends the process on the plain one, with the exit code of a bug.
    """


class LazyGroup(SuggestingGroup):
    """A group of commands that are imported on first use.

    Args:
        places: name of a command -> ``module:attribute``, in the order of the help; see `places_in`.
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
        return command if self._called is None else _with_name(command, *self._called)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


def places_in(package: str, modules: Mapping[str, str]) -> dict[str, str]:
    """The places of commands that are called ``<name>_command``, from the modules of a package in which they are."""
    return {name: f"{package}.{module}:{name.replace('-', '_')}_command" for name, module in modules.items()}


def _with_name(command: click.Command, old: str, new: str) -> click.Command:
    """A copy of the command with other words in its examples."""
    renamed = copy.copy(command)
    renamed.epilog = command.epilog and command.epilog.replace(old, new)
    if isinstance(renamed, click.Group):
        renamed.commands = {name: _with_name(each, old, new) for name, each in renamed.commands.items()}
    return renamed


_HALVES = re.compile("[\ud800-\udfff]")
_PATH = re.compile(r"\b(?:DIR|FILE|FOLDER|NEWPATH|PROJECT|CONTRACT)\b")


def text_only(command: click.Command, words: Sequence[str]) -> click.Command:
    """Return a command that refuses text that is not valid UTF-8; the command itself if all words are valid."""
    if isinstance(command, click.Group) or not any(map(_HALVES.search, words)):
        return command
    strict = copy.copy(command)
    strict.params = [_strict(param) for param in command.params]
    return strict


def _strict(param: click.Parameter) -> click.Parameter:
    if takes_path(param):
        return param
    strict = copy.copy(param)
    strict.callback = _refusing(param.callback)
    return strict


def takes_path(param: click.Parameter) -> bool:
    """True if the value names something on the disk."""
    return isinstance(param.type, click.Path | click.File) or bool(_PATH.search(str(param.metavar or "")))


def _refusing(then: Callable[..., Any] | None) -> Callable[..., Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        text = checked(ctx, param, value)
        return text if then is None else then(ctx, param, text)

    return callback


def checked(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the value of a parameter with its words as text, also under a locale with another encoding.

    Raises:
        BadParameter: a word is not valid UTF-8.
    """
    if isinstance(value, tuple | list):
        return type(value)(checked(ctx, param, one) for one in value)
    if not isinstance(value, str) or not _HALVES.search(value):
        return value
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeDecodeError as error:
        shown = error.object.decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        shown = value.encode("utf-8", "backslashreplace").decode()
    raise click.BadParameter(f"{shown} is not valid UTF-8.", ctx=ctx, param=param)
