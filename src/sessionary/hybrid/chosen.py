"""What a person has chosen with `sync init`, as far as it holds for stores and not only for the commands.

What is left out and what is blacked out holds for every remote. Encryption holds for the remote that it was chosen for.
The file is read anew for each synchronisation, so what is left out and blacked out holds from the moment at which it
is chosen. A file that is damaged stops everything that would be sent: what it says about secrets is not known.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING

from sessionary.errors import NotFound
from sessionary.sync.rules import Rules
from sessionary.sync.settings import SETTINGS_FILE, Settings, load_settings, read_identity, settings_file
from sessionary.xdg import xdg_folder

if TYPE_CHECKING:
    from sessionary.sync.cosmos_config import CosmosConfig


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choices in one file.

    Attributes:
        path: where they are kept; None if there is no place for them.
        required: True if a person has named the file, so that it must be there.
    """

    path: str | None
    required: bool

    @classmethod
    def of_person(cls) -> Chosen:
        """Those that the commands go by, too."""
        path = settings_file(xdg_folder("XDG_CONFIG_HOME", "~/.config"), os.environ)
        return cls(path, bool(os.environ.get(SETTINGS_FILE)))

    def rules(self, project: str, *, logs: bool) -> Rules:
        """What is carried of one project.

        Raises:
            Invalid: the file is damaged.
            NotFound: it was named, and is not there.
            StorageFailed: it cannot be read.
        """
        settings = self._settings()
        if settings is None:
            return Rules((escape(project),), logs=logs)
        rules = settings.rules()
        return Rules((escape(project),) if rules.admits(project) else (), logs=logs, redact=rules.redact)

    def identity(self, config: CosmosConfig) -> str | None:
        """The age identity that what goes into this container is encrypted for; None if that was not chosen.

        Raises:
            Invalid, StorageFailed: as `rules`.
            NotFound: the file with the identity is not there.
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
