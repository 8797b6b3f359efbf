"""Which sessions a store carries, and what their project is called on all machines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.hybrid.chosen import Chosen
from sessionary.layouts.amplifier.ids import folders_of
from sessionary.layouts.amplifier.sync_adapter import StoreSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.bindings import Bindings, identities_on
from sessionary.sync.identity import Named, Repositories
from sessionary.sync.remote import Remote


@dataclass(frozen=True, slots=True)
class Place:
    """Which sessions are carried, and what is remembered where.

    Attributes:
        base_dir: the folder of the store, as an absolute path.
        project: what its project is called on this machine.
        called: what it is called on all machines; None if its repository is to tell.
        folder: where the project lies; None if that is not known.
        home: the home that the store lies in; None if it lies elsewhere.
        state: where this machine remembers what the other side has.
        bindings: the file in which it remembers which folder is which project.
        logs: carry event logs too.
        chosen: what a person has chosen for all remotes.
        quiet: seconds for which a session must have been left alone by a program that does not say what it has open.
    """

    base_dir: str
    project: str
    called: str | None
    folder: str | None
    home: str | None
    state: str
    bindings: str
    logs: bool
    chosen: Chosen
    quiet: float

    def ref(self, session: str) -> SessionRef:
        """The session of this id, whether it is there or not."""
        return SessionRef(StoreSyncLayout.name, session, f"{self.base_dir}/{session}", self.project)


class OneProject:
    """What the one project of a store is called on all machines: what was said, or as its repository is, or its name.

    Found when it is needed first: files of git are read for it, git itself may have to be asked, and for a folder
    without a repository the remote. No user is at hand, so nothing waits for one: a folder that cannot be bound to a
    project of the remote automatically becomes a project of its own.
    """

    def __init__(self, place: Place, fs: Fs) -> None:
        self._place = place
        self._fs = fs
        self._called = place.called

    def identity(self, ref: SessionRef) -> str | None:
        return self._called

    def local(self, identity: str | None) -> str | None:
        return self._place.project

    def called(self, remote: Remote) -> str:
        """The name.

        Raises:
            RemoteError: the remote could not be asked which projects of that name it has.
            StorageFailed, Locked: which project the folder is cannot be remembered.
        """
        if self.known() is None and (named := self._named()) is not None:
            self._called = self._bound(named, remote)
        return self._called or self._place.project

    def known(self) -> str | None:
        """The name, as far as it can be known without asking the remote; None if nothing was carried under it yet."""
        if self._called is None:
            named = self._named()
            if named is None:
                self._called = self._place.project
            elif named.folder is None:
                self._called = named.base + named.way
            else:
                stem = Bindings(self._place.bindings, fs=self._fs).known().get(named.folder)
                self._called = stem and stem + named.way
        return self._called

    def _named(self) -> Named | None:
        place = self._place
        known = {} if place.folder is None else {place.project: place.folder}
        found = Repositories(known, find=lambda project: folders_of(project, self._fs), fs=self._fs)
        try:
            return found.named(place.project)
        except StorageFailed:
            return None

    def _bound(self, named: Named, remote: Remote) -> str:
        assert named.folder is not None
        identities = partial(identities_on, remote)
        bindings = Bindings(self._place.bindings, identities=identities, waits=False, fs=self._fs)
        return bindings.identity(named.base, named.folder, partial(self._alike, named)) + named.way

    def _alike(self, named: Named) -> set[str]:
        """The folders of this name whose sessions lie in the same home."""
        from sessionary.workspace import Workspace  # asked once, for a folder that is not bound yet

        if self._place.home is None or named.folder is None:
            return set()
        home = Workspace(Path(self._place.home), self._fs, root=Path(named.folder))
        return home.repositories().alike(named.base)
