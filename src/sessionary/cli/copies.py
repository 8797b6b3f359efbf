"""How `sessionary repair` shows the conflict copies of a file synchroniser that it merged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sessionary.cli import changing, formatting
from sessionary.cli.changing import is_path
from sessionary.cli.targets import AGENTS
from sessionary.errors import NotFound
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.conflict_copies import CONTAINED, LEFT, MERGED, SESSION, BroughtIn
from sessionary.workspace import Workspace


def session_of_another_kind(workspace: Workspace, word: str) -> SessionRef | None:
    """The session that a word names, if it is not a session of an agent; else None."""
    try:
        if is_path(word):
            ref = workspace.ref_for_path(Path(os.path.abspath(os.path.expanduser(word))))
        else:
            ref = workspace.find(word, kind=AGENTS)
    except NotFound:
        return None
    return ref if ref.kind != AGENTS else None


def writable(workspace: Workspace, ref: SessionRef) -> SyncLayout | None:
    """The layout of a session, as one that can be written to; None if it can only be read."""
    return next((layout for layout in workspace.sync_layouts() if layout.name == ref.kind), None)


def lines(brought: Sequence[BroughtIn], *, dry_run: bool) -> Iterator[str]:
    """What was done with each copy, and where it is now."""
    for one in brought:
        name = os.path.basename(one.path)
        if one.done == LEFT:
            yield from changing.done(f"{name}: {_words(one, dry_run)}", "!", "yellow")
        else:
            yield from changing.done(f"{name}: {_words(one, dry_run)}")
        if one.kept != one.path:
            yield from changing.set_in(f"  kept as {os.path.basename(one.kept)}")


def _words(one: BroughtIn, dry_run: bool) -> str:
    unit = "line" if one.path.endswith(".jsonl") else "field"
    more = formatting.count(one.more, unit)
    if one.done == CONTAINED:
        return f"adds nothing to {one.original}; {'would be' if dry_run else 'was'} set aside"
    if one.done == LEFT:
        return f"has {more} missing from {one.original}; compare the two, then delete the copy"
    if one.done == SESSION:
        return f"{'would become' if dry_run else 'is now'} a session of its own, {one.session}"
    if one.done == MERGED:
        return f"{'would be' if dry_run else 'was'} merged into {one.original} ({more})"
    return f"{'would replace' if dry_run else 'replaced'} {one.original}, with {more} more"
