"""The home of a command: the one that `--home` names, that of `$SESSIONARY_HOME`, or the agent's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from sessionary.layouts.amplifier.ids import HOME
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.workspace import Workspace, check_folder, check_store
from sessionary.workspace.stores import homes_of_user

VARIABLE = "SESSIONARY_HOME"
HOMES = "sessionary.homes"
"""Where the context of a command has all values of `--home`."""


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

    With `--home` all sessions are those of these folders. Otherwise those of the homes in `homes.json` and of the
    project in the current folder are included.

    Args:
        home: the value of `--home`.
        must_exist: refuse a home that was named and holds no store.

    Raises:
        NotFound: the home that was named is missing, or holds no store.
    """
    places = [folder(one) for one in named(home)] or [folder(None)]
    if must_exist and (home is not None or os.environ.get(VARIABLE)):
        for place in places:
            check_store(place, named_by=VARIABLE if home is None else "--home")
    if home is not None:
        return Workspace(places)
    homes = homes_of_user()
    homes[AmplifierLayout.name] = [*places, *homes.get(AmplifierLayout.name, [])[1:]]
    return Workspace(homes)


def named(home: Path | None) -> Sequence[Path]:
    """All values of `--home` of this command, the first of which is `home`."""
    if home is None:
        return ()
    context = click.get_current_context(silent=True)
    values: tuple[Path, ...] = context.meta.get(HOMES, ()) if context is not None else ()
    return values if home in values else (home,)
