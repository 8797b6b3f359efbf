"""Which remote the commands use: the one of `sync init`, else the Cosmos DB that programs of the agent use."""

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
from sessionary.sync.remotes import COSMOS_KEY, OpenRemote, cosmos_address, open_remote
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
    """A remote, and what is carried to it.

    Attributes:
        settings: what was chosen.
        secrets: where the remote looks for what lets a person in; None for the environment.
    """

    settings: Settings
    secrets: Mapping[str, str] | None = None

    def connect(self, state: str | None = None) -> OpenRemote:
        """The remote. Asks nothing of the network.

        Args:
            state: the folder for what is remembered from one command to the next.

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
    """The file of the settings.

    Raises:
        Invalid: nobody says where it could be.
    """
    if path is not None:
        return path
    usual = settings_file(xdg_folder("XDG_CONFIG_HOME", "~/.config"), os.environ)
    if usual is None:
        raise Invalid("there is no home directory for the settings", hint="say --settings FILE")
    return Path(usual)


def chosen(path: Path | None) -> Chosen:
    """What was chosen.

    Args:
        path: the settings file that a person has named. Without it, a missing file is no error where Cosmos DB is
            set up as for programs: in the environment, or in the settings file of the agent.

    Raises:
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
    """With the key of the agent's settings file, if they name the same container and the environment has no key."""
    if (
        any(os.environ.get(name) for name in COSMOS_KEY)
        or (address := cosmos_address(settings.remote)) is None
    ):
        return Chosen(settings)
    with suppress(SessionaryError):  # that file is not what was chosen here
        config = load_cosmos_config_from_settings()
        if config is not None and config.key is not None and config.address == address:
            return Chosen(settings, {COSMOS_KEY[0]: config.key})
    return Chosen(settings)


def _of_programs(config: CosmosConfig) -> Chosen:
    """As `HybridSessionStore` has it with this configuration."""
    settings = Settings(config.address, usual_tenant(os.environ), platform.node() or "unnamed")
    return Chosen(settings, {} if config.key is None else {COSMOS_KEY[0]: config.key})
