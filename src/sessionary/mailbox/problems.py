"""Delivery problems. What is wrong with a file, the layout tells."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress

from sessionary.layouts.maestro.names import default_root
from sessionary.mailbox.folders import Place
from sessionary.model import Problem, Severity

WORK = "work"
"""The consumer whose ledger is the log of the session itself."""


def handler_failed(place: Place, error: str, attempt: int, most: int) -> Problem:
    """A handler raised, and the message stays."""
    return Problem(
        "handler_failed",
        Severity.note,
        place.path,
        None,
        None,
        f"attempt {attempt} of {most} failed: {error}",
        "nothing: the message is pending, and is tried again",
    )


def dead_letter(path: str, attempts: int, error: str, named: str) -> Problem:
    """A message that was given up. `named`: the session and its consumer, as `words_for` gives them."""
    return Problem(
        "dead_letter",
        Severity.hides_data,
        path,
        None,
        None,
        f"given up after {attempts} {'attempt' if attempts == 1 else 'attempts'}: {error}",
        f"find out why, then let it be tried again: `sessionary work revive {named}`",
    )


def ledger_went_back(path: str, missing: int, named: str) -> Problem:
    """The ledger no longer has what it had. `named`: as for `dead_letter`."""
    what = "a message that was" if missing == 1 else f"{missing:,} messages that were"
    return Problem(
        "ledger_went_back",
        Severity.hides_data,
        path,
        None,
        None,
        f"the log has gone back: it no longer has {what} applied here",
        f"`sessionary work ledger restore {named}` puts the lines back;"
        f" `sessionary work ledger accept {named}` has these messages applied again",
    )


def words_for(folder: str, consumer: str, root: str) -> str:
    """The session in a folder and a consumer, as a command line names them; with the root, unless it is the usual."""
    words = [os.path.basename(folder)]
    if consumer != WORK:
        words += ["--consumer", consumer]
    if root != _usual_root():
        words += ["--root", root]
    return shlex.join(words)


def _usual_root() -> str | None:
    with suppress(OSError):  # the current folder may be gone
        return os.path.realpath(default_root())
    return None
