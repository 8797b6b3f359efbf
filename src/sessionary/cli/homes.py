"""The home of a command: the one that `--home` names, that of `$SESSIONARY_HOME`, or the agent's own."""

from __future__ import annotations

import os
from pathlib import Path

from sessionary.layouts.amplifier.ids import HOME
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.workspace import Workspace, check_folder, check_store

VARIABLE = "SESSIONARY_HOME"


def folder(home: Path | None) -> Path:
    """The folder of the home, whether it exists or not."""
    return Path(os.path.expanduser(home or os.environ.get(VARIABLE) or HOME)).absolute()


def check_named(home: Path | None) -> None:
    """Refuse a home that was named and is missing.

    Raises:
        NotFound: it is missing.
    """
    if home is not None or os.environ.get(VARIABLE):
        check_folder(folder(home), named_by=VARIABLE if home is None else "--home")


def workspace(home: Path | None, *, must_exist: bool = True) -> Workspace:
    """The workspace of a command.

    With `--home` all sessions are those of that folder. Otherwise the sessions of the project in the current
    folder are included.

    Args:
        home: the value of `--home`.
        must_exist: refuse a home that was named and holds no store.

    Raises:
        NotFound: the home that was named is missing, or holds no store.
    """
    place = folder(home)
    if must_exist and (home is not None or os.environ.get(VARIABLE)):
        check_store(place, named_by=VARIABLE if home is None else "--home")
    return Workspace(place if home is not None else {AmplifierLayout.name: place})
