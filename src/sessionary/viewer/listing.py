"""The list as lines of JSON: a head, then rows in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sessionary.escaping import harmless
from sessionary.model import Summary
from sessionary.workspace import documents
from sessionary.workspace.prices import Prices

GROUP = 250
"""Rows in a group."""

_UNSHOWN = ("agent", "path", "turn_count", "stated_cost", "unpriced")


def row_of(key: str, summary: Summary, prices: Prices) -> dict[str, Any]:
    """A row: fields of docs/cli-json.md, harmless, and those that the page needs beside them."""
    row = documents.of_summary(summary, prices)
    for name in _UNSHOWN:
        del row[name]
    shown = {name: harmless(value) if isinstance(value, str) else value for name, value in row.items()}
    return shown | {
        "models": [harmless(model) for model in summary.models],
        "tags": [harmless(tag) for tag in summary.tags],
        "key": key,
        "nested": summary.nested,
    }


def lines(head: dict[str, Any], rows: Sequence[bytes]) -> Iterator[bytes]:
    """The lines: the head, then arrays of rows, which are given as JSON."""
    yield msgspec.json.encode(head) + b"\n"
    for start in range(0, len(rows), GROUP):
        yield b"[" + b",".join(rows[start : start + GROUP]) + b"]\n"
