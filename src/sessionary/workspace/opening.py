"""How a session is continued in its agent: the command, the folder, and what would be refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sessionary.disk.fs import Fs, is_folder
from sessionary.errors import InvalidId, Unsupported
from sessionary.layouts.base import Layout, Resumes
from sessionary.model import Problem, Severity, Summary

_ARGUMENT = re.compile(r"[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]*")
"""An argument that no program takes for an option, and that a terminal prints as it is."""


@dataclass(slots=True)
class Resume:
    """How a session is continued.

    Attributes:
        command: the program and its arguments, to be run without a shell.
        folder: the folder that the agent worked in; None if the session does not say.
        is_there: whether that folder exists.
        problems: what the agent or its provider will refuse, and what would help.
    """

    command: list[str]
    folder: str | None
    is_there: bool
    problems: list[Problem]


def resume_of(layout: Layout, summary: Summary, problems: list[Problem], fs: Fs) -> Resume:
    """How a session is continued.

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
            hint="rename the file of the session",
        )
    worst = [one for one in problems if one.severity >= Severity.stops_resume]
    return Resume(
        layout.resume_command(ref), summary.cwd, summary.cwd is not None and is_folder(fs, summary.cwd), worst
    )
