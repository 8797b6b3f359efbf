"""A time limit for any call.

Socket timeouts bound the silence between two parts of an answer, but not a name look-up, a credential helper, or a
server that sends a byte now and then. So the call runs in a thread of its own, which is abandoned if it takes too
long; it is a daemon, so it keeps no process alive. Its request may still be carried out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sessionary.errors import RemoteError
from sessionary.sync.remote import LATER

_T = TypeVar("_T")


def within(seconds: float, call: Callable[[], _T], what: str) -> _T:
    """Run a call with a time limit; return its result or raise its error.

    Args:
        seconds: the limit.
        call: the call.
        what: the name of the remote, for the error.

    Raises:
        RemoteError: there was no answer in time; retryable.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name=f"sessionary: {what}")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if answers:
        return answers[0]
    raise RemoteError(f"{what} gave no answer within {seconds:g} s", retryable=True, hint=LATER)
