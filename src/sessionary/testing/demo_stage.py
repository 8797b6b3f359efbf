"""The stage of the demonstration: the session that it plays with, and the conversation in it.

A message is a function of its number. So what a reader gets can be compared with what was written, word by word,
by somebody who was not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessionary.layouts.amplifier import SessionStore
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.model import Problem, SessionRef, Severity

SESSION = "5e551011-a4c7-4d3e-9b1f-2f0c6d8e7a90"
PROJECT = "-demo"
TURN = 4  # messages of a turn: question, tool call, result, answer
BIG_EVERY = (
    3  # turns; the result of such a turn takes milliseconds to write, so that a kill can hit the middle
)
BIG = 3 << 20

Meddle = Callable[[Path], None]
"""Does something to the session's folder behind the store's back."""


class BrokenPromise(AssertionError):
    """Something was not as promised."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where it all happens."""

    home: Path

    @property
    def base_dir(self) -> Path:
        """What the store is given."""
        return self.home / "projects" / PROJECT / "sessions"

    @property
    def session(self) -> Path:
        """The folder of the session."""
        return self.base_dir / SESSION

    @property
    def transcript(self) -> Path:
        """The conversation."""
        return self.session / "transcript.jsonl"

    def load(self) -> tuple[list[dict[str, Any]], list[Problem]]:
        """The conversation as whoever resumes it gets it, and what there was to say about it."""
        messages, _, report = SessionStore(self.base_dir).load_with_report(SESSION)
        return messages, report.problems

    @property
    def ref(self) -> SessionRef:
        """The session as commands know it."""
        (found,) = [ref for ref in AmplifierLayout(self.home).discover() if ref.session_id == SESSION]
        return found

    def check(self) -> list[Problem]:
        """What `sessionary check` finds, notes left out."""
        found = AmplifierLayout(self.home).check(self.ref)
        return [problem for problem in found if problem.severity > Severity.note]


def message(number: int) -> dict[str, Any]:
    """The message of that number, always the same; without a time, which the store gives it."""
    turn, part = divmod(number, TURN)
    if part == 0:
        return {"role": "user", "content": f"Question {turn}: why did step {turn} of the build take so long?"}
    call = f"call_{turn}"
    if part == 1:
        arguments = {"command": f"cat build-{turn}.log"}
        calls = [{"id": call, "tool": "bash", "arguments": arguments}]
        return {"role": "assistant", "content": f"I look at the log of step {turn}.", "tool_calls": calls}
    if part == 2:
        line = f"[step {turn}] compiling… ok\n"
        times = BIG // len(line) if is_big(turn) else 20
        return {"role": "tool", "tool_call_id": call, "name": "bash", "content": line * times}
    return {"role": "assistant", "content": f"Step {turn} compiled everything anew: its cache was gone."}


def is_big(turn: int) -> bool:
    """True for a turn whose tool result is long."""
    return turn % BIG_EVERY == BIG_EVERY - 1


def metadata(turns: int) -> dict[str, Any]:
    """What the agent writes beside the conversation."""
    return {
        "session_id": SESSION,
        "created": "2025-01-31T12:00:00.000Z",
        "bundle": "bundle:demo",
        "turn_count": turns,
        "name": "The slow build",
    }


def count(number: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
