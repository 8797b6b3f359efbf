"""The result of a repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessionary.model import Problem


@dataclass(slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        actions: what was done, each as a sentence; empty if nothing was needed.
        kept: the paths of the replaced files.
        problems: assumptions, and what could not be repaired.
        lost: of the replaced history, the lines with bytes that could not be recovered, and their number.
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
