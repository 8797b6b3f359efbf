"""The state that the sessions of an application or a user of Google ADK share, for sync: a journal of values alone.

Where two machines changed it, the changes of both are kept: the records that only one has come behind those of the
other, and for a key that both have changed the later value wins. Pure, except for `states_in`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from sessionary.codec import Undecodable, decode, encode_line, sanitize
from sessionary.codec.snapshot import same
from sessionary.disk.fs import Fs, names_in
from sessionary.layouts.fields import Merged, Overruled
from sessionary.layouts.records.names import ADK, SUFFIX, name_in
from sessionary.layouts.records.state import CHANGE, SNAPSHOT

FOLDER = "state"
"""The folder with the shared state, below that of the framework."""
PROJECT = f"{ADK}/{FOLDER}"
FILE = "state.records"
"""The name of such a journal on the remote."""
_PREFIX = "state:"
_KNOWN = {"n", "at", "op", "set", "unset", "snap"}

Record = dict[str, Any]


def is_state(session_id: str) -> bool:
    """True for the id under which shared state is synced."""
    return session_id.startswith(_PREFIX)


def states_in(fs: Fs, folder: str) -> Iterator[tuple[str, str]]:
    """The ids and the paths of the shared state in the folder of the framework."""
    place = os.path.join(folder, FOLDER)
    for name in sorted(names_in(fs, place) or ()):
        if name.endswith(SUFFIX) and not name.startswith("."):
            yield _PREFIX + name.removesuffix(SUFFIX), f"{place}/{name}"


def file_of(session_id: str) -> str | None:
    """The name of the file of shared state; None if it cannot be one."""
    name = session_id.removeprefix(_PREFIX)
    known = None if "/" in name else name_in("/".join((ADK, *name.split(","))), "x")
    return None if known is None else name + SUFFIX


def merged_state(mine: bytes, theirs: bytes) -> Merged | None:
    """Their journal, with the changes behind it that only ours has; None if one of them holds more than values."""
    ours, others = _records(mine), _records(theirs)
    if ours is None or others is None:
        return None
    common = next(
        (at for at, (one, other) in enumerate(zip(ours, others, strict=False)) if not same(one, other)),
        min(len(ours), len(others)),
    )
    later = {
        (table, key): (record["at"], value)
        for record in others[common:]
        for table, key, value in _values(record)
    }
    number, lines, overruled = len(others), list[bytes](), list[Overruled]()
    for record in ours[common:]:
        kept: dict[str, dict[str, Any]] = {}
        for table, key, value in _values(record):
            there = later.get((table, key))
            if there is not None and (there[0], repr(there[1])) >= (record["at"], repr(value)):
                overruled += [] if same(there[1], value) else [Overruled(key, there[1], value)]
                continue
            kept.setdefault(table, {})[key] = value
        if kept:
            added = {"n": number, "at": record["at"], "op": CHANGE, "set": kept}
            lines.append(encode_line(sanitize(added)) + b"\n")
            number += 1
    return Merged(theirs + b"".join(lines), bool(lines), tuple(overruled))


def _values(record: Record) -> Iterator[tuple[str, str, Any]]:
    for table, values in record.get("set", {}).items():
        for key, value in values.items():
            yield table, key, value


def _records(data: bytes) -> list[Record] | None:
    """The records of a journal without its snapshots; None if it is damaged, or has items, removals or a chain."""
    if not data.endswith(b"\n"):
        return None
    found: list[Record] = []
    for line in data.split(b"\n")[:-1]:
        try:
            record = decode(line)
        except Undecodable:
            return None
        if not isinstance(record, dict) or record.get("op") == SNAPSHOT or record.get("chain"):
            return None
        if found and not (record.keys() <= _KNOWN and _is_plain(record)):
            return None
        found.append(record)
    return found


def _is_plain(record: Record) -> bool:
    tables: Sequence[Any] = list(record.get("set", {}).values())
    return (
        isinstance(record.get("at"), str)
        and not record.get("unset")
        and all(isinstance(t, dict) for t in tables)
    )
