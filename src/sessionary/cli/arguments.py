"""Arguments that are not valid UTF-8: allowed in paths, refused in text.

Python passes such bytes as lone surrogates, which no file that other programs read can hold. They are refused
before a command begins, with the same message for every command.

A parameter is a path by its type or its metavar: DIR, FILE, FOLDER, NEWPATH, PROJECT, CONTRACT. A parameter
that names something by its name on the disk counts as a path too, since that name may be any bytes.
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
