"""A checkpointer for LangGraph that survives crashes and many processes, for synchronous and asynchronous graphs.

    from sessionary.plugs.langgraph import DurableSaver

    graph = builder.compile(checkpointer=DurableSaver())

A thread is one journal. Each element of a list in the state is stored once, and a list as references to its elements.
So a step writes what it added, not the whole state.
"""

# The framework is in an environment of its own, not in that of the type checker.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import random
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

from sessionary.layouts.records import checkpoints
from sessionary.layouts.records.checkpoints import Place, Serialised, checkpoint_at, places
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.names import LANGGRAPH
from sessionary.layouts.records.state import State
from sessionary.plugs.storing import Journals, awaitable, in_thread

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
        wanted = get_checkpoint_id(config)

        def find(state: State) -> Any:
            found = Place(namespace, wanted) if wanted else next(places(state, namespace), None)
            return None if found is None else self._tuple(state, thread_id, found)

        return self._journal(thread_id).read(find)

    def list(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - its name in LangGraph
        before: Config = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """Checkpoints, the newest of each namespace first; of all threads if no configuration is given."""
        named = config["configurable"] if config else {}
        wanted, end = (filter or {}).items(), get_checkpoint_id(before) if before else None
        most = None if limit is None else max(limit, 0)

        def listed(thread_id: str, state: State) -> Sequence[Any]:
            found = (
                self._tuple(state, thread_id, place)
                for place in places(state, named.get("checkpoint_ns"))
                if named.get("checkpoint_id") in (None, place.name) and (not end or place.name < end)
            )
            matching = (one for one in found if all(one.metadata.get(key) == value for key, value in wanted))
            return [*islice(matching, most)]

        threads = [_named(config)[0]] if config else [one for one, _ in self.journals.sessions()]
        found = (one for name in threads for one in self._journal(name).read(partial(listed, name)))
        return islice(found, most)

    def _tuple(self, state: State, thread_id: str, place: Place) -> Any:
        stored = checkpoint_at(state, place)
        if stored is None:
            return None
        loads, parent = self.serde.loads_typed, stored["parent"]
        values = checkpoints.values_at(state, place, loads)
        return CheckpointTuple(
            config=_config(thread_id, *place),
            checkpoint={**loads(tuple(stored["checkpoint"])), "channel_values": values},
            metadata=loads(tuple(stored["metadata"])),
            parent_config=_config(thread_id, place.namespace, parent) if parent else None,
            pending_writes=self._writes(state, place),
        )

    def _writes(self, state: State, place: Place) -> Sequence[Any]:
        rows = checkpoints.writes_at(state, place)
        rows.sort(key=lambda row: writes_sort_key(row[5], row[0], row[1]))
        loads = self.serde.loads_typed
        return [(task_id, channel, loads((kind, data))) for task_id, _, channel, kind, data, _ in rows]

    # -- writing

    def put(self, config: Config, checkpoint: Any, metadata: Any, new_versions: Mapping[str, Any]) -> Config:
        """Store a checkpoint: what its channels hold, as far as the parent does not hold the same.

        Durability: that of the saver; see the class.

        Raises:
            Locked: another process holds the thread.
            StorageFailed: the system denied the write; `outcome` states whether the checkpoint may be stored.
        """
        thread_id, namespace = _named(config)
        rest = dict(checkpoint)
        values = rest.pop("channel_values")
        described = get_checkpoint_metadata(config, metadata)
        described.update({key: value for key, value in metadata.items() if isinstance(value, str)})
        changed = {
            channel: self._serialised(values[channel]) for channel in new_versions if channel in values
        }
        fields = {"checkpoint": self._element(rest), "metadata": self._element(described)}
        place, parent = Place(namespace, checkpoint["id"]), config["configurable"].get("checkpoint_id")

        def decide(state: State) -> Change:
            versions = checkpoint["channel_versions"]
            return checkpoints.put(
                state, place, parent, values, versions, changed, self._serialised, **fields
            )

        self._journal(thread_id).change(decide)
        return _config(thread_id, *place)

    def _serialised(self, value: Any) -> Serialised:
        """A value as it is stored; of a list each element by itself."""
        return [*map(self._element, value)] if type(value) is list else self._element(value)

    def _element(self, value: Any) -> bytes:
        return checkpoints.typed(*self.serde.dumps_typed(value))

    def put_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote before its step ended. A repeated write of a task counts once.

        Durability: that of the saver; see the class.
        """
        thread_id, namespace = _named(config)
        place = Place(namespace, config["configurable"]["checkpoint_id"])
        rows = {
            (task_id, WRITES_IDX_MAP.get(channel, index)): (channel, self._element(value), task_path)
            for index, (channel, value) in enumerate(writes)
        }
        self._journal(thread_id).change(lambda state: checkpoints.put_writes(state, place, rows))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread. A missing one is not an error."""
        self._journal(thread_id).delete()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs in all threads, with their pending writes."""
        gone = set(run_ids)

        def decide(state: State) -> Change | None:
            kept = [one for one in places(state) if self._metadata(state, one).get("run_id") not in gone]
            return checkpoints.keep(state, kept)

        for thread_id, _ in [*self.journals.sessions()]:
            self._journal(thread_id).change(decide)

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
                self._journal(thread_id).change(self._latest)

    def _latest(self, state: State) -> Change | None:
        newest = [next(places(state, namespace)) for namespace in checkpoints.namespaces(state)]
        deltas = [self._metadata(state, place).get(_DELTAS) or () for place in newest]
        lineages = map(partial(checkpoints.lineage, state), newest, deltas)
        return checkpoints.keep(state, {place for lineage in lineages for place in lineage})

    def _metadata(self, state: State, place: Place) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.serde.loads_typed(tuple(checkpoint_at(state, place)["metadata"]))
        return found

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and pending writes of a thread to another one."""
        items, tables = self._journal(source_thread_id).read(
            lambda state: (dict(state.items), {name: dict(rows) for name, rows in state.tables.items()})
        )
        if tables:
            self._journal(target_thread_id).change(partial(checkpoints.copied, items, tables))

    def _journal(self, thread_id: object) -> RecordJournal:
        return self.journals.of(str(thread_id))

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


def _named(config: Config) -> tuple[str, str]:
    configurable = config["configurable"]
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> Config:
    named = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": named}
