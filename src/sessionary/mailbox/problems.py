"""Delivery problems. The layout reports problems of files."""

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
    """A failed attempt; the message stays pending."""
    words = f"attempt {attempt} of {most} failed: {error}"
    remedy = "none needed: the message is pending, and is tried again"
    return Problem.of_file("handler_failed", Severity.note, place.path, words, remedy)


def dead_letter(path: str, attempts: int, error: str, named: str) -> Problem:
    """A message that was given up. `named`: the session and its consumer, as from `words_for`."""
    words = f"given up after {attempts} {'attempt' if attempts == 1 else 'attempts'}: {error}"
    remedy = f"fix the cause, then retry: `sessionary work revive {named}`"
    return Problem.of_file("dead_letter", Severity.hides_data, path, words, remedy)


def ledger_went_back(path: str, missing: int, named: str) -> Problem:
    """A ledger that has lost lines. `named`: as for `dead_letter`."""
    what = "a message that was" if missing == 1 else f"{missing:,} messages that were"
    words = f"the log has lost lines: it lacks {what} applied here"
    remedy = (
        f"`sessionary work ledger restore {named}` restores the lines;"
        f" `sessionary work ledger accept {named}` applies these messages again"
    )
    return Problem.of_file("ledger_went_back", Severity.hides_data, path, words, remedy)


def words_for(folder: str, consumer: str, root: str) -> str:
    """The session in a folder and a consumer, as on a command line; with the root, unless it is the default."""
    words = [os.path.basename(folder)]
    if consumer != WORK:
        words += ["--consumer", consumer]
    if root != _usual_root():
        words += ["--root", root]
    return shlex.join(words)


def _usual_root() -> str | None:
    with suppress(OSError):  # the current folder may have been removed
        return os.path.realpath(default_root())
    return None
