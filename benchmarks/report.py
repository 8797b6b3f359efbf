"""The table of docs/performance.md: written by the run that measured it, never by hand."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Measurement, Row
from sessionary.disk.mounts import flushes_links

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN = "<!-- figures: written by `make bench` -->"
END = "<!-- end of figures -->"
_HEADER = ("work", "compared with", "must reach", "measured", "", "ours : theirs, for information")

Result = tuple[Row, Measurement]


def line(row: Row, measured: Measurement) -> str:
    """A row for the terminal."""
    reported = f"{verdict(row, measured):6} {figure(row, measured):>9} {row.limit!s:>8}"
    return f"{reported}  {row.work} / {row.peer}: {measured.numbers}"


def figure(row: Row, measured: Measurement) -> str:
    """The figure in the unit of its limit."""
    digits = 3 if measured.figure < 1 else 2
    return f"{measured.figure:.{digits}f}{row.limit.unit}"


def verdict(row: Row, measured: Measurement) -> str:
    """Whether the row reaches its limit."""
    return "ok" if row.limit.holds(measured.figure) else "missed"


def table(results: Sequence[Result], machine: str) -> str:
    """The measured rows as Markdown, with the machine that they were measured on."""
    rows = [_HEADER, ("---",) * len(_HEADER)]
    for row, measured in results:
        reported = verdict(row, measured)
        rows.append(
            (
                row.work,
                row.peer,
                str(row.limit),
                figure(row, measured) if reported == "ok" else f"**{figure(row, measured)}**",
                reported if reported == "ok" else f"**{reported}**",
                measured.numbers,
            )
        )
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


def write(results: Sequence[Result], machine: str, page: Path = PAGE) -> None:
    """Put the table between the marks of the page.

    Raises:
        ValueError: the page has no marks.
    """
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the figures: {BEGIN} … {END}")
    page.write_text(f"{before}{BEGIN}\n\n{table(results, machine)}\n{END}{after}", "utf-8")


def machine_of(place: Path) -> str:
    """What the figures depend on: cores, kernel, file system, Python."""
    kernel = re.match(r"[\d.]*\d", platform.release())
    has_no_journal = flushes_links(str(place), place.stat().st_dev) is False
    return ", ".join(
        (
            f"{os.cpu_count()} cores ({platform.machine()})",
            f"{platform.system()} {kernel.group() if kernel else ''}",
            file_system_of(place) + (" without a journal" if has_no_journal else ""),
            f"{platform.python_implementation()} {platform.python_version()}",
        )
    )


def file_system_of(place: Path) -> str:
    """The type of the file system that holds a folder, or an empty text if it is unknown."""
    try:
        mounts = Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return ""
    found = {Path(words[1]): words[2] for row in mounts if len(words := row.split()) > 2}
    here = place.resolve()
    return next((found[folder] for folder in (here, *here.parents) if folder in found), "")
