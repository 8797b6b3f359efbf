"""Folders of Sessionary below the XDG base directories."""

from __future__ import annotations

import os


def xdg_folder(variable: str, otherwise: str) -> str | None:
    """Return our folder below the directory that an XDG variable names, else below `otherwise`.

    None if neither gives an absolute path: relative values of the variable are ignored, and an account may have no
    home.
    """
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(otherwise)
    return os.path.join(base, "sessionary") if os.path.isabs(base) else None


def cache_folder() -> str | None:
    """Return the folder of derived data: ``$XDG_CACHE_HOME/sessionary``, else ``~/.cache/sessionary``; or None."""
    return xdg_folder("XDG_CACHE_HOME", "~/.cache")


def data_folder() -> str | None:
    """Return the folder of our own data: ``$XDG_DATA_HOME/sessionary``, else ``~/.local/share/sessionary``; or None."""
    return xdg_folder("XDG_DATA_HOME", "~/.local/share")


def config_folder() -> str | None:
    """Return the folder of settings: ``$XDG_CONFIG_HOME/sessionary``, else ``~/.config/sessionary``; or None."""
    return xdg_folder("XDG_CONFIG_HOME", "~/.config")


def state_folder() -> str | None:
    """Return the folder of state between runs: ``$XDG_STATE_HOME/sessionary``, else ``~/.local/state/sessionary``."""
    return xdg_folder("XDG_STATE_HOME", "~/.local/state")


def file_in(folder: str | None, name: str) -> str | None:
    """Return the path of a file in one of these folders; None without the folder."""
    return None if folder is None else os.path.join(folder, name)
