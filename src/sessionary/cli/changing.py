"""Shared by the commands that change sessions: which folders they may change, and the undo line.

Reading the wrong folder prints nonsense; changing it does harm. So a path counts here only if it holds a
session of an agent, while the commands that read accept any folder with files in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from sessionary.cli import formatting, output
from sessionary.cli.targets import AGENTS, granted
from sessionary.cli.text import fit, harmless, one_line, wrap
from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import SESSIONS
from sessionary.layouts.base import Capability
from sessionary.model import Problem
from sessionary.workspace import Workspace

_FEW = 10
_MARKS = {TRANSCRIPT, TRANSCRIPT + BACKUP, EVENTS}

DECLINED = 1
"""The exit code when the user answered no: nothing was done, so a script must not continue."""


class Chosen(NamedTuple):
    """The session to change.

    Attributes:
        session_id: its id.
        folder: the folder of the session.
        project: the folder name of its project; None outside of one.
        word: its name on a command line: its id, or its path if it was named by that.
    """

    session_id: str
    folder: str
    project: str | None
    word: str

    @property
    def root(self) -> str:
        """The folder that contains it: the `base_dir` of its store."""
        return os.path.dirname(self.folder)


def chosen(workspace: Workspace, word: str, doing: str) -> Chosen:
    """Return the session that a word names: its id, the beginning of that, its name, or the path of its folder.

    Raises:
        Unsupported: it is not a session of an agent.
        NotFound: no session matches.
        AmbiguousId: several sessions match.
        Invalid: the word names a file, or is empty.
    """
    path = os.path.abspath(os.path.expanduser(word)) if is_path(word) else None
    if path is None:
        ref = granted(workspace, workspace.find(word, kind=AGENTS), Capability.CHANGES, doing)
        return Chosen(ref.session_id, ref.locator, ref.project, ref.session_id)
    if os.path.isfile(path):
        raise Invalid(f"{word} is a file", path=path, hint="name a session, or the folder of one")
    if not os.path.isdir(path) or not _is_session(path):
        raise NotFound(f"no session in {word}", path=path)
    ref = workspace.ref_for_path(Path(path))
    return Chosen(ref.session_id, ref.locator, ref.project, path)


def _is_session(folder: str) -> bool:
    """True if the folder certainly is a session: metadata.json alone is not enough, unless it lies among sessions."""
    names = set(OS_FS.listdir(folder))
    in_place = os.path.basename(os.path.dirname(folder)) == SESSIONS
    return bool(names & _MARKS) or (in_place and bool(names & {METADATA, METADATA + BACKUP}))


def is_path(word: str) -> bool:
    """True if a word can only be a path."""
    return word in (".", "..", "~") or os.sep in word or bool(os.altsep and os.altsep in word)


def confirmed(question: str) -> bool:
    """Ask on standard error; if the answer is no, print that nothing was changed."""
    agreed = click.confirm(question, err=True)
    if not agreed:
        output.aside("Nothing was changed.")
    return agreed


def print_command(label: str, line: str) -> None:
    """Print a command to run next, on standard error. It is never cut, since it is to be copied."""
    output.aside(harmless(f"{label}: {line}"))


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
