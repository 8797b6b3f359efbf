"""Tables: one line for each row, with columns that fit the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sessionary.cli import output
from sessionary.cli.text import cells, column, fit

_NARROWEST = 8


class Column(NamedTuple):
    """A column.

    Attributes:
        head: its heading.
        texts: its text in each row.
        right: align it right.
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
        columns: the columns.
        room: the width in cells; None: nothing is cut.
        stretch: the heading of the column that gets the rest of the width.
        keep_end: cut that column at its beginning.
        drop: headings of columns that are left out, one after the other, while that column has less than `least` cells.
        least: see `drop`.
    """
    filled = {one.head: column([one.head, *one.texts], right=one.right) for one in columns}
    if room is not None and stretch is not None:
        rest = list(filled.pop(stretch))
        for head in drop:
            if room - _width(filled) >= least:
                break
            filled.pop(head, None)
        left = max(room - _width(filled), _NARROWEST)
        cut = [fit(text.rstrip(), left, keep_end=keep_end) for text in rest]
        filled = {
            one.head: filled.get(one.head, column(cut)) for one in columns if one.head in {*filled, stretch}
        }
    coloured = [one for one in columns if one.colours and one.head in filled] if output.has_colours() else []
    for number, row in enumerate(zip(*filled.values(), strict=True)):
        line = "  ".join(row).rstrip()
        line = line if room is None else fit(line, room)
        if number == 0:
            line = output.paint(line, "bold")
        else:
            for one in coloured:
                text = one.texts[number - 1]
                line = line.replace(text, output.paint(text, one.colours[number - 1]), 1)
        yield line


def _width(filled: dict[str, list[str]]) -> int:
    return sum(cells(texts[0]) + 2 for texts in filled.values())
