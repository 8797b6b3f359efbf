"""The session and the conversation of the demo.

A message is a function of its number, so what a reader gets can be compared with what was written, without
knowing the writer.
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
"""Changes the session's folder without the store."""


class BrokenPromise(AssertionError):
    """A check of the demo failed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder of the demo."""

    home: Path

    @property
    def base_dir(self) -> Path:
        """The folder for the store."""
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
        """The loaded conversation, and the report of the load."""
        messages, _, report = SessionStore(self.base_dir).load_with_report(SESSION)
        return messages, report.problems

    @property
    def ref(self) -> SessionRef:
        """The session, for commands."""
        (found,) = [ref for ref in AmplifierLayout(self.home).discover() if ref.session_id == SESSION]
        return found

    def check(self) -> list[Problem]:
        """The findings of `sessionary check`, without notes."""
        found = AmplifierLayout(self.home).check(self.ref)
        return [problem for problem in found if problem.severity > Severity.note]


def message(number: int) -> dict[str, Any]:
    """The message with that number, always the same; without a time, which the store adds."""
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
    return {"role": "assistant", "content": f"Step {turn} compiled everything again: its cache was missing."}


def is_big(turn: int) -> bool:
    """True for a turn whose tool result is long."""
    return turn % BIG_EVERY == BIG_EVERY - 1


def metadata(turns: int) -> dict[str, Any]:
    """The metadata of the agent."""
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
