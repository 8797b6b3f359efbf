"""Our folders in those that the XDG variables name."""

from __future__ import annotations

import os


def xdg_folder(variable: str, otherwise: str) -> str | None:
    """Our folder in the one that an XDG variable names, or else in `otherwise`.

    None where neither names one: the variable counts only if it is absolute, and not every account has a home.
    """
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(otherwise)
    return os.path.join(base, "sessionary") if os.path.isabs(base) else None


def cache_folder() -> str | None:
    """The folder of derived data: ``$XDG_CACHE_HOME/sessionary``, else ``~/.cache/sessionary``; None without either."""
    return xdg_folder("XDG_CACHE_HOME", "~/.cache")
