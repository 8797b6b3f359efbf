"""A hint for users who keep sessions in a git work tree, printed once: .gitignore lines for the files of Sessionary.

The hint changes no file: files under version control belong to the user. It is recorded per work tree and
kind of session in the user's state (`$XDG_STATE_HOME/sessionary`). With --json or --jsonl the hint is neither
printed nor recorded.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from sessionary.cli import output
from sessionary.cli.text import one_line
from sessionary.disk.atomic import replace
from sessionary.disk.fs import OS_FS, make_dirs
from sessionary.errors import StorageFailed
from sessionary.layouts.base import Layout
from sessionary.workspace import layout_in
from sessionary.xdg import xdg_folder

_FOLDER = "ignore-lines-told"


def print_afterwards(ctx: click.Context, kind: str, place: Path) -> None:
    """Print the hint for one kind of session of a project, at the end of the command."""

    def hint() -> None:
        if output.FORM not in ctx.meta and work_tree(place) is not None:
            print_once([layout_in(place, kind)])

    ctx.call_on_close(hint)


def print_once(layouts: Iterable[Layout]) -> None:
    """Print the lines for every layout that has sessions inside of a work tree, unless printed before."""
    for layout in layouts:
        tree = work_tree(layout.home)
        if tree is not None and layout.home.is_dir() and _is_first(tree, layout.name):
            _print(tree, layout.home, layout.side_files)


def work_tree(place: Path) -> str | None:
    """The git work tree that contains a folder: the nearest parent that has a `.git`; None if there is none."""
    at = os.path.realpath(place)
    while not os.path.lexists(os.path.join(at, ".git")):
        at, below = os.path.dirname(at), at
        if at == below:
            return None
    return at


def _is_first(tree: str, layout: str) -> bool:
    """True the first time for a work tree, as far as that can be recorded."""
    state = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if state is None:
        return True
    marker = os.path.join(state, _FOLDER, f"{layout}-{zlib.crc32(os.fsencode(tree)):08x}")
    if os.path.exists(marker):
        return False
    try:
        make_dirs(OS_FS, os.path.dirname(marker), durable=False)
        replace(marker, (os.fsencode(tree), b"\n"), durable=False)
    except (StorageFailed, OSError):
        pass  # then it is printed again
    return True


def _print(tree: str, place: Path, lines: Sequence[str]) -> None:
    output.aside(f"{one_line(str(place))} is in the git work tree {one_line(tree)}.")
    output.aside("To keep the side files of Sessionary out of git, add these lines to its .gitignore:")
    for line in lines:
        output.aside(f"  {line}")
    output.aside("(This hint is printed once.)")
