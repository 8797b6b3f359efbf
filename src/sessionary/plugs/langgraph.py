"""A checkpointer for LangGraph that survives crashes and many processes, for synchronous and asynchronous graphs.

    from sessionary.plugs.langgraph import DurableSaver

    graph = builder.compile(checkpointer=DurableSaver())

A thread is one journal. Each element of a list in the state is stored once, and a list as references to its elements.
So a step writes what it added, not the whole state.
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import os
import random
from binascii import b2a_base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from msgspec import Raw, Struct
from msgspec import json as json_codec

from sessionary.errors import Corrupt
from sessionary.layouts.records.journal import Change
from sessionary.layouts.records.lists import (
    SEE_CHECK,
    continued,
    numbers_in,
    renumbered_lists,
    spans_in_list,
    whole_list,
)
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.records.state import State, spans_of
from sessionary.layouts.records.undoing import renumbered
from sessionary.layouts.records.values import encode_value
from sessionary.layouts.records.view import VIEW, continuing, showing
from sessionary.plugs.storing import Journals, awaitable, in_thread

_CHECKPOINTS, _VALUES, _WRITES = "checkpoints", "values", "writes"
_MESSAGES = "messages"
_DELTAS = "counters_since_delta_snapshot"

_CHANCE = random.SystemRandom()

Config = Any


class DurableSaver(BaseCheckpointSaver):  # type: ignore[misc]
    """Checkpoints and pending writes, in a journal of records for each thread.

    Beside what a checkpointer must do, it copies threads, deletes the checkpoints of runs, and prunes threads without
    breaking delta channels.

    Args:
        folder: the folder of the threads; by default ``langgraph`` below the data folder of Sessionary.
        durability: ``full`` (default: what `put` acknowledged survives a power cut), ``batch`` or ``none``.
        chain: whether the records of new sessions form a hash chain, which `sessionary check --chain` verifies.
        serde: the serializer; by default that of LangGraph.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        durability: str = "full",
        chain: bool = False,
        serde: Any = None,
    ) -> None:
        super().__init__(serde=serde)
        self.journals: Journals = Journals(LANGGRAPH, folder, durability, chain)

    # -- reading

    def get_tuple(self, config: Config) -> Any:
        """The checkpoint that a configuration names, else the newest one; None if there is none."""
        thread_id, namespace = _named(config)
        checkpoint_id = get_checkpoint_id(config)

        def find(state: State) -> Any:
            stored = state.tables.get(_name(_CHECKPOINTS, namespace), {})
            found = checkpoint_id or max(stored, default=None)
            return self._tuple(state, thread_id, namespace, found) if found in stored else None

        return self.journals.of(thread_id).read(find)

    def list(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - its name in LangGraph
        before: Config = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """Checkpoints, the newest of each namespace first; of all threads if no configuration is given."""
        given = [config["configurable"]["thread_id"]] if config else None
        threads = given or [one for one, _ in self.journals.sessions()]
        most = None if limit is None else max(limit, 0)

        def listed(thread_id: str) -> Sequence[Any]:
            select = partial(self._listed, thread_id, config, filter or {}, before, most)
            return self.journals.of(thread_id).read(select)

        return islice((one for thread_id in threads for one in listed(thread_id)), most)

    def _listed(
        self, thread_id: str, config: Config, wanted: Any, before: Config, limit: int | None, state: State
    ) -> Sequence[Any]:
        named = config["configurable"] if config else {}
        end = get_checkpoint_id(before) if before else None
        places = (
            (namespace, one)
            for namespace in _namespaces(state)
            if named.get("checkpoint_ns") in (None, namespace)
            for one in sorted(state.tables[_name(_CHECKPOINTS, namespace)], reverse=True)
            if named.get("checkpoint_id") in (None, one) and (not end or one < end)
        )
        found = (self._tuple(state, thread_id, *place) for place in places)
        return [
            *islice(
                (one for one in found if all(one.metadata.get(key) == wanted[key] for key in wanted)), limit
            )
        ]

    def _tuple(self, state: State, thread_id: str, namespace: str, checkpoint_id: str) -> Any:
        stored = state.value(_name(_CHECKPOINTS, namespace), checkpoint_id)
        channels = stored["values"].items()
        values = {
            channel: self._value(state, namespace, origin, channel) for channel, (origin, _) in channels
        }
        parent = stored["parent"]
        return CheckpointTuple(
            config=_config(thread_id, namespace, checkpoint_id),
            checkpoint={**self.serde.loads_typed(tuple(stored["checkpoint"])), "channel_values": values},
            metadata=self.serde.loads_typed(tuple(stored["metadata"])),
            parent_config=_config(thread_id, namespace, parent) if parent else None,
            pending_writes=self._writes(state, namespace, checkpoint_id),
        )

    def _value(self, state: State, namespace: str, origin: str, channel: str) -> Any:
        stored = state.value(_name(_VALUES, namespace), _name(origin, channel))
        if stored is None:
            raise Corrupt(f"{channel!r} of checkpoint {origin} cannot be read", hint=SEE_CHECK)
        if "typed" in stored:
            return self.serde.loads_typed(tuple(stored["typed"]))
        numbers = [*numbers_in(spans_in_list(state, _name(_VALUES, namespace), stored))]
        if missing := [number for number in numbers if number not in state.items]:
            raise Corrupt(
                f"{len(missing)} elements of {channel!r} in checkpoint {origin} cannot be read",
                hint=SEE_CHECK,
            )
        elements = (_decode_element(state.items[number]) for number in numbers)
        return [self.serde.loads_typed((kind, one.data)) for kind, one in elements]

    def _writes(self, state: State, namespace: str, checkpoint_id: str) -> Sequence[Any]:
        table = state.table(_name(_WRITES, namespace, checkpoint_id))
        rows = [(*json.loads(key), *value) for key, value in table.items()]
        rows.sort(key=lambda row: writes_sort_key(row[5], row[0], row[1]))
        return [
            (task_id, channel, self.serde.loads_typed((kind, data)))
            for task_id, _, channel, kind, data, _ in rows
        ]

    # -- writing

    def put(self, config: Config, checkpoint: Any, metadata: Any, new_versions: Mapping[str, Any]) -> Config:
        """Store a checkpoint: what its channels hold, as far as the parent does not hold the same.

        Durability: that of the saver; see the class.

        Raises:
            Locked: another process holds the thread.
            StorageFailed: the system denied the write; `outcome` states whether the checkpoint may be stored.
        """
        thread_id, namespace = _named(config)
        parent = config["configurable"].get("checkpoint_id")
        rest = dict(checkpoint)
        values = rest.pop("channel_values")
        described = get_checkpoint_metadata(config, metadata)
        described.update({key: value for key, value in metadata.items() if isinstance(value, str)})
        typed = {channel: self._typed(values[channel]) for channel in new_versions if channel in values}
        table = _name(_VALUES, namespace)

        def decide(state: State) -> Change:
            found = state.value(_name(_CHECKPOINTS, namespace), parent) if parent else None
            inherited = found["values"] if found else {}
            add, named = list[Raw](), dict[str, Any]()
            changed: dict[str, dict[str, Any]] = {}
            unset: dict[str, Sequence[str]] = {}
            for channel, value in values.items():
                version, origin = checkpoint["channel_versions"].get(channel), inherited.get(channel)
                if channel not in typed and origin is not None and origin[1] == version:
                    named[channel] = origin
                    continue
                named[channel] = checkpoint["id"], version
                stored: Any = typed.get(channel) or self._typed(value)
                if isinstance(stored, bytes):
                    stored = Raw(b'{"typed":%s}' % stored)
                else:
                    base = _name(origin[0], channel) if origin else None
                    stored, spans = continued(state, table, base, stored, add)
                    if channel == _MESSAGES and not namespace:
                        changed[VIEW], old = showing(state.tables.get(VIEW, {}), spans)
                        unset = {VIEW: old} if old else {}
                changed.setdefault(table, {})[_name(checkpoint["id"], channel)] = stored
            record = b'{"parent":%s,"values":%s,"checkpoint":%s,"metadata":%s}'
            parts = (encode_value(parent), encode_value(named), *map(self._element, (rest, described)))
            changed[_name(_CHECKPOINTS, namespace)] = {checkpoint["id"]: Raw(record % parts)}
            return Change(add=add, set=changed, unset=unset)

        self.journals.of(thread_id).change(decide)
        return _config(thread_id, namespace, checkpoint["id"])

    def _typed(self, value: Any) -> bytes | Sequence[bytes]:
        """A value as it is stored; of a list each element by itself."""
        return [*map(self._element, value)] if type(value) is list else self._element(value)

    def _element(self, value: Any) -> bytes:
        """What `encode_value` returns for a serialised value: there are thousands of them in a step."""
        kind, data = self.serde.dumps_typed(value)
        return b'["%s",{"$bytes":"%s"}]' % (kind.encode(), b2a_base64(data, newline=False))

    def put_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote before its step ended. A repeated write of a task counts once.

        Durability: that of the saver; see the class.
        """
        rows = {}
        for index, (channel, value) in enumerate(writes):
            parts = encode_value(channel), self._element(value)[1:-1], encode_value(task_path)
            rows[task_id, WRITES_IDX_MAP.get(channel, index)] = Raw(b"[%s,%s,%s]" % parts)
        self.put_rows(config, rows)

    def put_rows(self, config: Config, rows: Mapping[tuple[str, int], Raw]) -> int:
        """Store serialised writes by task and number; return how many were not stored before.

        Durability: that of the saver; see the class.
        """
        thread_id, namespace = _named(config)
        table = _name(_WRITES, namespace, config["configurable"]["checkpoint_id"])
        new: dict[str, Raw] = {}

        def decide(state: State) -> Change | None:
            known = state.tables.get(table, {})
            for (task_id, index), row in rows.items():
                key = _name(task_id, index)
                if key not in known or (index < 0 and known[key] != row):
                    new[key] = row
            return Change(set={table: new}) if new else None

        self.journals.of(thread_id).change(decide)
        return len(new)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread. A missing one is not an error."""
        self.journals.of(thread_id).delete()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs in all threads, with their pending writes."""
        wanted = set(run_ids)

        def decide(state: State) -> Change | None:
            kept = {
                (namespace, one): stored
                for namespace, one, stored in _checkpoints(state)
                if self.serde.loads_typed(tuple(stored["metadata"])).get("run_id") not in wanted
            }
            return _keeping(state, kept)

        for thread_id, _ in list(self.journals.sessions()):
            self.journals.of(thread_id).change(decide)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest of each namespace, or with ``delete`` all of them.

        Of delta channels, the ancestors that the newest checkpoint is rebuilt from are kept too.

        Raises:
            ValueError: an unknown strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"unknown strategy {strategy!r}: use 'keep_latest' or 'delete'")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self.journals.of(thread_id).change(self._latest)

    def _latest(self, state: State) -> Change | None:
        stored = {(namespace, one): record for namespace, one, record in _checkpoints(state)}
        kept = {}
        for namespace in _namespaces(state):
            newest = max(one for space, one in stored if space == namespace)
            metadata = self.serde.loads_typed(tuple(stored[namespace, newest]["metadata"]))
            missing = set(metadata.get(_DELTAS) or ()) - set(stored[namespace, newest]["values"])
            current: str | None = newest
            while current is not None and (record := stored.get((namespace, current))) is not None:
                kept[namespace, current] = record
                missing -= set(record["values"])
                current = record["parent"] if missing else None
        return _keeping(state, kept)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and pending writes of a thread to another one."""
        items, tables = self.journals.of(source_thread_id).read(
            lambda state: (dict(state.items), {name: dict(rows) for name, rows in state.tables.items()})
        )
        if not tables:
            return

        def decide(state: State) -> Change:
            numbers = {number: state.next_item + place for place, number in enumerate(items)}
            copied = renumbered(tables, set(), numbers)
            for name in tables:
                if _kind(name) == _VALUES:
                    copied[name] = renumbered_lists(copied[name], numbers)
            unset = continuing(state.tables.get(VIEW, {}))
            return Change(add=list(items.values()), set=copied, unset={VIEW: unset} if unset else {})

        self.journals.of(target_thread_id).change(decide)

    def get_next_version(self, current: Any, channel: None) -> str:
        """The version after another one: a number and a random part, so that versions of two branches differ."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{_CHANCE.random():016}"

    # -- the same for asynchronous graphs

    aget_tuple = awaitable(get_tuple)
    aput = awaitable(put)
    aput_writes = awaitable(put_writes)
    adelete_thread = awaitable(delete_thread)
    adelete_for_runs = awaitable(delete_for_runs)
    aprune = awaitable(prune)
    acopy_thread = awaitable(copy_thread)

    async def alist(self, config: Config, **options: Any) -> AsyncIterator[Any]:
        """As `list`."""
        for one in await in_thread(lambda: [*self.list(config, **options)]):
            yield one

    def close(self) -> None:
        """Flush what is pending, and close all files. The next call opens them again."""
        self.journals.close()


class _Bytes(Struct, rename={"data": "$bytes"}):
    """Bytes as `records.values` stores them."""

    data: bytes


_decode_element = json_codec.Decoder(tuple[str, _Bytes]).decode


def _keeping(state: State, kept: Mapping[tuple[str, str], Any]) -> Change | None:
    """The change that leaves only these checkpoints, and what they need; None if nothing goes."""
    gone = [(namespace, one) for namespace, one, _ in _checkpoints(state) if (namespace, one) not in kept]
    if not gone:
        return None
    whole: dict[str, dict[str, Any]] = {}
    standing: set[int] = set()
    needed: dict[str, set[str]] = {name: set() for name in state.tables if _kind(name) == _VALUES}
    for (namespace, _), record in kept.items():
        table = _name(_VALUES, namespace)
        for channel, (origin, _version) in record["values"].items():
            key = _name(origin, channel)
            needed.setdefault(table, set()).add(key)
            value = state.value(table, key) or {}
            if "then" in value:
                spans = spans_in_list(state, table, value)
                standing.update(numbers_in(spans))
                if value["from"] is not None:  # what it builds on may go
                    whole.setdefault(table, {})[key] = whole_list(spans)
    unset = {
        name: [key for key in state.tables.get(name, ()) if key not in keys] for name, keys in needed.items()
    }
    for namespace, one in gone:
        unset.setdefault(_name(_CHECKPOINTS, namespace), []).append(one)
        unset[_name(_WRITES, namespace, one)] = [*state.tables.get(_name(_WRITES, namespace, one), ())]
    drop = spans_of(number for number in state.items if number not in standing)
    return Change(drop=drop, set=whole, unset={name: keys for name, keys in unset.items() if keys})


def _checkpoints(state: State) -> Iterator[tuple[str, str, Any]]:
    for namespace in _namespaces(state):
        for checkpoint_id, record in state.table(_name(_CHECKPOINTS, namespace)).items():
            yield namespace, checkpoint_id, record


def _namespaces(state: State) -> list[str]:
    """The namespaces of a thread that have checkpoints."""
    return [
        json.loads(name)[1] for name, rows in state.tables.items() if rows and _kind(name) == _CHECKPOINTS
    ]


def _kind(table: str) -> str:
    """What a table holds: checkpoints, values or writes of a namespace, or what readers are shown."""
    return table if table == VIEW else json.loads(table)[0]


def _named(config: Config) -> tuple[str, str]:
    configurable = config["configurable"]
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> Config:
    named = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": named}


_encode_name = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _name(*parts: Any) -> str:
    """The name of a table, or a key in one."""
    return _encode_name(parts)
