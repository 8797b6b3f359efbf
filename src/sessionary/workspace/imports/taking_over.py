"""Sessions of other stores, as an importer reads them; written into journals, each item once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Raw

from sessionary.disk.fs import Fs
from sessionary.errors import Conflict
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.state import State
from sessionary.layouts.records.values import encode_value
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


TABLE = "import"
"""The table with the number of imported items, and a hash of them."""
CHUNK = 500
"""Items in one record: one transaction."""
_DIVERGED = "{} exists, and differs from what would be imported"

ADDED, EXTENDED, UNCHANGED, CONFLICT = "added", "extended", "unchanged", "conflict"


class ImportedSession(NamedTuple):
    """The result of the import of a session.

    Attributes:
        session_id: its id.
        framework: the framework of its store.
        state: ``added``, ``extended`` (it was imported before, and has more items now), ``unchanged``, or ``conflict``
            (it was not imported, since another session of this id exists).
        items: the number of items that were added.
    """

    session_id: str
    framework: str
    state: str
    items: int


def take_over(home: str, source: Source, fs: Fs) -> ImportedSession:
    """Store a session, or what an earlier import of it did not have.

    Durability: when this returns, what was added survives a power cut. After an interruption a part of the items may
    be stored; the next import adds the others.

    Raises:
        Invalid, InvalidId: an item or the id cannot be stored.
    """
    framework = source.folder.split("/", maxsplit=1)[0]
    items = [Raw(encode_value(item)) for item in source.items]
    digests = [sha256(b"" if items else encode_value(dict(source.tables)))]
    for item in items:
        digests.append(digests[-1].copy())
        digests[-1].update(bytes(item) + b"\n")
    with RecordJournal.with_fs(
        fs, f"{home}/{source.folder}", framework, source.session_id, source.scope
    ) as journal:
        return _in_chunks(journal, source, framework, items, [one.hexdigest() for one in digests])


def _in_chunks(
    journal: RecordJournal, source: Source, framework: str, items: list[Raw], digests: list[str]
) -> ImportedSession:
    before = journal.read(lambda state: state.next_line)
    added = 0

    def decide(state: State) -> Change | None:
        nonlocal added
        done = _imported_so_far(state, source, digests)
        if done is None:
            return None
        chunk = items[done : done + CHUNK]
        end = done + len(chunk)
        added += len(chunk)
        tables = source.tables if end == len(items) else {}
        known = {"items": end, "digest": digests[end]}
        return Change(add=chunk, keys=source.keys[done:end], set={**tables, TABLE: known})

    try:
        while True:
            lines = journal.read(lambda state: state.next_line)
            if journal.change(decide).next_line == lines:
                break
    except Conflict:
        return ImportedSession(source.session_id, framework, CONFLICT, added)
    after = journal.read(lambda state: state.next_line)
    state = UNCHANGED if after == before else EXTENDED if before else ADDED
    return ImportedSession(source.session_id, framework, state, added)


def _imported_so_far(state: State, source: Source, digests: list[str]) -> int | None:
    """The number of stored items; None if all are stored.

    Raises:
        Conflict: what is stored is not the beginning of the source.
    """
    if not state.next_line:
        return 0
    done = state.value(TABLE, "items")
    conflict = Conflict(_DIVERGED.format(source.session_id))
    if not isinstance(done, int) or done >= len(digests):
        raise conflict
    is_all = done == len(digests) - 1
    if (done or is_all) and state.value(TABLE, "digest") != digests[done]:
        raise conflict
    if is_all:
        return None
    if len(state.items) != done:
        raise conflict
    return done
