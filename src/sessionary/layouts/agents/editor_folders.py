"""Folders of the user data of editors that are built on VS Code, and their names of folders."""

from __future__ import annotations

import os
import re
import sys


def settings_folder() -> str:
    """The folder in which each editor has a folder of its own with the data of this user."""
    if sys.platform == "win32":
        return os.environ.get("APPDATA") or os.path.expanduser("~/AppData/Roaming")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support")
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def path_of(uri: str | None) -> str | None:
    """The path in a URI; None if there is none."""
    from urllib.parse import unquote, urlsplit  # here, since a list that reads nothing needs neither

    try:
        path = unquote(urlsplit(uri or "").path)
    except ValueError:
        return None
    drive = re.fullmatch(r"/([A-Za-z]:.*)", path, re.DOTALL)
    return drive[1] if drive else path or None
