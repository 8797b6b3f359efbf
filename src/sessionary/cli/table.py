"""Tables: one line for each row, with columns that fit the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sessionary.cli import output
from sessionary.cli.text import fit, padded, widest

_NARROWEST = 8


class Column(NamedTuple):
    """A column.

    Attributes:
        texts: its text in each row.
        colours: the colour of each text; empty for none.
    """

    head: str
    texts: Sequence[str]
    right: bool = False
    colours: Sequence[str] = ()


def lines(
    columns: Sequence[Column],
    room: int | None,
    *,
    stretch: str | None = None,
    keep_end: bool = False,
    drop: Sequence[str] = (),
    least: int = _NARROWEST,
) -> Iterator[str]:
    """The lines of a table, the headings first.

    Args:
        room: the width in cells; None: nothing is cut.
        stretch: the heading of the column that gets the rest of the width.
        keep_end: cut that column at its beginning.
        drop: headings of columns that are left out, in this order, while that column has less than `least` cells
            and needs more.
        least: see `drop`.
    """
    texts = {one.head: [one.head, *one.texts] for one in columns}
    if room is not None and stretch is not None:
        enough = min(least, widest(texts[stretch]))
        widths = {head: widest(column) + 2 for head, column in texts.items() if head != stretch}
        for head in drop:
            if room - sum(widths.values()) >= enough:
                break
            widths.pop(head, None)
        left = max(room - sum(widths.values()), _NARROWEST)
        texts[stretch] = [fit(text.rstrip(), left, keep_end=keep_end) for text in texts[stretch]]
        texts = {head: column for head, column in texts.items() if head in {*widths, stretch}}
    kept = [one for one in columns if one.head in texts]
    filled = [
        padded(texts[one.head], right=one.right)
        if one.right or one is not kept[-1]
        else texts[one.head]  # blanks at the end of a line are cut
        for one in kept
    ]
    coloured = [one for one in kept if one.colours] if output.has_colours() else []
    for number, row in enumerate(zip(*filled, strict=True)):
        line = "  ".join(row).rstrip()
        line = line if room is None else fit(line, room)
        if number == 0:
            line = output.paint(line, "bold")
        else:
            for one in coloured:
                text = one.texts[number - 1]
                line = line.replace(text, output.paint(text, one.colours[number - 1]), 1)
        yield line
