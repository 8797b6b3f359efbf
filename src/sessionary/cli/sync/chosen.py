"""The remote of the commands: the one of `sync init`, else the Cosmos DB that programs of the agent use."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessionary.errors import Invalid, NotFound, SessionaryError
from sessionary.sync.cache_file import CacheFile
from sessionary.sync.cosmos_config import CosmosConfig, load_cosmos_config_from_settings
from sessionary.sync.remote import OpenRemote
from sessionary.sync.remotes import COSMOS_KEY, cosmos_address, open_remote
from sessionary.sync.settings import (
    Settings,
    cache_path,
    load_settings,
    read_identity,
    settings_file,
    usual_tenant,
)
from sessionary.xdg import xdg_folder


@dataclass(frozen=True, slots=True)
class Chosen:
    """A remote, and the settings of what is synchronised with it.

    Attributes:
        settings: the settings.
        secrets: where the remote looks for credentials; None for the environment.
    """

    settings: Settings
    secrets: Mapping[str, str] | None = None

    def connect(self, state: str | None = None) -> OpenRemote:
        """Open the remote, without network access.

        Args:
            state: the folder for state between commands.

        Raises:
            Invalid, NotFound, Unsupported: as `open_remote` and `read_identity`.
        """
        settings = self.settings
        return open_remote(
            settings.remote,
            settings.tenant,
            options=settings.options,
            identity=None if settings.encrypt is None else read_identity(settings.encrypt),
            environ=self.secrets,
            cache=None if state is None else CacheFile(cache_path(state, settings)),
        )


def settings_at(path: Path | None) -> Path:
    """The settings file.

    Raises:
        Invalid: its folder cannot be determined.
    """
    if path is not None:
        return path
    usual = settings_file(xdg_folder("XDG_CONFIG_HOME", "~/.config"), os.environ)
    if usual is None:
        raise Invalid("no home directory for the settings", hint="use --settings FILE")
    return Path(usual)


def chosen(path: Path | None) -> Chosen:
    """Return the settings.

    Args:
        path: the settings file given by the user. Without it, a missing file is no error if Cosmos DB is
        configured for programs: in the environment, or in the settings file of the agent.

    NotFound: nothing was configured.
        NotFound: nothing was set up.
        Corrupt, Invalid: it is damaged.
        StorageFailed: it cannot be read.
    """
    try:
        return of_settings(load_settings(settings_at(path)))
    except NotFound:
        config = None if path is not None else load_cosmos_config_from_settings()
        if config is None:
            raise
        return _of_programs(config)


def of_settings(settings: Settings) -> Chosen:
    """Add the key of the agent's settings file, if it names the same container and the environment has no key."""
    if (
        any(os.environ.get(name) for name in COSMOS_KEY)
        or (address := cosmos_address(settings.remote)) is None
    ):
        return Chosen(settings)
    with suppress(SessionaryError):  # that file is not the one in use
        config = load_cosmos_config_from_settings()
        if config is not None and config.key is not None and config.address == address:
            return Chosen(settings, {COSMOS_KEY[0]: config.key})
    return Chosen(settings)


def _of_programs(config: CosmosConfig) -> Chosen:
    """The settings that `HybridSessionStore` derives from this configuration."""
    settings = Settings(config.address, usual_tenant(os.environ), platform.node() or "unnamed")
    return Chosen(settings, {} if config.key is None else {COSMOS_KEY[0]: config.key})
