"""Check one session or file, or everything below a home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sessionary.disk.mounts import weakness
from sessionary.errors import NotFound
from sessionary.layouts.abilities import ChecksHome, HasLeftovers
from sessionary.model import Problem, SessionRef, Severity
from sessionary.workspace.workspace import Target, Workspace


class Checked(NamedTuple):
    """A session, a file or a place, and the problems that a check found.

    Attributes:
        kind: ``session``, ``file``, or ``place``: the home, or a project, with files that belong to no session.
        name: the id of a session, else the path.
        ref: the session; None for anything else.
    """

    kind: str
    name: str
    path: str
    problems: list[Problem]
    ref: SessionRef | None = None


def check_one(
    workspace: Workspace, target: Target, *, chain: bool = False, remember: bool = False
) -> Checked:
    """Check a session or a file; raises as `Workspace.check` and `Workspace.check_chain`.

    Args:
        chain: also its hash chain.
        remember: see `Workspace.check_chain`.
    """
    problems = list(workspace.check(target))
    if chain:
        problems += workspace.check_chain(target, remember=remember)
    if isinstance(target, Path):
        return Checked("file", str(target), str(target), problems)
    return Checked("session", target.session_id, target.locator, problems, target)


def check_all(workspace: Workspace, *, chain: bool = False, remember: bool = False) -> Iterator[Checked]:
    """Check every session, then the files that belong to none, by place; raises as `check_one`."""
    for ref in workspace.refs():
        with suppress(NotFound):  # its agent removed it meanwhile
            yield check_one(workspace, ref, chain=chain, remember=remember)
    places: dict[str, list[Problem]] = {}
    for problem in (*check_place(workspace), *(workspace.check_remembered() if chain else ())):
        places.setdefault(_place_of(problem, workspace.home), []).append(problem)
    for place, problems in places.items():
        yield Checked("place", place, place, problems)


def check_place(workspace: Workspace) -> list[Problem]:
    """Problems of the disk below the home, and of files beside the sessions."""
    found: list[Problem] = []
    if (why := weakness(workspace.home)) is not None:
        remedy = "keep sessions on a local disk, or do without the promises of docs/durability.md"
        place = str(workspace.home)
        found.append(Problem.of_file("weak_file_system", Severity.note, place, why, remedy))
    for layout in workspace.layouts:
        if isinstance(layout, HasLeftovers):
            found += layout.leftovers()
        if isinstance(layout, ChecksHome):
            found += layout.check_home()
    return found


def _place_of(problem: Problem, home: Path) -> str:
    """The home or the project that contains a file that belongs to no session."""
    path = Path(problem.path).absolute()
    for place in (home, Path()):
        if path.is_relative_to(place.absolute()):
            return str(place if place == home else place.absolute())
    return str(path.parent)
