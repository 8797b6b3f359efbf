"""Rewinds that came to nothing: another device had gone on from what was taken back, and growth wins.

Nothing is lost by that, but a user who has taken lines back finds them again. So it is reported on both devices: on the
one that has gone on, when it meets the rewind, and on the one that has rewound, when the lines come back. The head does
not say that, so a device remembers how far a journal had come before a rewind that it has sent or brought here.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessionary.disk.fs import Fs
from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.sync.blocks import Piece
from sessionary.sync.diff import Comparison, Verdict
from sessionary.sync.local_files import LocalPart, match
from sessionary.sync.state import SyncedState


def met(
    layout: SyncLayout, found: Comparison, mine: Mapping[str, LocalPart], agreed: SyncedState | None
) -> str:
    """What to report of a comparison in which one side had taken lines back that the other has gone on from."""
    told = []
    for name, theirs in found.theirs.items():
        here, pieces = mine.get(name), agreed.pieces.get(name) if agreed else None
        if here is None or not pieces or agreed is None or not _is_conversation(layout, here):
            continue
        verdict, before = found.verdicts[name], pieces[-1].end
        if verdict is Verdict.OURS and theirs.part.size < before <= here.size:
            sizes = f"from {before:,} to {theirs.part.size:,} bytes"
            told.append(
                f"{name} was taken back on another device {sizes}, but had gone on here: all lines stay"
            )
        is_mended = name in agreed.held or name in agreed.refused
        if verdict is Verdict.THEIRS and here.size < before <= theirs.part.size and not is_mended:
            sizes = f"from {before:,} to {here.size:,} bytes"
            told.append(
                f"{name} was taken back here {sizes}, but another device had gone on: all lines are back"
            )
    return "; ".join(told)


def come_back(
    fs: Fs, found: Comparison, mine: Mapping[str, LocalPart], taken: Mapping[str, list[Piece]]
) -> str:
    """What to report after a pull that has brought lines back which had been taken back.

    Args:
        fs: the file system.
        found: what was compared before.
        mine: the files as they are now.
        taken: how far each journal had come before it was taken back.
    """
    names = [name for name in taken if name in mine and found.verdicts.get(name) is Verdict.THEIRS]
    back = [name for name in names if match(fs, mine[name], taken[name], None).pieces == len(taken[name])]
    return "; ".join(
        f"{name} has all lines again that were taken back: another device had gone on from them"
        for name in back
    )


def _is_conversation(layout: SyncLayout, here: LocalPart) -> bool:
    return here.kind is PartKind.JOURNAL and layout.rule(here.name).policy is Policy.FORK
