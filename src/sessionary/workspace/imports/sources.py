"""What an importer reads of a file: sessions with their items, as a journal of records holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sessionary.model import Problem


class Source(NamedTuple):
    """A session of another store.

    Attributes:
        folder: the folder below the home of the journals; its first part names the framework.
        session_id, scope: the names of the session.
        items: its items, values that `encode_value` accepts.
        keys: a key for each item; empty if none has one.
        tables: values by table and key, stored with the last item.
    """

    folder: str
    session_id: str
    items: Sequence[Any]
    scope: tuple[str, ...] = ()
    keys: Sequence[str | None] = ()
    tables: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


Sources = Iterator[Source | Problem]
