"""Words of a command line that are not valid UTF-8: paths may be any bytes, text may not.

Python hands such bytes over as halves of surrogate pairs, which no file that others read can hold. They are refused
before a command begins, with one message, whatever the command is.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

_BYTES = re.compile("[\udc80-\udcff]")
_PATH = re.compile(r"\b(?:DIR|FILE|NEWPATH)\b")
_PATH_OR_NAME = frozenset({"project"})


def text_only(command: click.Command, words: Sequence[str]) -> click.Command:
    """The command, refusing text that is not valid UTF-8; the command itself where all words are."""
    if isinstance(command, click.Group) or not any(map(_BYTES.search, words)):
        return command
    strict = copy.copy(command)
    strict.params = [_strict(param) for param in command.params]
    return strict


def _strict(param: click.Parameter) -> click.Parameter:
    if isinstance(param.type, click.Path | click.File) or _PATH.search(str(param.metavar or "")):
        return param
    strict = copy.copy(param)
    strict.callback = _refusing(param.callback)
    return strict


def _refusing(then: Callable[..., Any] | None) -> Callable[..., Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            text = _text(value, param.name in _PATH_OR_NAME)
        except UnicodeDecodeError as error:
            shown = error.object.decode("utf-8", "backslashreplace")
            raise click.BadParameter(f"{shown} is not valid UTF-8.", ctx=ctx, param=param) from None
        return text if then is None else then(ctx, param, text)

    return callback


def _text(value: Any, is_path: bool) -> Any:
    """The value with its words as text, also where the locale has another encoding.

    Raises:
        UnicodeDecodeError: one of them is not valid UTF-8.
    """
    if isinstance(value, tuple | list):
        return type(value)(_text(one, is_path) for one in value)
    if not isinstance(value, str) or not _BYTES.search(value) or (is_path and os.sep in value):
        return value
    return os.fsencode(value).decode("utf-8")
