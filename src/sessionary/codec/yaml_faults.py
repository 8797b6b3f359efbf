"""Faults of a YAML document, collected before they are reported.

A user corrects a file once: each fault has its line, its path from the root and its remedy. Lines are looked up only
for faults, so a valid file is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sessionary.codec.yaml_read import compose, line_of
from sessionary.errors import Corrupt, SchemaError
from sessionary.model import Problem, Severity

Keys = Sequence[str | int]


class Fault(NamedTuple):
    """A fault, and its path from the root of the document."""

    code: str
    severity: Severity
    keys: tuple[str | int, ...]
    message: str
    repair: str


class Faults:
    """The faults of one document, in the order of discovery.

    Args:
        data: its bytes as read; without them faults have no lines.
    """

    def __init__(self, path: str = "", data: bytes | None = None) -> None:
        self.path = path
        self.found: list[Fault] = []
        self._data = data

    def add(
        self, code: str, keys: Keys, message: str, repair: str, severity: Severity = Severity.stops_resume
    ) -> None:
        """Add a fault; `message` describes it without naming the place."""
        self.found.append(Fault(code, severity, tuple(keys), message, repair))

    def problems(self) -> list[Problem]:
        """Return the faults with file and line."""
        if not self.found:
            return []
        root = None if self._data is None else compose(self._data, path=self.path)
        return [
            Problem(
                fault.code,
                fault.severity,
                self.path,
                line_of(root, fault.keys),
                None,
                f"{dotted(fault.keys)}: {fault.message}" if fault.keys else fault.message,
                fault.repair,
            )
            for fault in self.found
        ]

    def raise_any(self, at_least: Severity, *, operation: str, session: str | None = None) -> None:
        """Raise if there are faults of this severity or worse, listing all of them. Raises SchemaError."""
        grave = [problem for problem in self.problems() if problem.severity >= at_least]
        if not grave:
            return
        lines = [f"line {found.line}: {found.message}" if found.line else found.message for found in grave]
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        raise SchemaError(
            f"{self.path or 'document'}: {lines[0]}{more}",
            faults=lines,
            operation=operation,
            path=self.path or None,
            session=session,
            hint=grave[0].repair,
        )


def dotted(keys: Keys) -> str:
    """Format a path from the root: ``session.history[2].ems``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def lines_of(data: bytes, faults: Sequence[str]) -> list[int | None]:
    """Return the lines (from 1) of faults that begin with their place: ``phases[0].tasks[1].status: is ...``.

    A missing field has the line of its parent. All None if the bytes are not YAML.
    """
    if not faults:
        return []
    try:
        root = compose(data)
    except Corrupt:
        return [None] * len(faults)
    return [line_of(root, _undotted(fault.partition(":")[0])) for fault in faults]


def _undotted(place: str) -> list[str | int]:
    parts = re.findall(r"([^.\[\]]+)|\[(\d+)\]", place)
    return [int(number) if number else name for name, number in parts]
