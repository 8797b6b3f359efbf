"""The sessions of a store, the shared name of their project, and the settings of the user that apply to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from sessionary.disk.fs import Fs
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.ids import folders_of
from sessionary.layouts.amplifier.sync_adapter import StoreSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.bindings import Bindings, identities_in
from sessionary.sync.identity import Named, Repositories
from sessionary.sync.remote import Remote, heads_of
from sessionary.sync.rules import Rules
from sessionary.sync.settings import SETTINGS_FILE, Settings, load_settings, read_identity, settings_file

if TYPE_CHECKING:
    from sessionary.sync.cosmos_config import CosmosConfig


@dataclass(frozen=True, slots=True)
class Chosen:
    """User settings of `sync init` that also apply to stores, not only to commands.

    The choice of projects and the redaction apply to every remote, encryption to the remote that it was chosen for.
    The file is read again for each synchronisation, so changes take effect at once. A damaged file stops every push:
    its redaction rules are unknown.

    Attributes:
        path: the file; None if there is no place for it.
        required: True if the user named the file, so that it must exist.
    """

    path: str | None
    required: bool

    @classmethod
    def of_user(cls) -> Chosen:
        """Return the settings that the commands use."""
        path = settings_file()
        return cls(path, bool(os.environ.get(SETTINGS_FILE)))

    def rules(self, project: str, *, logs: bool) -> Rules:
        """Return the rules for one project.

        Raises:
            Invalid: the file is damaged.
            NotFound: the file was named and does not exist.
        """
        settings = self._settings()
        if settings is None:
            return Rules((escape(project),), logs=logs)
        rules = settings.rules()
        return Rules((escape(project),) if rules.admits(project) else (), logs=logs, redact=rules.redact)

    def identity(self, config: CosmosConfig) -> str | None:
        """Return the age identity that encrypts this container; None if encryption was not chosen.

        Raises:
            Invalid: as `rules`.
            NotFound: the identity file does not exist.
        """
        settings = self._settings()
        if settings is None or settings.encrypt is None:
            return None
        from sessionary.sync.remotes import cosmos_address

        if cosmos_address(settings.remote) != config.address:
            return None
        return read_identity(settings.encrypt)

    def _settings(self) -> Settings | None:
        if self.path is None:
            return None
        try:
            return load_settings(self.path)
        except NotFound:
            if self.required:
                raise
            return None


@dataclass(frozen=True, slots=True)
class Place:
    """Sessions to synchronise, and paths of local state.

    Attributes:
        base_dir: the folder of the store, as an absolute path.
        called: the name of the project on all machines; None to derive it from its repository.
        folder: the folder of the project; None if unknown.
        home: the home that contains the store; None if it is elsewhere.
        quiet: seconds without a change after which a session may be changed, if no program reports it as open.
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
        """Return the reference of a session id, whether the session exists or not."""
        return SessionRef(StoreSyncLayout.name, session, f"{self.base_dir}/{session}", self.project)


class OneProject:
    """Shared name of a store's project: the given name, else that of its repository, else that of its folder.

    Determined when first needed: git files are read, git itself may be run, and for a folder without a repository the
    remote is asked. No user is present, so nothing waits for one: a folder that cannot be bound automatically becomes
    a project of its own.
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
        """Return the name. Raises RemoteError if the projects of that name on the remote cannot be listed."""
        if self.known() is None and (named := self._named()) is not None:
            self._called = self._bound(named, remote)
        return self._called or self._place.project

    def known(self) -> str | None:
        """Return the name if it is known without asking the remote; None if nothing was synchronised under it yet."""
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
        bindings = Bindings(
            self._place.bindings, identities=lambda: identities_in(heads_of(remote)), waits=False, fs=self._fs
        )
        return bindings.identity(named.base, named.folder, partial(self._alike, named)) + named.way

    def _alike(self, named: Named) -> set[str]:
        """Return the folders of this name whose sessions are in the same home."""
        from sessionary.workspace import Workspace  # imported late: needed once, for an unbound folder

        if self._place.home is None or named.folder is None:
            return set()
        home = Workspace(Path(self._place.home), Path(named.folder), fs=self._fs)
        return home.repositories().alike(named.base)
