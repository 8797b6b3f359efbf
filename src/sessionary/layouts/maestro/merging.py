"""Three-way merge of a session.json. Pure.

A caller loads a session, changes it and saves it; others may save in between. There are three documents: the
loaded one, the one to save, and the stored one. The difference between the first two is the caller's change,
and only that is written. In the three objects that hold keys of the caller's own this is decided per key; in
the list of children per child. If two change the same key, the last save wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sessionary.codec.snapshot import same

PER_KEY: Final = ("metadata", "context", "related_entity")
PER_ITEM: Final = ("children_wsession_ids",)

_ABSENT: Final = object()


def merge(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to write.

    Args:
        base: the document as loaded; empty if the caller created the session in memory.
        mine: the document as the caller wants it.
        theirs: the stored document.
    """
    merged = _changes(base, mine, theirs)
    for key in PER_KEY:
        if key in mine:
            merged[key] = _changes(base.get(key) or {}, mine[key], theirs.get(key) or {})
    for key in PER_ITEM:
        if key in mine:
            merged[key] = _items(base.get(key) or [], mine[key], theirs.get(key) or [])
    return merged


def _changes(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """`theirs` with the difference between `base` and `mine` applied."""
    changed = {key: value for key, value in mine.items() if not same(value, base.get(key, _ABSENT))}
    dropped = base.keys() - mine.keys()
    return {key: value for key, value in theirs.items() if key not in dropped} | changed


def _items(base: list[Any], mine: list[Any], theirs: list[Any]) -> list[Any]:
    merged = [item for item in theirs if item in mine or item not in base]
    return merged + [item for item in mine if item not in base and item not in merged]
