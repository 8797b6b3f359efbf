"""Objects whose keys were shortened, masked or replaced, and may be equal now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def with_distinct_keys(entries: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these entries. A key that another entry has is numbered, as ``key#2``: no entry is lost."""
    found: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for key, value in entries:
        free = key
        while free in found:
            numbers[key] = numbers.get(key, 1) + 1
            free = f"{key}#{numbers[key]}"
        found[free] = value
    return found
