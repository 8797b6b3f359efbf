"""The first use of a remote: its key, its tables and containers, and the settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, make_folder, stat_or_none
from sessionary.errors import Unsupported
from sessionary.sync.settings import Settings, save_settings
from sessionary.workspace.syncing import of_settings


class SetUp(NamedTuple):
    """A remote that is ready.

    Attributes:
        made: the file of the key was created.
        apart: whether the remote separates tenants; None if unknown.
        there: it has sessions.
    """

    made: bool
    apart: bool | None
    there: bool


def set_up(settings: Settings, place: Path) -> SetUp:
    """Create the key if it is missing, prepare the remote, and then store the settings.

    Raises:
        Unsupported: the driver of the remote, or the package for encryption, is not installed.
        RemoteError: the remote cannot be prepared; the settings are not stored.
    """
    made = settings.encrypt is not None and _make_key(settings.encrypt)
    remote = of_settings(settings).connect()
    try:
        apart = remote.prepare()
        page = remote.list_heads()
    finally:
        remote.close()
    save_settings(place, settings)
    has_sessions = bool(page.heads) or page.following is not None
    return SetUp(made, apart if isinstance(apart, bool) else None, has_sessions)


def _make_key(path: str) -> bool:
    """Create an age key in a file, unless it exists; True if it was created."""
    if stat_or_none(OS_FS, path) is not None:
        return False
    try:
        from pyrage import x25519  # pyright: ignore[reportAttributeAccessIssue] - a compiled module without types
    except ImportError as error:
        raise Unsupported(
            "encryption needs the package pyrage", hint="pip install 'sessionary[encryption]'"
        ) from error
    identity = x25519.Identity.generate()
    text = f"# The key of your sessions. Anyone who has it can read them; without it they cannot be read.\n{identity}\n"
    make_folder(OS_FS, os.path.dirname(path))
    atomic.create(path, text.encode())
    return True
