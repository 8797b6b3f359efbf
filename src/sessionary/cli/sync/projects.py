"""`sync project`: which local folders are which projects on the remote."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from sessionary.cli import options, output
from sessionary.cli.changing import done, to_run
from sessionary.cli.changing import set_in as indented
from sessionary.cli.lazy import SuggestingGroup, command
from sessionary.cli.sync import places
from sessionary.cli.text import column, one_line, shell_line
from sessionary.errors import AlreadyExists, Invalid, NotFound
from sessionary.model import SessionRef
from sessionary.sync.bindings import PREFIX, base_of, without_way
from sessionary.sync.identity import Repositories, name_of


class Row(NamedTuple):
    """A project, with the field names of docs/cli-json.md.

    Attributes:
        folder: its local folder; None if there is none.
        identity: its name on all machines; None if a user has to choose.
        candidates: the projects that the folder may be, if a user has to choose.
    """

    folder: str | None
    identity: str | None
    candidates: tuple[str, ...] = ()


@command(
    "project",
    "sessionary sync project list",
    "sessionary sync project bind ~/play/app folder:app#0a1b2c3d",
    "sessionary sync project bind ~/play/app --new",
    cls=SuggestingGroup,
)
def project_command() -> None:
    """Show and set the projects of local folders on the remote.

    A project in a git repository is identified by the repository on all machines. A folder without a repository
    is identified by its name: folder:NAME, or folder:NAME#HASH if this machine has another folder of that name.
    On another machine the folder is bound automatically if there is one such folder and one such project;
    otherwise its sessions are held back until you bind it.
    """


@command(
    "list",
    "sessionary sync project list",
    "sessionary sync project list --json | jq '.[] | select(.identity == null)'",
    group=project_command,
)
@places.local()
@options.as_json("the projects", "one project")
def list_command(select: Callable[[], places.Here]) -> int:
    """List the local projects and those of the remote. Changes nothing."""
    with places.connected(select(), "looking") as remote:
        rows = list(_rows(remote.projects(keep=False)))
    if output.is_json():
        output.items(row._asdict() for row in rows)
    else:
        output.lines(_lines(rows))
    return 0


@command(
    "bind",
    "sessionary sync project bind ~/play/app folder:app#0a1b2c3d",
    "sessionary sync project bind ~/play/app --new",
    group=project_command,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("identity", required=False, metavar="[IDENTITY]")
@places.local()
@options.flag("--new", help="Make it a new project on the remote.")
@options.json_result
def bind_command(select: Callable[[], places.Here], folder: Path, identity: str | None, new: bool) -> int:
    """Bind a folder without a git repository to a project on the remote.

    IDENTITY is one that `sync project list` shows. This affects future pushes and pulls only: sessions
    already on the remote under the previous project stay there, and no local file changes. The first binding
    of a folder has no undo; bind it again to change it.
    """
    if (identity is None) != new:
        raise click.UsageError("give an IDENTITY or --new; `sessionary sync project list` lists them")
    here = select()
    named = name_of(os.path.expanduser(folder))
    if named.folder is None:
        raise Invalid(
            f"{folder} is in a git repository, and is {named.base} on all machines",
            path=folder,
            hint="only a folder without a repository, or whose repository has no origin and no commit, can be bound",
        )
    with places.connected(here, "looking") as remote:
        bindings = remote.projects().bindings
        before = bindings.known().get(named.folder)
        if identity is not None:
            own = {named.base, bindings.own(named.base, named.folder)}
            _refuse(identity, named.folder, bindings.known(), bindings.there() | own)
        bound = bindings.bind(named.folder, identity, named.base)
        if before not in (None, bound):
            for engine in remote.engines():
                engine.forget_rebound()
    asides = ["next: sessionary sync pull"]
    if before not in (None, bound):
        given = here.given_as("--home", "--settings")
        words = ["sessionary", "sync", "project", "bind", named.folder, before or "", *given]
        asides.insert(0, to_run("undo", shell_line(words)))
    document = {"folder": named.folder, "identity": bound, "before": before}
    lines = done(f"{one_line(named.folder)} is now {one_line(bound)}")
    return output.shown(document, lines, asides=asides)


def _refuse(identity: str, folder: str, known: dict[str, str], there: frozenset[str]) -> None:
    """Refuse an identity that is not the project of a folder, or belongs to another local folder."""
    shown = "`sessionary sync project list` shows the projects on the remote; --new creates one"
    if base_of(identity) is None or identity != without_way(identity):
        raise Invalid(f"{identity} is not the project of a folder ({PREFIX}NAME)", hint=shown)
    if identity not in there and identity not in known.values():
        raise NotFound(f"the remote has no project {identity}", hint=shown)
    for other, bound in known.items():
        if bound == identity and other != folder and os.path.isdir(other):
            raise AlreadyExists(
                f"{identity} is already bound to {other}",
                path=other,
                hint="bind that folder to another project first (`--new` creates one)",
            )


def _rows(projects: Repositories) -> Iterator[Row]:
    seen = set()
    for project, folder in sorted(projects.places.items()):
        named = projects.named(project)
        if named is None:
            continue
        try:
            identity = projects.identity(SessionRef("", "", "", project))
        except NotFound as error:
            yield Row(folder, None, tuple(error.details.get("identities", ())))
            continue
        seen.add(without_way(identity or ""))
        yield Row(folder, identity)
    for identity in sorted(projects.bindings.there() - seen):
        yield Row(None, identity)


def _lines(rows: list[Row]) -> Iterator[str]:
    if not rows:
        yield "No projects, neither local nor on the remote."
    names = column([one_line(row.identity or "not bound") for row in rows])
    for row, name in zip(rows, names, strict=True):
        undecided = row.identity is None
        sign = output.paint("!", "yellow") if undecided else " "
        yield f"{sign} {name}  {'not here' if row.folder is None else one_line(row.folder)}"
        if undecided:
            yield from indented("    may be " + one_line(", ".join(row.candidates)))
