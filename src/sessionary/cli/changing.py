"""What the commands that change sessions share: whose folder they may touch, and how to say the way back.

Reading the wrong folder shows nonsense; changing it does harm. So a path counts here only if a session of an agent
lies there, while the commands that read take any folder that has files in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from sessionary.cli import formatting, output
from sessionary.cli.targets import AGENTS, of_an_agent
from sessionary.cli.text import fit, harmless, one_line, wrap
from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import SESSIONS
from sessionary.model import Problem
from sessionary.workspace import Workspace

_FEW = 10
_MARKS = {TRANSCRIPT, TRANSCRIPT + BACKUP, EVENTS}

dry_run = click.option("--dry-run", is_flag=True, help="Tell what would be done, and write nothing.")
DECLINED = 1
"""The exit code where a person was asked and said no: what was asked for was not done, so nothing should follow."""

as_json = click.option("--json", "json_", is_flag=True, help="Print what was done as one JSON document.")


class Chosen(NamedTuple):
    """The session that is to be changed.

    Attributes:
        session_id: its id.
        folder: where it lies.
        project: the folder name of its project; None outside of one.
        word: what names it on a command line: its id, or its path if it was named by that.
    """

    session_id: str
    folder: str
    project: str | None
    word: str

    @property
    def root(self) -> str:
        """The folder that holds it, the `base_dir` of its store."""
        return os.path.dirname(self.folder)


def chosen(workspace: Workspace, word: str, doing: str) -> Chosen:
    """The session that a word names: by its id, the beginning of that, its name, or the path of its folder.

    Raises:
        Unsupported: it is no session of an agent.
        NotFound: there is none.
        AmbiguousId: there are several.
        Invalid: a file, or nothing, is named.
    """
    path = os.path.abspath(os.path.expanduser(word)) if is_path(word) else None
    if path is None:
        ref = of_an_agent(workspace.find(word, kind=AGENTS), doing)
        return Chosen(ref.session_id, ref.folder, ref.project, ref.session_id)
    if os.path.isfile(path):
        raise Invalid(
            f"{word} is a file", path=path, hint="only sessions are changed: name one, or its folder"
        )
    if not os.path.isdir(path) or not _is_session(path):
        raise NotFound(f"there is no session in {word}", path=path)
    ref = workspace.ref_for_path(Path(path))
    return Chosen(ref.session_id, ref.folder, ref.project, path)


def _is_session(folder: str) -> bool:
    """True if the folder is a session beyond doubt: metadata.json alone may be anybody's, but where sessions lie."""
    names = set(OS_FS.listdir(folder))
    in_place = os.path.basename(os.path.dirname(folder)) == SESSIONS
    return bool(names & _MARKS) or (in_place and bool(names & {METADATA, METADATA + BACKUP}))


def is_path(word: str) -> bool:
    """True if a word can only be meant as a path."""
    return word in (".", "..", "~") or os.sep in word or bool(os.altsep and os.altsep in word)


def confirmed(question: str) -> bool:
    """Ask on standard error; if the answer is no, say that nothing was changed."""
    agreed = click.confirm(question, err=True)
    if not agreed:
        output.aside("nothing was changed")
    return agreed


def tell(label: str, line: str) -> None:
    """A command that goes on from here, for the person: beside the result, and never cut, since it is to be copied."""
    output.aside(harmless(f"{label}: {line}"))


def done(text: str, sign: str = "✓", colour: str = "green") -> Iterator[str]:
    """The lines that say what came of it."""
    first, *rest = set_in(f"{sign} {text}")
    yield output.paint(sign, colour) + first.removeprefix(sign)
    yield from rest


def set_in(text: str) -> Iterator[str]:
    """The text broken into lines, those behind the first set in by two blanks more than it."""
    lead = " " * (len(text) - len(text.lstrip()) + 2)
    first = next(wrap(text, output.width() - 2))
    yield first
    rest = text[text.index(first) + len(first) :].strip()  # a word that is too long goes on without a blank
    if rest:
        yield from (lead + line for line in wrap(" ".join(rest.split()), output.width() - len(lead)))


def not_read(problems: Iterable[Problem]) -> Iterator[str]:
    """One line for each problem, without the remedy."""
    for problem in problems:
        place = os.path.basename(problem.path) + (
            f", line {problem.line:,}" if problem.line is not None else ""
        )
        yield fit(f"  {problem.code}  {place}: {one_line(problem.message)}", output.width())


def lost(places: Sequence[tuple[int, int]]) -> Iterator[str]:
    """What a repair could not bring back, by line and number of bytes: the last line of what it says."""
    if places:
        lines = ", ".join(f"{line:,}" for line, _ in places[:_FEW]) + (", …" if len(places) > _FEW else "")
        size = formatting.size(sum(count for _, count in places))
        yield from set_in(f"  could not be brought back: {size} of line{'s' * (len(places) > 1)} {lines}")


def at(when: datetime | None) -> str:
    """A moment of the past, in words."""
    return "?" if when is None else formatting.stamp(when, datetime.now(UTC))
