"""Whoever keeps sessions inside of a git work tree is told once which lines keep our side files out of it.

Told, not done: files that a person keeps under version control are theirs. That it was told is remembered for each
work tree and each kind of session, among the person's state (`$XDG_STATE_HOME/sessionary`). A script that asks for
JSON is no person: it is not told, and nothing is remembered.
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


def tell_afterwards(ctx: click.Context, kind: str, place: Path) -> None:
    """When the command of a context has ended, tell of the one kind of session that its project may hold by then."""

    def tell() -> None:
        if not ctx.params.get("json_") and work_tree(place) is not None:
            tell_once([layout_in(place, kind)])

    ctx.call_on_close(tell)


def tell_once(layouts: Iterable[Layout]) -> None:
    """Print the lines for every layout that has sessions inside of a work tree, unless that was done before."""
    for layout in layouts:
        tree = work_tree(layout.home)
        if tree is not None and layout.home.is_dir() and _is_first(tree, layout.name):
            _tell(tree, layout.home, layout.side_files)


def work_tree(place: Path) -> str | None:
    """The git work tree that a folder lies in: the nearest one above that has a `.git`; None if there is none."""
    at = os.path.realpath(place)
    while not os.path.lexists(os.path.join(at, ".git")):
        at, below = os.path.dirname(at), at
        if at == below:
            return None
    return at


def _is_first(tree: str, layout: str) -> bool:
    """True if nobody was told yet; from now on somebody was, as far as that can be remembered."""
    state = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if state is None:
        return True
    told = os.path.join(state, _FOLDER, f"{layout}-{zlib.crc32(os.fsencode(tree)):08x}")
    if os.path.exists(told):
        return False
    try:
        make_dirs(OS_FS, os.path.dirname(told), durable=False)
        replace(told, (os.fsencode(tree), b"\n"), durable=False)
    except (StorageFailed, OSError):
        pass  # then it is told again: better twice than never
    return True


def _tell(tree: str, place: Path, lines: Sequence[str]) -> None:
    output.aside(f"{one_line(str(place))} lies in the git work tree {one_line(tree)}.")
    output.aside("To keep what Sessionary puts beside sessions out of it, add these lines to its .gitignore:")
    for line in lines:
        output.aside(f"  {line}")
    output.aside("(This is said once.)")
