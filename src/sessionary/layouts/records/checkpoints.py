"""Checkpoints of a state with named channels, as tables of a journal. Pure; the caller serialises the values.

A checkpoint names for each channel the checkpoint that stored its value, so it stores only what its parent does not
have. A value that is a list is stored by its elements; see `lists`. Another large value is stored once, by its hash:
a graph passes the same values to pending writes, to channels and to subgraphs. docs/formats/records.md has the tables.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Raw, Struct
from msgspec import json as json_codec

from sessionary.errors import Corrupt
from sessionary.layouts.records.journal import Change
from sessionary.layouts.records.lists import SEE_CHECK, continued, items_of_list, renumbered_lists, standing
from sessionary.layouts.records.state import State
from sessionary.layouts.records.undoing import renumbered
from sessionary.layouts.records.values import encode_value
from sessionary.layouts.records.view import VIEW, continuing, showing
from sessionary.transcript.ranges import spans_of

CHECKPOINTS, VALUES, WRITES = "checkpoints", "values", "writes"
BLOBS = '["blobs"]'
"""The table of large values, by the SHA-256 of their stored form."""
BLOB_BYTES = 1 << 14
"""Values whose stored form has at least this size are stored there: one that stays the only one costs 1 % more."""
SHOWN = "messages"
"""The channel whose elements are the conversation, in the namespace without a name."""

Serialised = bytes | Sequence[bytes]
"""A value as `typed` encodes it; of a list each element."""
Loads = Callable[[tuple[str, bytes]], Any]
"""Returns the value of serialised bytes of a kind."""


class Place(NamedTuple):
    """A checkpoint of a journal: its namespace and its id."""

    namespace: str
    name: str


def typed(kind: str, data: bytes) -> bytes:
    """What `encode_value` returns for a kind and bytes: there are thousands of them in a step."""
    return b'["%s",{"$bytes":"%s"}]' % (kind.encode(), b2a_base64(data, newline=False))


_encode_name = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def name_of(*parts: Any) -> str:
    """The name of a table, or a key in one."""
    return _encode_name(parts)


# -- reading


def namespaces(state: State) -> list[str]:
    """The namespaces that have checkpoints."""
    return [json.loads(one)[1] for one, rows in state.tables.items() if rows and _kind(one) == CHECKPOINTS]


def places(state: State, namespace: str | None = None) -> Iterator[Place]:
    """The checkpoints of a namespace, else of all: those of one namespace together, the newest first."""
    for one in namespaces(state) if namespace is None else [namespace]:
        for name in sorted(state.tables.get(name_of(CHECKPOINTS, one), ()), reverse=True):
            yield Place(one, name)


def checkpoint_at(state: State, place: Place) -> Any:
    """A checkpoint as `put` stored it: `parent`, `values`, and the serialised `checkpoint` and `metadata`.

    None if there is none.
    """
    return state.value(name_of(CHECKPOINTS, place.namespace), place.name)


def values_at(state: State, place: Place, loads: Loads) -> dict[str, Any]:
    """The values of a checkpoint by channel. Raises Corrupt if the record of one of them is damaged."""
    sources = checkpoint_at(state, place)["values"].items()
    return {
        channel: _value(state, Place(place.namespace, origin), channel, loads)
        for channel, (origin, _) in sources
    }


def _value(state: State, origin: Place, channel: str, loads: Loads) -> Any:
    table = name_of(VALUES, origin.namespace)
    stored = state.value(table, name_of(origin.name, channel))
    place = f"{channel!r} of checkpoint {origin.name}"
    if stored is None:
        raise Corrupt(f"{place} cannot be read", hint=SEE_CHECK)
    if "typed" in stored:
        return loads(tuple(stored["typed"]))
    if "blob" in stored:
        return loads(_blob(state, stored["blob"], place))
    elements = map(_decode_element, items_of_list(state, table, stored, place))
    return [loads((kind, one.data)) for kind, one in elements]


def _blob(state: State, key: str, place: str) -> tuple[str, bytes]:
    """The kind and bytes of a large value. Raises Corrupt if its record is damaged."""
    stored = state.value(BLOBS, key)
    if stored is None:
        raise Corrupt(f"{place} cannot be read", hint=SEE_CHECK)
    kind, data = stored
    return kind, data


class _Bytes(Struct, rename={"data": "$bytes"}):
    """Bytes as `values` stores them."""

    data: bytes


_decode_element = json_codec.Decoder(tuple[str, _Bytes]).decode


def lineage(state: State, place: Place, channels: Collection[str]) -> Iterator[Place]:
    """A checkpoint, and its ancestors until each of the channels has a value in one of these."""
    missing = set(channels)
    while (stored := checkpoint_at(state, place)) is not None:
        yield place
        missing -= set(stored["values"])
        if not missing or stored["parent"] is None:
            return
        place = Place(place.namespace, stored["parent"])


def writes_at(state: State, place: Place) -> list[tuple[Any, ...]]:
    """The pending writes of a checkpoint: task, number in it, channel, kind, bytes and path of the task.

    Raises:
        Corrupt: the record of a large value is damaged.
    """
    found = []
    for key, (channel, *stored, path) in state.table(name_of(WRITES, *place)).items():
        is_blob = len(stored) == 1
        value = _blob(state, stored[0], f"a write of checkpoint {place.name}") if is_blob else stored
        found.append((*json.loads(key), channel, *value, path))
    return found


# -- changes


def put(
    state: State,
    place: Place,
    parent: str | None,
    values: Mapping[str, Any],
    versions: Mapping[str, Any],
    changed: Mapping[str, Serialised],
    serialise: Callable[[Any], Serialised],
    **rest: bytes,
) -> Change:
    """The change that stores a checkpoint.

    Args:
        state: the state of the journal.
        place: the checkpoint.
        parent: the id of the checkpoint that it follows.
        values: the values by channel.
        versions: the version of each of them: a value of the parent with the same version is not stored again.
        changed: those that have changed, serialised.
        serialise: for others that the parent does not have.
        rest: further serialised fields.
    """
    table = name_of(VALUES, place.namespace)
    before = checkpoint_at(state, Place(place.namespace, parent or ""))
    inherited = before["values"] if before else {}
    add, sources = list[Raw](), dict[str, Any]()
    stored, view, blobs = dict[str, Any](), dict[str, Any](), dict[str, Raw]()
    unset: list[str] = []
    for channel, value in values.items():
        version, origin = versions.get(channel), inherited.get(channel)
        if channel not in changed and origin is not None and origin[1] == version:
            sources[channel] = origin
            continue
        sources[channel] = place.name, version
        new = changed[channel] if channel in changed else serialise(value)
        key = name_of(place.name, channel)
        if isinstance(new, bytes):
            blob = _shared(state, new, blobs)
            stored[key] = {"blob": blob} if blob else Raw(b'{"typed":%s}' % new)
            continue
        base = name_of(origin[0], channel) if origin else None
        stored[key], spans = continued(state, table, base, new, add)
        if channel == SHOWN and not place.namespace:
            view, unset = showing(state.tables.get(VIEW, {}), spans)
    fields = {"parent": encode_value(parent), "values": encode_value(sources), **rest}
    record = Raw(b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), one) for name, one in fields.items()))
    named = {name_of(CHECKPOINTS, place.namespace): {place.name: record}}
    tables = {BLOBS: blobs, table: stored, VIEW: view, **named}
    return Change(add, set=_filled(tables), unset=_filled({VIEW: unset}))


def _shared(state: State, value: bytes, blobs: dict[str, Raw]) -> str | None:
    """The key of a large value, which is added to the blobs unless it is stored; None for a small one."""
    if len(value) < BLOB_BYTES:
        return None
    key = sha256(value).hexdigest()
    if key not in state.tables.get(BLOBS, ()):
        blobs[key] = Raw(value)
    return key


Write = tuple[str, bytes, str]
"""A channel, a value as `typed` encodes it, and the path of the task."""


def put_writes(state: State, place: Place, writes: Mapping[tuple[str, int], Write]) -> Change | None:
    """The change that stores pending writes by task and number; None if all are stored.

    A write that is there is kept, unless its number is negative.
    """
    table, blobs, new = name_of(WRITES, *place), dict[str, Raw](), dict[str, Raw]()
    known = state.tables.get(table, {})
    for (task_id, number), (channel, value, path) in writes.items():
        key = name_of(task_id, number)
        if key in known and number >= 0:
            continue
        blob = _shared(state, value, blobs)
        stored = encode_value(blob) if blob else value[1:-1]
        row = Raw(b"[%s,%s,%s]" % (encode_value(channel), stored, encode_value(path)))
        if known.get(key) != row:
            new[key] = row
    return Change(set=_filled({BLOBS: blobs, table: new})) if new else None


def keep(state: State, kept: Collection[Place]) -> Change | None:
    """The change that leaves only these checkpoints, and the values that they need; None if nothing goes."""
    gone = [place for place in places(state) if place not in kept]
    if not gone:
        return None
    needed: dict[str, set[str]] = {name: set() for name in state.tables if _kind(name) == VALUES}
    blobs = needed[BLOBS] = set()
    for place in kept:
        for channel, (origin, _) in checkpoint_at(state, place)["values"].items():
            needed.setdefault(name_of(VALUES, place.namespace), set()).add(name_of(origin, channel))
        blobs.update(row[1] for row in state.table(name_of(WRITES, *place)).values() if len(row) == 3)
    whole, numbers = dict[str, Any](), set[int]()
    for name in needed.keys() - {BLOBS}:
        values = {key: state.value(name, key) or {} for key in needed[name]}
        blobs.update(one["blob"] for one in values.values() if "blob" in one)
        whole[name], used = standing(state, name, values)
        numbers |= used
    unset = {name: [key for key in state.tables.get(name, ()) if key not in needed[name]] for name in needed}
    for place in gone:
        unset.setdefault(name_of(CHECKPOINTS, place.namespace), []).append(place.name)
        unset[name_of(WRITES, *place)] = [*state.tables.get(name_of(WRITES, *place), ())]
    drop = spans_of(number for number in state.items if number not in numbers)
    return Change(drop=drop, set=_filled(whole), unset=_filled(unset))


def copied(items: Mapping[int, Raw], tables: Mapping[str, Any], state: State) -> Change:
    """The change that adds the items and tables of another journal, with new numbers of the items."""
    numbers = {number: state.next_item + place for place, number in enumerate(items)}
    found: dict[str, dict[str, Any]] = renumbered(tables, set(), numbers)
    for name in tables:
        if _kind(name) == VALUES:
            found[name] = renumbered_lists(found[name], numbers)
    unset = {VIEW: continuing(state.tables.get(VIEW, {}))}
    return Change([*items.values()], set=found, unset=_filled(unset))


def _kind(table: str) -> str:
    """What a table holds: checkpoints, values or writes of a namespace, or what readers are shown."""
    return table if table == VIEW else json.loads(table)[0]


def _filled(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rows for name, rows in tables.items() if rows}
