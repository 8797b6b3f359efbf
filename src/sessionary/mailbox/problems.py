"""Delivery problems. What is wrong with a file, the layout tells."""

from __future__ import annotations

import shlex

from sessionary.mailbox.folders import Place
from sessionary.model import Problem, Severity


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


def dead_letter(path: str, attempts: int, error: str, session: str, consumer: str) -> Problem:
    """A message that was given up."""
    return Problem(
        "dead_letter",
        Severity.hides_data,
        path,
        None,
        None,
        f"given up after {attempts} {'attempt' if attempts == 1 else 'attempts'}: {error}",
        f"find out why, then let it be tried again: `sessionary work revive {_words(session, consumer)}`",
    )


def ledger_went_back(path: str, missing: int, session: str, consumer: str) -> Problem:
    """The ledger no longer has what it had."""
    what = "a message that was" if missing == 1 else f"{missing:,} messages that were"
    words = _words(session, consumer)
    return Problem(
        "ledger_went_back",
        Severity.hides_data,
        path,
        None,
        None,
        f"the log has gone back: it no longer has {what} applied here",
        f"`sessionary work ledger restore {words}` puts the lines back;"
        f" `sessionary work ledger accept {words}` has these messages applied again",
    )


def _words(session: str, consumer: str) -> str:
    """A session and a consumer as a command line names them."""
    return shlex.quote(session) + (f" --consumer {consumer}" if consumer != "work" else "")
