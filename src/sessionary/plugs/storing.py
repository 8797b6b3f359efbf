"""Shared by the plugs: the journals of a framework, and blocking calls outside of the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sessionary.disk.flush_policy import check_durability
from sessionary.errors import Invalid
from sessionary.layouts.records.journal import RecordJournal, begins_in
from sessionary.xdg import data_folder

Given = ParamSpec("Given")
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


async def in_thread(
    function: Callable[Given, Result], *arguments: Given.args, **options: Given.kwargs
) -> Result:
    """Call a function that blocks in a thread, and wait for its outcome even if the caller is cancelled.

    A write that was begun is finished: what a caller sees as cancelled would otherwise be stored a moment later.
    """
    call = partial(copy_context().run, function, *arguments, **options)
    running = asyncio.get_running_loop().run_in_executor(None, call)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # else asyncio warns that it was never retrieved
        raise cancelled
    return running.result()


def awaitable(
    method: Callable[Concatenate[Any, Given], Result],
) -> Callable[Concatenate[Any, Given], Coroutine[Any, Any, Result]]:
    """A method like another one that blocks, for coroutines: it calls that one in a thread."""

    @wraps(method)
    async def call(self: Any, /, *arguments: Given.args, **options: Given.kwargs) -> Result:
        bound: Callable[Given, Result] = getattr(self, method.__name__)
        return await in_thread(bound, *arguments, **options)

    return call


class Journals:
    """The journals of the sessions of one framework in one folder. Those used last stay open. Safe for threads.

    Args:
        framework: the name of the framework.
        folder: the folder; None for that below the data folder.
        durability: of all sessions; see `RecordJournal`.
        chain: of new sessions; see `RecordJournal`.
    """

    OPEN = 64

    def __init__(
        self,
        framework: str,
        folder: str | os.PathLike[str] | None,
        durability: str = "full",
        chain: bool = False,
    ) -> None:
        self.folder: str = os.path.realpath(os.path.expanduser(folder_of(framework, folder)))
        self._framework = framework
        self._durability = check_durability(durability)
        self._chain = chain
        self._open: OrderedDict[tuple[str, ...], RecordJournal] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, session_id: str, *scope: str) -> RecordJournal:
        """The journal of a session, whether there is such a session or not."""
        with self._guard:
            key = (*scope, session_id)
            journal = self._open.pop(key, None) or RecordJournal(
                self.folder,
                self._framework,
                session_id,
                scope,
                durability=self._durability,
                chain=self._chain,
            )
            self._open[key] = journal
            old = self._open.popitem(last=False)[1] if len(self._open) > self.OPEN else None
        if old is not None:
            old.close()
        return journal

    def sessions(self, *scope: str) -> Iterator[tuple[str, str]]:
        """The ids of the sessions with exactly this scope, each with the path of its file.

        Raises:
            StorageFailed: the folder cannot be looked into.
        """
        for path, begin in begins_in(self.folder):
            if begin.scope == list(scope):
                yield begin.session, path

    def all(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The ids of all sessions, each with its scope.

        Raises:
            StorageFailed: the folder cannot be looked into.
        """
        for _, begin in begins_in(self.folder):
            yield begin.session, tuple(begin.scope)

    def close(self) -> None:
        """Flush what is pending, and close all files.

        Raises:
            StorageFailed: a flush failed.
        """
        with self._guard:
            journals, self._open = list(self._open.values()), OrderedDict()
        for journal in journals:
            journal.close()
