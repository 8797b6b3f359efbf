"""A checkpointer for LangGraph that survives crashes and many processes, for synchronous and asynchronous graphs.

    from sessionary.plugs.langgraph import DurableSaver

    graph = builder.compile(checkpointer=DurableSaver())

A thread is one journal. Each element of a list in the state is stored once, and a list as the ranges of the numbers of
its elements; of many ranges, as the first elements of the list in the parent checkpoint, and the elements that follow.
So a step writes what it added, not the whole state.
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import os
import random
from binascii import b2a_base64
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
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
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.records.state import Ranges, Spans, State, spans_of
from sessionary.layouts.records.undoing import renumbered
from sessionary.layouts.records.values import decode_value, encode_value
from sessionary.layouts.records.view import FEW_RANGES, SNAPSHOT_STEPS, VIEW, continuing, showing
from sessionary.plugs.storing import Journals, in_thread

_CHECKPOINTS, _VALUES, _WRITES = "checkpoints", "values", "writes"
_MESSAGES = "messages"
_SEE_CHECK = "`sessionary check` names the damaged records; an earlier checkpoint may be whole"
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
            return None if found not in stored else self._tuple(state, thread_id, namespace, found)

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
        threads = (
            [config["configurable"]["thread_id"]] if config else [one for one, _ in self.journals.sessions()]
        )
        for thread_id in threads:
            select = partial(self._listed, thread_id, config, filter, before, limit)
            found = self.journals.of(thread_id).read(select)
            for one in found:
                if limit is not None and limit <= 0:
                    return
                limit = None if limit is None else limit - 1
                yield one

    def _listed(
        self, thread_id: str, config: Config, wanted: Any, before: Config, limit: int | None, state: State
    ) -> Sequence[Any]:
        named = config["configurable"] if config else {}
        found: list[Any] = []
        for namespace in _namespaces(state):
            if named.get("checkpoint_ns") not in (None, namespace):
                continue
            for checkpoint_id in sorted(state.tables[_name(_CHECKPOINTS, namespace)], reverse=True):
                if limit is not None and len(found) >= limit:
                    return found
                if named.get("checkpoint_id") not in (None, checkpoint_id):
                    continue
                if before and (end := get_checkpoint_id(before)) and checkpoint_id >= end:
                    continue
                one = self._tuple(state, thread_id, namespace, checkpoint_id)
                if all(one.metadata.get(key) == value for key, value in (wanted or {}).items()):
                    found.append(one)
        return found

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
            raise Corrupt(f"{channel!r} of checkpoint {origin} cannot be read", hint=_SEE_CHECK)
        if "typed" in stored:
            return self.serde.loads_typed(tuple(stored["typed"]))
        numbers = list(_numbers(_elements(state, namespace, stored)))
        if missing := [number for number in numbers if number not in state.items]:
            raise Corrupt(
                f"{len(missing)} elements of {channel!r} in checkpoint {origin} cannot be read",
                hint=_SEE_CHECK,
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

        def decide(state: State) -> Change:
            put = _Put(state, namespace, checkpoint["id"], parent)
            for channel, value in values.items():
                version = checkpoint["channel_versions"].get(channel)
                if channel not in typed and put.inherits(channel, version):
                    continue
                put.store(channel, version, typed.get(channel) or self._typed(value))
            record = b'{"parent":%s,"values":%s,"checkpoint":%s,"metadata":%s}'
            stored = (encode_value(parent), encode_value(put.values), *map(self._element, (rest, described)))
            return put.change(Raw(record % stored))

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
        thread_id, namespace = _named(config)
        table = _name(_WRITES, namespace, config["configurable"]["checkpoint_id"])
        rows = {
            _name(task_id, WRITES_IDX_MAP.get(channel, index)): Raw(
                b"[%s,%s,%s]" % (encode_value(channel), self._element(value)[1:-1], encode_value(task_path))
            )
            for index, (channel, value) in enumerate(writes)
        }

        def decide(state: State) -> Change | None:
            known = state.tables.get(table, {})
            new = {key: row for key, row in rows.items() if key not in known or json.loads(key)[1] < 0}
            return Change(set={table: new}) if new else None

        self.journals.of(thread_id).change(decide)

    def put_stored_write(self, config: Config, task_id: str, index: int, stored: Sequence[Any]) -> bool:
        """Store a write of another checkpointer: channel, type, data and path of the task. False if it is there.

        Durability: that of the saver; see the class.
        """
        thread_id, namespace = _named(config)
        table = _name(_WRITES, namespace, config["configurable"]["checkpoint_id"])
        key = _name(task_id, index)
        journal = self.journals.of(thread_id)

        def decide(state: State) -> Change | None:
            return None if key in state.tables.get(table, {}) else Change(set={table: {key: list(stored)}})

        before = journal.read(lambda state: state.next_line)
        return journal.change(decide).next_line > before

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
        source = self.journals.of(source_thread_id)
        items, tables = source.read(
            lambda state: (dict(state.items), {k: dict(v) for k, v in state.tables.items()})
        )
        if not tables:
            return

        def decide(state: State) -> Change:
            numbers = {number: state.next_item + place for place, number in enumerate(items)}
            copied = renumbered(tables, set(), numbers)
            for name, table in tables.items():
                if _is_of_values(name):
                    copied[name] = {key: _renumbered(raw, numbers) for key, raw in table.items()}
            unset = continuing(state.tables.get(VIEW, {}))
            return Change(add=list(items.values()), set=copied, unset={VIEW: unset} if unset else {})

        self.journals.of(target_thread_id).change(decide)

    def get_next_version(self, current: Any, channel: None) -> str:
        """The version after another one: a number and a random part, so that versions of two branches differ."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{_CHANCE.random():016}"

    # -- the same for asynchronous graphs

    async def aget_tuple(self, config: Config) -> Any:
        """As `get_tuple`."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - its name in LangGraph
        before: Config = None,
        limit: int | None = None,
    ) -> AsyncIterator[Any]:
        """As `list`."""
        found = await in_thread(lambda: [*self.list(config, filter=filter, before=before, limit=limit)])
        for one in found:
            yield one

    async def aput(self, config: Config, checkpoint: Any, metadata: Any, new_versions: Any) -> Config:
        """As `put`."""
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await in_thread(self.delete_for_runs, run_ids)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await in_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    def close(self) -> None:
        """Flush what is pending, and close all files. The next call opens them again."""
        self.journals.close()


class _Bytes(Struct, rename={"data": "$bytes"}):
    """Bytes as `records.values` stores them."""

    data: bytes


_decode_element = json_codec.Decoder(tuple[str, _Bytes]).decode


class _Put:
    """The record of one checkpoint in the making.

    Attributes:
        values: by channel the checkpoint that stored its value, and the version.
    """

    def __init__(self, state: State, namespace: str, checkpoint_id: str, parent: str | None) -> None:
        self.values: dict[str, tuple[str, Any]] = {}
        self._state, self._namespace, self._id = state, namespace, checkpoint_id
        found = state.value(_name(_CHECKPOINTS, namespace), parent) if parent else None
        self._inherited: dict[str, Any] = found["values"] if found else {}
        self._add: list[Raw] = []
        self._new: dict[str, Any] = {}
        self._view: tuple[dict[str, Any], list[str]] = ({}, [])

    def inherits(self, channel: str, version: Any) -> bool:
        """True, and the value is that of the parent, if the parent has the same version of it."""
        found = self._inherited.get(channel)
        if found is None or found[1] != version:
            return False
        self.values[channel] = found
        return True

    def store(self, channel: str, version: Any, typed: bytes | Sequence[bytes]) -> None:
        """Store the value of a channel."""
        self.values[channel] = (self._id, version)
        stored = Raw(b'{"typed":%s}' % typed) if isinstance(typed, bytes) else self._list(channel, typed)
        self._new[_name(self._id, channel)] = stored

    def _list(self, channel: str, elements: Sequence[bytes]) -> dict[str, Any]:
        state, inherited = self._state, self._inherited.get(channel)
        base: str | None = None
        before: dict[str, Any] = {}
        if inherited is not None:
            base = _name(inherited[0], channel)
            before = state.value(_name(_VALUES, self._namespace), base) or {}
        spans: Spans = []
        if "then" in before:
            with suppress(Corrupt):  # then all elements are stored again
                spans = _elements(state, self._namespace, before)
        kept = 0
        for number, element in zip(_numbers(spans), elements, strict=False):
            if bytes(state.items.get(number, b"")) != element:
                break
            kept += 1
        first = state.next_item + len(self._add)
        self._add += [Raw(element) for element in elements[kept:]]
        then = [(first, first + len(elements) - kept - 1)] if len(elements) > kept else []
        whole = Ranges([*_first(spans, kept), *then]).below(first + len(elements))
        if channel == _MESSAGES and not self._namespace:
            self._view = showing(state.tables.get(VIEW, {}), whole)
        if len(whole) <= FEW_RANGES or before["depth"] + 1 >= SNAPSHOT_STEPS:
            return _list_of(whole)
        return {"from": base, "keep": kept, "then": then, "depth": before["depth"] + 1}

    def change(self, record: Raw) -> Change:
        """The record as one transaction."""
        changed: dict[str, dict[str, Any]] = {_name(_CHECKPOINTS, self._namespace): {self._id: record}}
        if self._new:
            changed[_name(_VALUES, self._namespace)] = self._new
        shown, unset = self._view
        if shown:
            changed[VIEW] = shown
        return Change(add=self._add, set=changed, unset={VIEW: unset} if unset else {})


def _keeping(state: State, kept: Mapping[tuple[str, str], Any]) -> Change | None:
    """The change that leaves only these checkpoints, and what they need; None if nothing goes."""
    gone = [(namespace, one) for namespace, one, _ in _checkpoints(state) if (namespace, one) not in kept]
    if not gone:
        return None
    whole: dict[str, dict[str, Any]] = {}
    standing: set[int] = set()
    needed: set[tuple[str, str]] = set()
    for (namespace, _), record in kept.items():
        table = _name(_VALUES, namespace)
        for channel, (origin, _version) in record["values"].items():
            key = _name(origin, channel)
            needed.add((table, key))
            value = state.value(table, key)
            if value and "then" in value:
                spans = _elements(state, namespace, value)
                standing.update(_numbers(spans))
                if value["from"] is not None:  # what it builds on may go
                    whole.setdefault(table, {})[key] = _list_of(spans)
    unset: dict[str, list[str]] = {}
    for namespace, one in gone:
        unset.setdefault(_name(_CHECKPOINTS, namespace), []).append(one)
        unset[_name(_WRITES, namespace, one)] = [*state.tables.get(_name(_WRITES, namespace, one), ())]
    for name, stored in state.tables.items():
        if _is_of_values(name):
            unset[name] = [key for key in stored if (name, key) not in needed]
    drop = spans_of(number for number in state.items if number not in standing)
    return Change(drop=drop, set=whole, unset={name: keys for name, keys in unset.items() if keys})


def _checkpoints(state: State) -> Iterator[tuple[str, str, Any]]:
    for namespace in _namespaces(state):
        for checkpoint_id, record in state.table(_name(_CHECKPOINTS, namespace)).items():
            yield namespace, checkpoint_id, record


def _namespaces(state: State) -> list[str]:
    """The namespaces of a thread that have checkpoints."""
    named = [json.loads(name) for name, table in state.tables.items() if name != VIEW and table]
    return [parts[1] for parts in named if parts[0] == _CHECKPOINTS]


def _list_of(spans: Spans) -> dict[str, Any]:
    """A list that builds on no other."""
    return {"from": None, "keep": 0, "then": spans, "depth": 0}


def _is_of_values(table: str) -> bool:
    return table != VIEW and json.loads(table)[0] == _VALUES


def _elements(state: State, namespace: str, stored: Mapping[str, Any]) -> Spans:
    """The numbers of the elements of a list, as ranges."""
    spans: Spans = []
    current, count = stored, state.next_item
    while True:
        spans[:0] = _first(current["then"], count - current["keep"])
        count = min(count, current["keep"])
        if (key := current["from"]) is None:
            return spans
        current = state.value(_name(_VALUES, namespace), key)
        if current is None:
            raise Corrupt(f"the list {key} that a later list builds on cannot be read", hint=_SEE_CHECK)


def _first(spans: Iterable[tuple[int, int]], count: int) -> Spans:
    """The ranges of the first numbers."""
    found: Spans = []
    for first, last in spans:
        if count <= 0:
            break
        found.append((first, min(last, first + count - 1)))
        count -= last - first + 1
    return found


def _numbers(spans: Iterable[Sequence[int]]) -> Iterator[int]:
    for first, last in spans:
        yield from range(first, last + 1)


def _renumbered(raw: Raw, numbers: Mapping[int, int]) -> Any:
    value = decode_value(bytes(raw))
    if "then" not in value:
        return raw
    return {**value, "then": spans_of(numbers[one] for one in _numbers(value["then"]))}


def _named(config: Config) -> tuple[str, str]:
    configurable = config["configurable"]
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> Config:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


_encode_name = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _name(*parts: Any) -> str:
    """The name of a table, or a key in one."""
    return _encode_name(parts)
