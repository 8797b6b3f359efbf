"""Shared names of projects: by repository, since paths differ between machines.

In this order:

- ``git:<host>/<path>``: the address of `origin`, normalised: without users, passwords and ports;
- ``root:<commit>``: the first commit of a repository without an `origin` that others can reach;
- ``folder:<name>``: the name of the folder, without a repository. Several folders may have one name: see
  `sync.bindings`.

A project below the top of its repository has its relative path appended: ``…//packages/app``. Branches and work trees
of a repository are one project.

The files of git are read without running it; git is run only to find a first commit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.errors import NotFound, StorageFailed
from sessionary.model import SessionRef
from sessionary.sync.bindings import BELOW, Bindings, base_of, folder_name, without_way

PATIENCE = 10.0
"""Seconds that git may take to find the first commit."""

_LINK = "gitdir:"
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(?:[#;].*)?')
_VARIABLE = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*?)\s*")
_SHORT = re.compile(r"(?:[^@/\s]+@)?([^:/\s]{2,}):(?!//)(.*)", re.DOTALL)
_LONG = re.compile(
    r"(?:git\+)?(ssh|https?|git|ftps?)(?:\+git)?://(?:[^@/]*@)?(\[[^\]]*\]|[^/:]+)(?::\d+)?/(.*)", re.I | re.S
)
_CASELESS = {"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"}


class Repository(NamedTuple):
    """The repository of a folder.

    Attributes:
        git: the git folder that all its work trees share.
    """

    top: str
    git: str


class Named(NamedTuple):
    """The derived name of a folder.

    Attributes:
        base: the name of its repository, or of the folder.
        way: the path from the top of the repository, with ``//`` in front; empty at the top.
        folder: the real path of the folder that gives the name; None if a repository gives it.
    """

    base: str
    way: str
    folder: str | None


class Repositories:
    """Projects by their repositories.

    Args:
        places: the folder of each local project, by its layout name.
        find: for a project that is not in `places`, its possible folders.
        bindings: the projects of folders without a repository.

    Attributes:
        places: as given.
    """

    def __init__(
        self,
        places: Mapping[str, str | os.PathLike[str]],
        *,
        find: Callable[[str], Iterable[str]] = lambda project: (),
        bindings: Bindings | None = None,
        fs: Fs = OS_FS,
    ) -> None:
        self.places: dict[str, str] = {project: os.fspath(folder) for project, folder in places.items()}
        self._find = find
        self._fs = fs
        self.bindings: Bindings = bindings or Bindings(fs=fs)
        self._names: dict[str, Named | None] = {}
        self._known: dict[str, str | NotFound] = {}

    def identity(self, ref: SessionRef) -> str | None:
        """Return the shared name of a session's project; None for a session without one.

        Raises:
            NotFound: the project is not on this machine, or the user must choose one of several projects.
            RemoteError: the projects of that name on the remote cannot be listed.
        """
        if ref.project is None:
            return None
        known = self._of(ref.project)
        if known is None:
            raise NotFound(
                f"the folder of the project {ref.project} is not on this machine, so its repository is unknown",
                session=ref.session_id,
                hint="give its folder, or synchronise it under its local name",
            )
        return known

    def local(self, identity: str | None) -> str | None:
        """Return the local project of a shared name.

        Raises:
            NotFound: there is none here, or the user must choose; its sessions are held back.
        """
        if identity is None:
            return None
        if base_of(identity) is not None:
            return self._local_folder(identity)
        names = ((project, self.named(project)) for project in sorted(self.places))
        for project, named in names:
            if named is not None and named.folder is None and named.base + named.way == identity:
                return project
        raise NotFound(
            f"the repository {identity} is not known here",
            hint="clone it, or give its folder; its sessions wait on the remote",
        )

    def named(self, project: str) -> Named | None:
        """Return the derived name of a project's folder, before binding; None if it is not here."""
        if project not in self._names:
            place = self.places.get(project)
            folders = [place] if place is not None else list(self._find(project))
            folders.sort(key=lambda folder: repository_of(folder, self._fs) is None)
            self._names[project] = name_of(folders[0], self._fs) if folders else None
        return self._names[project]

    def _local_folder(self, identity: str) -> str:
        base, stem, way = base_of(identity), without_way(identity), identity[len(without_way(identity)) :]
        bound = self.bindings.known()
        undecided: NotFound | None = None
        for project in sorted(self.places):
            named = self.named(project)
            if named is None or named.folder is None or named.way != way:
                continue
            if named.base != base and bound.get(named.folder) != stem:
                continue
            try:
                if self._of(project) == identity:
                    return project
            except NotFound as error:
                undecided = error
        raise undecided or NotFound(
            f"no folder here is the project {identity}",
            hint=f"`sessionary sync project bind DIR {stem}` says which folder is; its sessions wait on the remote",
        )

    def _of(self, project: str) -> str | None:
        named = self.named(project)
        if named is None or named.folder is None:
            return named and named.base + named.way
        if project not in self._known:
            try:
                alike = partial(self.alike, named.base)
                self._known[project] = self.bindings.identity(named.base, named.folder, alike) + named.way
            except NotFound as error:
                self._known[project] = error
        found = self._known[project]
        if isinstance(found, NotFound):
            raise found
        return found

    def alike(self, base: str) -> set[str]:
        """Return the real paths of local folders that are named by this ``folder:<name>``."""
        alike = set()
        for project, place in self.places.items():
            segments = os.path.realpath(place).split(os.sep)
            if any(folder_name(segment) == base for segment in segments):  # otherwise git need not be run
                named = self.named(project)
                if named is not None and named.folder is not None and named.base == base:
                    alike.add(named.folder)
        return alike


def name_of(folder: str | os.PathLike[str], fs: Fs = OS_FS, patience: float = PATIENCE) -> Named:
    """Return the derived name of the project in a folder, and its origin."""
    place = os.path.realpath(folder)
    repository = repository_of(place, fs)
    if repository is None:
        return Named(folder_name(place), "", place)
    below = os.path.relpath(place, repository.top).replace(os.sep, "/")
    way = "" if below == "." else f"{BELOW}{below}"
    address = normal_address(_origin(fs, repository))
    if address is not None:
        return Named(f"git:{address}", way, None)
    root = _first_commit(fs, repository, patience)
    if root:
        return Named(f"root:{root}", way, None)
    return Named(folder_name(repository.top), way, repository.top)


def repository_of(folder: str, fs: Fs = OS_FS) -> Repository | None:
    """Return the repository of a folder; None if it has none."""
    place = os.path.realpath(folder)
    while True:
        git = _git_folder(fs, place)
        if git is not None:
            return Repository(place, git)
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def normal_address(url: str | None) -> str | None:
    """Normalise the address of a repository to ``host/path``; None if no other machine can reach it."""
    found = _LONG.fullmatch(url or "")
    if found is not None:
        host, path = found[2], found[3]
    elif url and "://" not in url and (short := _SHORT.fullmatch(url)):
        host, path = short[1], short[2]
    else:
        return None
    host = host.lower()
    path = re.sub(r"/{2,}", "/", path.strip()).strip("/")
    path = path.removesuffix(".git").rstrip("/")
    return f"{host}/{path.lower() if host in _CASELESS else path}" if path else None


def _git_folder(fs: Fs, place: str) -> str | None:
    """Return the git folder of the work tree at `place`, the one that all work trees share."""
    git = os.path.join(place, ".git")
    if _text(fs, os.path.join(git, "HEAD")) is None:
        link = _text(fs, git)
        if link is None or not link.startswith(_LINK):
            return None
        git = os.path.normpath(os.path.join(place, link.removeprefix(_LINK).strip()))
    shared = _text(fs, os.path.join(git, "commondir"))
    return git if shared is None else os.path.normpath(os.path.join(git, shared.strip()))


def _origin(fs: Fs, repository: Repository) -> str | None:
    """Return the address of `origin` from the configuration of the repository."""
    section: tuple[str, str | None] = ("", None)
    for line in (_text(fs, os.path.join(repository.git, "config")) or "").splitlines():
        if (head := _SECTION.fullmatch(line)) is not None:
            section = head[1].lower(), head[2]
            continue
        found = _VARIABLE.fullmatch(line) if section == ("remote", "origin") else None
        if found is not None and found[1].lower() == "url":
            return found[2].strip('"')
    return None


def _first_commit(fs: Fs, repository: Repository, patience: float) -> str | None:
    """Return the first commit of a repository, the smallest if there are several; None if unknown."""
    if _text(fs, os.path.join(repository.git, "shallow")) is not None:
        return None  # a shallow clone: its oldest commit is not the first
    command = ["git", "-C", repository.top, "rev-list", "--max-parents=0", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return min(done.stdout.split(), default=None) if done.returncode == 0 else None


def _text(fs: Fs, path: str) -> str | None:
    try:
        data = read_bytes(fs, path)
    except StorageFailed:  # a folder, no permission, a file in place of a folder
        return None
    return None if data is None else data.decode("utf-8", "replace")
