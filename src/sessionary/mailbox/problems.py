"""What there is to tell about delivery. What is wrong with a file, the layout tells."""

from __future__ import annotations

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


def dead_letter(place: Place, attempts: int, error: str) -> Problem:
    """A message that was given up."""
    return Problem(
        "dead_letter",
        Severity.hides_data,
        place.path,
        None,
        None,
        f"given up after {attempts} {'attempt' if attempts == 1 else 'attempts'}: {error}",
        "find out why, then let it be tried again (Mailbox.revive)",
    )
