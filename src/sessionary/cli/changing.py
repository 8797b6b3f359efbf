"""Shared by the commands that change sessions: how they print their outcome, and the undo line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from sessionary.cli import formatting, output
from sessionary.cli.text import fit, harmless, one_line, wrap
from sessionary.model import Problem

_FEW = 10

DECLINED = 1
"""The exit code when the user answered no: nothing was done, so a script must not continue."""


def confirmed(question: str, refusal: Exception | None = None) -> bool:
    """Ask on standard error; if the answer is no, print that nothing was changed.

    Without a terminal, `refusal` is raised.
    """
    if refusal is not None and not sys.stdin.isatty():
        raise refusal
    agreed = click.confirm(question, err=True)
    if not agreed:
        output.aside("Nothing was changed.")
    return agreed


def finish(document: dict[str, Any], lines: Iterable[str], *, undo: str | None, dry_run: bool = False) -> int:
    """Print what was done, as a document or as lines with the command that undoes it; return the exit code."""
    asides = ["Nothing was written."] if dry_run else []
    asides = asides if undo is None else [to_run("undo", undo)]
    return output.shown(document | {"undo": undo}, lines, asides=asides)


def to_run(label: str, line: str) -> str:
    """A command to run next. It is never cut, since it is to be copied."""
    return harmless(f"{label}: {line}")


def print_command(label: str, line: str) -> None:
    """Print a command to run next, on standard error."""
    output.aside(to_run(label, line))


def done(text: str, sign: str = "✓", colour: str = "green") -> Iterator[str]:
    """The lines that state the outcome."""
    first, *rest = set_in(f"{sign} {text}")
    yield output.paint(sign, colour) + first.removeprefix(sign)
    yield from rest


def set_in(text: str) -> Iterator[str]:
    """Wrap the text; further lines are indented by two more blanks than the first."""
    lead = " " * (len(text) - len(text.lstrip()) + 2)
    first = next(wrap(text, output.width() - 2))
    yield first
    rest = text[text.index(first) + len(first) :].strip()  # a word that is too long continues without a blank
    if rest:
        yield from (lead + line for line in wrap(" ".join(rest.split()), output.width() - len(lead)))


def not_read(problems: Iterable[Problem]) -> Iterator[str]:
    """One line for each problem, without its remedy."""
    for problem in problems:
        place = os.path.basename(problem.path) + (
            f", line {problem.line:,}" if problem.line is not None else ""
        )
        yield fit(f"  {problem.code}  {place}: {one_line(problem.message)}", output.width())


def lost(places: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The last line of a repair: what could not be recovered, by line and number of bytes."""
    if places:
        lines = ", ".join(f"{line:,}" for line, _ in places[:_FEW]) + (", …" if len(places) > _FEW else "")
        size = formatting.size(sum(count for _, count in places))
        yield from set_in(f"  could not be recovered: {size} of line{'s' * (len(places) > 1)} {lines}")


def at(when: datetime | None) -> str:
    """A past moment as text."""
    return "?" if when is None else formatting.stamp(when, datetime.now(UTC))
