"""Resolve arguments: a session by its id, a folder or a file; the sessions of a project; and the names of projects."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from sessionary.cli import last_list, options, output
from sessionary.cli.progress import PATIENCE, Progress, can_be_drawn
from sessionary.cli.text import one_line, short_path
from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.layouts.amplifier.ids import PROJECTS, project_slug
from sessionary.layouts.base import Capability
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Target, Workspace, gathered, is_home

Found = TypeVar("Found")

NONE_YET = "No sessions yet: `sessionary doctor` shows which folders were searched."


def resolve(workspace: Workspace, word: str, *, able: Capability | None = None) -> Target:
    """Return the session, or the path of the file, that a word names. An existing file or folder wins over an id.

    Args:
        able: for `latest`, what the layout of the session must grant.

    Raises:
        NotFound: no session and no file matches.
        AmbiguousId: it is the beginning of several ids, or the name of several sessions.

    A number is that of a row of the last list, unless a session has it as its whole id.
    """
    path = os.path.expanduser(word)
    if os.path.isdir(path):
        return workspace.ref_for_path(Path(path).absolute())
    if os.path.exists(path):
        return _of_yaml(workspace, Path(path).absolute()) if path.endswith(".yaml") else Path(path)
    if os.sep in word or (os.altsep and os.altsep in word):
        raise NotFound(f"no file or folder {word}", path=word)
    return _found(workspace, word, able)


def _found(workspace: Workspace, word: str, able: Capability | None) -> SessionRef:
    """The session of an id, a name, or a number of the last list; raises as `resolve`."""
    if not last_list.is_number(word) or workspace.has_id(word):
        return workspace.find(word, able=able)
    try:
        return last_list.session(word)
    except NotFound:
        with suppress(NotFound):  # it may be the beginning of an id
            return workspace.find(word, able=able)
        raise


def session(workspace: Workspace, word: str) -> SessionRef:
    """Return the session that a word names.

    Raises:
        NotFound, AmbiguousId: as `resolve`.
        Invalid: the word names a file.
    """
    found = resolve(workspace, word)
    if isinstance(found, Path):
        raise Invalid(f"{word} is a file", path=found, hint="name a session, or the folder of one")
    return found


def with_number(
    find: Callable[[Workspace, str], Found], workspace: Workspace, word: str, sign: str
) -> tuple[Found, int | None]:
    """What a word names, and the number after a sign at its end, as in ID:INDEX. Raises as `find`."""
    try:
        return find(workspace, word), None  # first, since an id may end like that
    except NotFound:
        match = re.fullmatch(rf"(.+){sign}(\d{{1,12}})", word, re.DOTALL)
        if match is None:
            raise
    return find(workspace, match[1]), int(match[2])


class Named(NamedTuple):
    """A session to change, and the word that names it on a command line: its id, or its path if that was given."""

    ref: SessionRef
    word: str


def to_change(workspace: Workspace, word: str, able: Capability | None) -> Named:
    """Return the session to change that a word names: its id, the beginning of that, its name, its folder or file.

    Unlike for reading, a file or folder of that name in the current folder does not win over an id.

    Args:
        able: for `latest`, what the layout of the session must grant; None for any session.

    Raises:
        NotFound: no session matches.
        AmbiguousId: several sessions match.
        Invalid: the word names a file that is not a session, or is empty.
    """
    if not is_path(word):
        ref = _found(workspace, word, able)
        return Named(ref, ref.session_id)
    path = os.path.abspath(os.path.expanduser(word))
    if not os.path.exists(path):
        raise NotFound(f"no session in {word}", path=path)
    try:
        return Named(workspace.ref_for_path(Path(path)), path)
    except NotFound:
        if os.path.isdir(path):
            raise
        raise Invalid(
            f"{word} is a file, and not that of a session",
            path=path,
            hint="name a session, or the folder of one",
        ) from None


def is_path(word: str) -> bool:
    """True if a word can only be a path."""
    return word in (".", "..", "~") or os.sep in word or bool(os.altsep and os.altsep in word)


def _of_yaml(workspace: Workspace, file: Path) -> SessionRef:
    """Return the session that is stored in this file, or that it is a part of.

    Raises:
        Invalid: it belongs to no session; read as JSON Lines it would count as damaged.
    """
    for place in (file, file.parent):
        try:
            return workspace.ref_for_path(place)
        except NotFound:
            continue
    raise Invalid(
        f"{file} is YAML but not a known session",
        path=file,
        hint="name a session or a file of JSON Lines; `brainstorm list` and `feature list` list those in YAML",
    )


LONG = 256 << 20
"""Bytes that take more than a second to read."""


class _Reading:
    """Shows how far the sessions are read, by bytes, and before that what is known of them, if it takes long.

    Args:
        print_known: prints what is known before the reading; then Ctrl-C ends the reading and not the command.
    """

    def __init__(self, print_known: Callable[[Sequence[Summary]], None] | None) -> None:
        self._print_known = print_known
        self._known: Sequence[Summary] = ()
        self._begun = time.monotonic()
        self._progress: Progress | None = None

    def begin(self, total: int, known: Sequence[Summary]) -> None:
        self._known = known
        if total > LONG:
            self._show()
        what = "reading sessions, Ctrl-C lists them as they are" if self._print_known else "reading sessions"
        self._progress = Progress(what, total)

    def advance(self, size: int) -> None:
        if time.monotonic() - self._begun > PATIENCE:
            self._show()
        if self._progress is not None:
            self._progress.advance(size)

    def _show(self) -> None:
        """Print once what is known before the reading."""
        if self._print_known is not None and self._known:
            self._print_known(self._known)
        self._known = ()

    def goes_on(self) -> bool:
        self.end()
        return self._print_known is not None

    def end(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.pause()


def all_summaries(
    workspace: Workspace, print_known: Callable[[Sequence[Summary]], None] | None = None
) -> tuple[list[Summary], StorageFailed | None]:
    """The summary of every session, and the errors of the folders that could not be read.

    Args:
        workspace: where to look.
        print_known: on a terminal, called with what is known if the reading takes more than a second. Then Ctrl-C ends
            the reading alone, and the other sessions are `Summary.unread`.
    """
    report_missing_archive(workspace)
    if not can_be_drawn():
        return gathered(workspace.summaries())
    reading = _Reading(print_known)
    try:
        return gathered(workspace.summaries(reading))
    finally:
        reading.end()


def report_missing_archive(workspace: Workspace) -> None:
    """Report that the folder of the archive is missing, and with it the sessions that only the archive has."""
    if (missing := workspace.archived.missing()) is not None:
        output.aside(
            f"The folder of the archive, {one_line(missing)}, does not exist: its sessions are missing."
        )
        output.aside("  Mount it, or choose another one by `sessionary archive add --folder DIR`.")


def names_of(workspace: Workspace, summaries: Iterable[Summary]) -> Callable[[Summary], str]:
    """A function that gives the name under which the project of each of these sessions is shown."""
    project_of, name = workspace.project_of(summaries), cache(project_name)
    return lambda one: name(project_of(one))


def project_names(workspace: Workspace, slugs: Iterable[str | None]) -> dict[str | None, str]:
    """The name under which each project of the home is shown, by `SessionRef.project`."""
    wanted = set(slugs)
    paths = workspace.project_paths(slug for slug in wanted if slug is not None)
    return {slug: project_name(None if slug is None else paths.get(slug, slug)) for slug in wanted}


def project_name(project: str | None) -> str:
    """The name under which a project is shown: its path, ``~/code/app``; ``-`` for none.

    A project whose path is unknown is shown by the name of its folder of sessions, without the user's home in front.
    """
    if project is None:
        return "-"
    if os.path.isabs(project):
        return short_path(project)
    slug_of_home = project_slug(os.path.expanduser("~"))
    return "~" if project == slug_of_home else project.removeprefix(f"{slug_of_home}-")


def report_none(workspace: Workspace) -> None:
    """Print that no session was found: the user may have meant another folder."""
    if not workspace.is_narrowed:
        output.aside(NONE_YET)
        return
    missing = "" if is_home(str(workspace.home)) else f": it contains no {PROJECTS}/"
    output.aside(f"No sessions in {one_line(str(workspace.home))}{missing}; --home names another folder.")


def report_failure(failure: StorageFailed | None, what: str) -> int:
    """Print which folders could not be read, and what to do about the first; return the exit code."""
    if failure is None:
        return 0
    for folder in failure.details.get("folders", [failure.path]):
        output.aside(f"sessionary: {one_line(str(folder))} cannot be read: its sessions are not {what}")
    if failure.hint:
        output.aside(f"  {one_line(failure.hint)}")
    return options.PARTLY
