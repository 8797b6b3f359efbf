"""Reading rows by their keys from a database that may be damaged: what one page hides, the others do not."""

from __future__ import annotations

from typing import Any

from sessionary.errors import Corrupt
from sessionary.layouts.sqlite import Database
from sessionary.model import Place, Problem, Severity


def rows_of(database: Database, query: str, keys: list[str]) -> tuple[dict[str, Any], dict[str, Problem]]:
    """The values of these rows, and a problem for each row that the damage of a database hides.

    Args:
        query: selects a key and a value, and ends with the column of the keys.

    Raises:
        as `Database.fetch`, except for damage.
    """
    if not keys:
        return {}, {}
    marks = ", ".join("?" * len(keys))
    try:
        return dict(database.fetch(f"{query} IN ({marks})", keys)), {}
    except Corrupt as error:
        if len(keys) == 1:
            return {}, {keys[0]: unreadable(Place(f"{database.path}#{keys[0]}"), error)}
    rows, failed = dict[str, Any](), dict[str, Problem]()
    for key in keys:
        found, lost = rows_of(database, query, [key])
        rows.update(found)
        failed.update(lost)
    return rows, failed


def unreadable(place: Place, error: Corrupt) -> Problem:
    """Rows that the damage of a database hides."""
    return Problem(
        "unreadable_row", Severity.lost_data, place.path or "", None, None, error.message, error.hint
    )
