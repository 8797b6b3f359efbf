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
"""Key of all values of `--home` in the context of a command."""


def folder(home: Path | None) -> Path:
    """The folder of the home, whether it exists or not."""
    return Path(os.path.expanduser(home or os.environ.get(VARIABLE) or HOME)).absolute()


def check_named(home: Path | None) -> None:
    """Refuse a home that was named and is missing. Raises NotFound."""
    if home is not None or os.environ.get(VARIABLE):
        check_folder(folder(home), named_by=VARIABLE if home is None else "--home")


def workspace(*, must_exist: bool = True, places: Sequence[Path] = ()) -> Workspace:
    """The workspace of a command.

    With `--home` all sessions are those of these folders. Otherwise those of the homes in `homes.json` and of the
    project in the current folder are included.

    Args:
        must_exist: refuse a home that was named and holds no store.
        places: the folders that the user named; by default the values of `--home`.

    Raises:
        NotFound: a home that was named is missing, or holds no store.
    """
    given = places or named()
    roots = [folder(one) for one in given] or [folder(None)]
    if must_exist and (given or os.environ.get(VARIABLE)):
        for root in roots:
            check_store(root, named_by="--home" if given else VARIABLE)
    if given:
        return Workspace(roots)
    homes = homes_of_user()
    homes[AmplifierLayout.name] = [*roots, *homes.get(AmplifierLayout.name, [])[1:]]
    return Workspace(homes)


def named() -> Sequence[Path]:
    """All values of `--home` of this command."""
    context = click.get_current_context(silent=True)
    values: Sequence[Path] = context.meta.get(HOMES, ()) if context is not None else ()
    return values


def as_options() -> list[str]:
    """The words that name the same homes on a command line."""
    return [word for one in named() for word in ("--home", str(one))]
