"""An end to every call, whatever hangs in it.

Timeouts of sockets bound the silence between two pieces of an answer, and nothing bounds the look-up of a name, a
helper program that signs in, or a server that sends a byte now and then. So the call is made by a thread of its own,
which is left behind if it takes too long: a daemon, that keeps no process alive. What it asked for may still be
carried out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sessionary.errors import RemoteError
from sessionary.sync.remote import LATER

_T = TypeVar("_T")


def within(seconds: float, call: Callable[[], _T], what: str) -> _T:
    """What a call returns or raises, if it does so in time.

    Args:
        seconds: how long to wait.
        call: what to do; its errors are raised here.
        what: who is waited for, for the error.

    Raises:
        RemoteError: there was no answer in time; retryable.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name=f"sessionary: {what}")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if answers:
        return answers[0]
    raise RemoteError(f"{what} gave no answer within {seconds:g} s", retryable=True, hint=LATER)
