"""Continue a session in its agent: the command, the folder, and problems that the agent may refuse."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from sessionary.codec.problems import CODES
from sessionary.disk.fs import Fs, is_folder
from sessionary.errors import InvalidId, Unsupported
from sessionary.layouts import registry
from sessionary.layouts.abilities import Resumes
from sessionary.layouts.base import Layout
from sessionary.model import Problem, SessionRef, Severity, Summary

_ARGUMENT = re.compile(r"[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]*")
"""An argument that no program takes for an option, and that a terminal prints as it is."""
RESUME = "--resume="
"""A prefix of the argument with the id."""
_AFTER_RESUME = {one.name: one.after_resume for one in registry.AGENTS if one.after_resume is not None}
_KEEP = "`sessionary archive run` keeps a copy"
_MAY_BE_REFUSED = frozenset({"empty_thinking"})
"""Notes on what some versions of a provider refuse."""


@dataclass(slots=True)
class Resume:
    """A command that continues a session.

    Attributes:
        command: the program and its arguments, to be run without a shell.
        folder: the folder that the agent worked in; None if the session does not say.
        is_there: whether that folder exists.
        problems: for what the agent or its provider may refuse the session or show less of it, and what helps. Notes
            are about what only some versions refuse, and how the agent loses a session that it continued.
    """

    command: list[str]
    folder: str | None
    is_there: bool
    problems: list[Problem]


def resume_of(layout: Layout, summary: Summary, problems: list[Problem], fs: Fs) -> Resume:
    """Return the command that continues a session.

    Args:
        layout: its layout.
        summary: its summary.
        problems: what `check` finds.
        fs: the file system.

    Raises:
        Unsupported: the agent cannot continue it, or it is that of a sub-agent.
        InvalidId: its id cannot be an argument.
    """
    ref = summary.ref
    if not isinstance(layout, Resumes):
        hint = f"`sessionary show {ref.session_id}` prints it"
        raise Unsupported(
            f"no command continues a session of kind {ref.kind}", session=ref.session_id, hint=hint
        )
    if summary.nested:
        hint = f"open its parent: `sessionary open {summary.parent}`" if summary.parent else "open its parent"
        raise Unsupported(
            f"{ref.session_id} is the session of a sub-agent",
            session=ref.session_id,
            path=ref.locator,
            hint=hint,
        )
    if not _ARGUMENT.fullmatch(ref.session_id):
        raise InvalidId(
            f"the id {ref.session_id!r} cannot be passed to a program",
            session=ref.session_id,
            path=ref.locator,
            hint=f"its name says the id: rename {ref.locator}",
        )
    command, folder = layout.resume_command(ref), summary.cwd
    if not _ARGUMENT.fullmatch(command[-1].removeprefix(RESUME)):
        raise InvalidId(
            f"the session states the id {command[-1]!r}, which cannot be passed to a program",
            session=ref.session_id,
            path=ref.locator,
            hint="`sessionary check` names the record",
        )
    is_there = folder is not None and os.path.isabs(folder) and is_folder(fs, folder)
    concern = [one for one in problems if _concerns(one)]
    if words := _AFTER_RESUME.get(ref.kind):
        concern.append(Problem.of_file("lost_after_resume", Severity.note, ref.locator, words, _KEEP))
    return Resume(command, folder, is_there, concern)


def _concerns(problem: Problem) -> bool:
    """True for a problem for which an agent or its provider may refuse the session, or show less of it."""
    if problem.severity >= Severity.hides_data or problem.code in _MAY_BE_REFUSED:
        return True
    return problem.severity > Severity.note and problem.code in CODES and CODES[problem.code].stops


def refuse_archived(ref: SessionRef, *, in_place: bool) -> Unsupported:
    """The error for a session that only the archive has any more: its agent cannot continue what it does not have.

    Args:
        ref: the session.
        in_place: it can be put back into the store of its agent.
    """
    command = f"`sessionary archive restore {ref.session_id}`"
    back = f"{command} puts it back" if in_place else f"{command[:-1]} --to DIR` writes its files to a folder"
    return Unsupported(
        f"only the archive has {ref.session_id}: its agent has deleted it",
        session=ref.session_id,
        path=ref.locator,
        hint=f"{back}; `sessionary show {ref.session_id}` prints it",
    )
