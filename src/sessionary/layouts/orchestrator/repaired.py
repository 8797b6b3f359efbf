"""What a repair reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessionary.model import Problem


@dataclass(slots=True)
class Repaired:
    """What a repair did.

    Attributes:
        actions: each in one sentence; empty if nothing needed doing.
        kept: where the bytes lie that were replaced.
        problems: what had to be assumed, and what could not be repaired.
        lost: of the history that was replaced, the lines of which bytes could not be brought back, and how many.
    """

    actions: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        problems = [problem.as_dict() for problem in self.problems]
        lost = [{"line": line, "bytes": count} for line, count in self.lost]
        return {"actions": self.actions, "kept": self.kept, "problems": problems, "lost": lost}
