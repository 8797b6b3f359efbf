"""What the plugs share: the default folder, and calls that block without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from sessionary.errors import Invalid
from sessionary.xdg import data_folder

Result = TypeVar("Result")


def folder_of(framework: str, folder: str | os.PathLike[str] | None) -> str:
    """The folder of the sessions of a framework: the given one, else that below the data folder.

    Raises:
        Invalid: none is given, and the account has no home folder.
    """
    if folder is not None:
        return os.fspath(folder)
    data = data_folder()
    if data is None:
        raise Invalid("there is no home folder for the sessions", hint="pass folder=, or set XDG_DATA_HOME")
    return os.path.join(data, framework)


async def in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function that blocks in a thread, and wait for its outcome even if the caller is cancelled.

    A write that was begun is finished: what a caller sees as cancelled would otherwise be stored a moment later.
    """
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # else asyncio warns that nobody retrieved it
        raise cancelled
    return running.result()
