"""Two people change one session.json: what each changed is there afterwards. Pure.

A caller loads a session, changes it and saves it; meanwhile others did the same. Three documents are then at hand:
the one that was loaded, the one that is to be saved, and the one that lies there now. Whatever differs between the
first two is what the caller changed, and only that is written. In the three objects that callers fill with keys of
their own this is decided for each key; in the list of children for each child. If two change the same key, the one
that saves last is heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sessionary.layouts.fields import same

PER_KEY: Final = ("metadata", "context", "related_entity")
PER_ITEM: Final = ("children_wsession_ids",)

_ABSENT: Final = object()


def merge(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be written.

    Args:
        base: the document as the caller loaded it; empty if the caller made the session by hand.
        mine: the document as the caller wants it.
        theirs: the document that lies there now.
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
    """`theirs` with what differs between `base` and `mine`."""
    changed = {key: value for key, value in mine.items() if not same(value, base.get(key, _ABSENT))}
    dropped = base.keys() - mine.keys()
    return {key: value for key, value in theirs.items() if key not in dropped} | changed


def _items(base: list[Any], mine: list[Any], theirs: list[Any]) -> list[Any]:
    merged = [item for item in theirs if item in mine or item not in base]
    return merged + [item for item in mine if item not in base and item not in merged]
