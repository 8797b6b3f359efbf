"""User settings of `sync init` that also apply to stores, not only to commands.

The choice of projects and the redaction apply to every remote, encryption to the remote that it was chosen for. The
file is read again for each synchronisation, so changes take effect at once. A damaged file stops every push: its
redaction rules are unknown.
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
    """The settings in one file.

    Attributes:
        path: the file; None if there is no place for it.
        required: True if the user named the file, so that it must exist.
    """

    path: str | None
    required: bool

    @classmethod
    def of_person(cls) -> Chosen:
        """Return the settings that the commands use."""
        path = settings_file(xdg_folder("XDG_CONFIG_HOME", "~/.config"), os.environ)
        return cls(path, bool(os.environ.get(SETTINGS_FILE)))

    def rules(self, project: str, *, logs: bool) -> Rules:
        """Return the rules for one project.

        Raises:
            Invalid: the file is damaged.
            NotFound: the file was named and does not exist.
            StorageFailed: it cannot be read.
        """
        settings = self._settings()
        if settings is None:
            return Rules((escape(project),), logs=logs)
        rules = settings.rules()
        return Rules((escape(project),) if rules.admits(project) else (), logs=logs, redact=rules.redact)

    def identity(self, config: CosmosConfig) -> str | None:
        """Return the age identity that encrypts this container; None if encryption was not chosen.

        Raises:
            Invalid, StorageFailed: as `rules`.
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
