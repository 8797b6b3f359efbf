"""The projects of local folders on the remote, and the choice of one for a folder without a repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, is_folder
from sessionary.errors import AlreadyExists, Invalid, NotFound
from sessionary.model import SessionRef
from sessionary.sync.bindings import PREFIX, base_of, without_way
from sessionary.sync.identity import Named, Repositories, name_of
from sessionary.workspace.syncing import Connection


class ProjectRow(NamedTuple):
    """A project, with the field names of docs/cli-json.md.

    Attributes:
        folder: its local folder; None if there is none.
        identity: its name on all machines; None if a user has to choose.
        candidates: the projects that the folder may be, if a user has to choose.
    """

    folder: str | None
    identity: str | None
    candidates: tuple[str, ...] = ()


class Bound(NamedTuple):
    """A folder, the project that it is bound to now, and the one before; None if there was none."""

    folder: str
    identity: str
    before: str | None


def rows(projects: Repositories) -> Iterator[ProjectRow]:
    """The local projects and those of the remote, with the field names of docs/cli-json.md."""
    seen = set()
    for project, folder in sorted(projects.places.items()):
        named = projects.named(project)
        if named is None:
            continue
        try:
            identity = projects.identity(SessionRef("", "", "", project))
        except NotFound as error:
            yield ProjectRow(folder, None, tuple(error.details.get("identities", ())))
            continue
        seen.add(without_way(identity or ""))
        yield ProjectRow(folder, identity)
    for identity in sorted(projects.bindings.there() - seen):
        yield ProjectRow(None, identity)


def folder_to_bind(folder: str) -> Named:
    """The folder without a git repository that a path names. Raises Invalid if it is in a repository."""
    named = name_of(os.path.expanduser(folder))
    if named.folder is None:
        raise Invalid(
            f"{folder} is in a git repository, and is {named.base} on all machines",
            path=folder,
            hint="only a folder without a repository, or whose repository has no origin and no commit, can be bound",
        )
    return named


def bind(remote: Connection, named: Named, identity: str | None) -> Bound:
    """Bind a folder to a project on the remote.

    Args:
        remote: the remote.
        named: see `folder_to_bind`.
        identity: the project; None for a new one.

    Raises:
        Invalid: the identity is not the project of a folder.
        NotFound: the remote has no such project.
        AlreadyExists: another local folder is bound to it.
    """
    assert named.folder is not None
    bindings = remote.projects().bindings
    before = bindings.known().get(named.folder)
    if identity is not None:
        own = {named.base, bindings.own(named.base, named.folder)}
        _refuse(identity, named.folder, bindings.known(), bindings.there() | own)
    bound = bindings.bind(named.folder, identity, named.base)
    if before not in (None, bound):
        for engine in remote.engines():
            engine.forget_rebound()
    return Bound(named.folder, bound, before)


def _refuse(identity: str, folder: str, known: dict[str, str], there: frozenset[str]) -> None:
    """Refuse an identity that is not the project of a folder, or belongs to another local folder."""
    shown = "`sessionary sync project list` shows the projects on the remote; --new creates one"
    if base_of(identity) is None or identity != without_way(identity):
        raise Invalid(f"{identity} is not the project of a folder ({PREFIX}NAME)", hint=shown)
    if identity not in there and identity not in known.values():
        raise NotFound(f"the remote has no project {identity}", hint=shown)
    for other, bound in known.items():
        if bound == identity and other != folder and is_folder(OS_FS, other):
            raise AlreadyExists(
                f"{identity} is already bound to {other}",
                path=other,
                hint="bind that folder to another project first (`--new` creates one)",
            )
