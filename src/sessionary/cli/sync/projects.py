"""`sync project`: which local folders are which projects on the remote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.changing import done, to_run
from sessionary.cli.changing import set_in as indented
from sessionary.cli.lazy import SuggestingGroup, command
from sessionary.cli.sync import places
from sessionary.cli.text import column, one_line, shell_line
from sessionary.workspace import sync_projects
from sessionary.workspace.sync_projects import ProjectRow


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
        rows = list(sync_projects.rows(remote.projects(keep=False)))
    return output.listed((row._asdict() for row in rows), _lines(rows), None)


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
    of a folder cannot be undone; bind it again to change it.
    """
    if (identity is None) != new:
        raise click.UsageError("give an IDENTITY or --new; `sessionary sync project list` lists them")
    here = select()
    named = sync_projects.folder_to_bind(str(folder))
    with places.connected(here, "looking") as remote:
        found = sync_projects.bind(remote, named, identity)
    asides = ["next: sessionary sync pull"]
    if found.before not in (None, found.identity):
        given = here.given_as("--home", "--settings")
        words = ["sessionary", "sync", "project", "bind", found.folder, found.before or "", *given]
        asides.insert(0, to_run("undo", shell_line(words)))
    lines = done(f"{one_line(found.folder)} is now {one_line(found.identity)}")
    return output.shown(found._asdict(), lines, asides=asides)


def _lines(rows: list[ProjectRow]) -> Iterator[str]:
    if not rows:
        yield "No projects, neither local nor on the remote."
    names = column([one_line(row.identity or "not bound") for row in rows])
    for row, name in zip(rows, names, strict=True):
        undecided = row.identity is None
        sign = output.paint("!", "yellow") if undecided else " "
        yield f"{sign} {name}  {'not here' if row.folder is None else one_line(row.folder)}"
        if undecided:
            yield from indented("    may be " + one_line(", ".join(row.candidates)))
