"""Words of a command line that are not valid UTF-8: paths may be any bytes, text may not.

Python hands such bytes over as halves of surrogate pairs, which no file that others read can hold. They are refused
before a command begins, with one message, whatever the command is.

What takes a path says so by its type or its metavar: DIR, FILE, FOLDER, NEWPATH, PROJECT, CONTRACT. So does what looks
for something by the name that it has on the disk, since that name may be any bytes, too.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

_HALVES = re.compile("[\ud800-\udfff]")
_PATH = re.compile(r"\b(?:DIR|FILE|FOLDER|NEWPATH|PROJECT|CONTRACT)\b")


def text_only(command: click.Command, words: Sequence[str]) -> click.Command:
    """The command, refusing text that is not valid UTF-8; the command itself where all words are."""
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
    """The value of a parameter with its words as text, also where the locale has another encoding.

    Raises:
        BadParameter: one of them is not valid UTF-8.
    """
    if isinstance(value, tuple | list):
        return type(value)(checked(ctx, param, one) for one in value)
    if not isinstance(value, str) or not _HALVES.search(value):
        return value
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeDecodeError as error:
        shown = error.object.decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a half that stands for no byte
        shown = value.encode("utf-8", "backslashreplace").decode()
    raise click.BadParameter(f"{shown} is not valid UTF-8.", ctx=ctx, param=param)
