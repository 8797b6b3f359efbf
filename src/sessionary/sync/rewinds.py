"""Notes about rewinds: lines that were removed on one device, and are removed from the others.

A rewind may be without effect: another device had continued from the removed lines, and growth wins. Nothing is lost
by that, but a user who has removed lines finds them again. So it is reported on both devices: on the one that
continued, when it sees the rewind, and on the one that rewound, when the lines return. The head does not record that,
so a device remembers the length of a journal before a rewind that it has sent or pulled.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessionary.disk.fs import Fs
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.sync.blocks import Piece
from sessionary.sync.diff import Comparison, Verdict
from sessionary.sync.heads import Head
from sessionary.sync.local_files import LocalPart, match
from sessionary.sync.report import Undo
from sessionary.sync.state import SyncedState


def by_push(
    layout: SyncLayout, old: Head, new: Head, mine: Mapping[str, LocalPart]
) -> tuple[Undo | None, str]:
    """Return a note about sent lines that a push rewinds, and how to restore them."""
    if new.gen > old.gen:
        sizes = {part.name: part.size for part in old.parts}
        for name in new.history[-1].tips:
            here = mine[name]
            if _is_reported(layout, here, sizes[name], here.size):
                words = f"{name} was rewound from {sizes[name]:,} to {here.size:,} bytes"
                return Undo(name, new.history[-1].gen), words
    return None, ""


def by_pull(
    layout: SyncLayout,
    head: Head,
    found: Comparison,
    mine: Mapping[str, LocalPart],
    agreed: SyncedState | None,
) -> tuple[Undo | None, str]:
    """Return a note about lines that another device rewound, and how to restore them."""
    if agreed is None:
        return None, ""
    for name, theirs in found.theirs.items():
        here, pieces = mine.get(name), agreed.pieces.get(name)
        if here is None or not pieces or found.verdicts[name] is not Verdict.THEIRS:
            continue
        had_all = found.matched[name].pieces == len(pieces)
        if not had_all or theirs.pieces[: len(pieces)] == pieces:
            continue
        if _is_reported(layout, here, here.size, theirs.part.size):
            past = (one.gen for one in head.history if name in one.tips and one.gen >= agreed.head.gen)
            generation = min(past, default=None)
            undo = None if generation is None else Undo(name, generation)
            sizes = f"from {here.size:,} to {theirs.part.size:,} bytes"
            return undo, f"{name} was rewound on another device {sizes}"
    return None, ""


def _is_reported(layout: SyncLayout, here: LocalPart, before: int, after: int) -> bool:
    """True if a rewritten journal is a conversation, or became shorter.

    Other journals are reordered whenever two devices have written: that loses nothing.
    """
    return here.kind is PartKind.JOURNAL and (_is_conversation(layout, here) or after < before)


def met(
    layout: SyncLayout, found: Comparison, mine: Mapping[str, LocalPart], agreed: SyncedState | None
) -> str:
    """Return a note about a comparison in which one side rewound lines that the other had continued from."""
    notes = []
    for name, theirs in found.theirs.items():
        here, pieces = mine.get(name), agreed.pieces.get(name) if agreed else None
        if here is None or not pieces or agreed is None or not _is_conversation(layout, here):
            continue
        verdict, before = found.verdicts[name], pieces[-1].end
        if verdict is Verdict.OURS and theirs.part.size < before <= here.size:
            sizes = f"from {before:,} to {theirs.part.size:,} bytes"
            notes.append(
                f"{name} was rewound on another device {sizes}, but continued here: all lines are kept"
            )
        is_mended = name in agreed.held or name in agreed.refused
        if verdict is Verdict.THEIRS and here.size < before <= theirs.part.size and not is_mended:
            sizes = f"from {before:,} to {here.size:,} bytes"
            notes.append(
                f"{name} was rewound here {sizes}, but another device had continued: all lines are back"
            )
    return "; ".join(notes)


def come_back(
    fs: Fs, found: Comparison, mine: Mapping[str, LocalPart], taken: Mapping[str, list[Piece]]
) -> str:
    """Return a note after a pull that restored rewound lines.

    Args:
        found: the comparison before the pull.
        taken: the length of each journal before the rewind.
    """
    names = [name for name in taken if name in mine and found.verdicts.get(name) is Verdict.THEIRS]
    back = [name for name in names if match(fs, mine[name], taken[name], None).pieces == len(taken[name])]
    return "; ".join(
        f"{name} has all rewound lines again: another device had continued from them" for name in back
    )


def _is_conversation(layout: SyncLayout, here: LocalPart) -> bool:
    return here.kind is PartKind.JOURNAL and layout.rule(here.name).policy is Policy.FORK
