"""The import name of the command `maestro wsession`; the code lives in `sessionary`."""

from sessionary.cli.maestro import main, wsession_command

__all__ = ["main", "wsession_command"]
