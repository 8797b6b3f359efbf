"""A turn of an agent, beside the session stores of two agent frameworks: read the context, append two messages."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import (
    Benchmark,
    Limit,
    Measurement,
    Row,
    Work,
    by_turns,
    in_words,
    ratio,
    settle,
    timed,
)
from benchmarks.samples import messages, write_session
from sessionary import SessionStore

LENGTHS = (10, 1_000, 10_000)
TURNS = {10: 2, 1_000: 10, 10_000: 2}
ROUNDS = {10: 31, 1_000: 7, 10_000: 5}

Messages = Sequence[dict[str, Any]]
Turn = Callable[[Messages], object]
"""Reads the whole context and appends these messages to it."""


def _ours(place: Path, before: Messages) -> tuple[Turn, str]:
    write_session(place / "session", before)
    store = SessionStore(place)

    def turn(new: Messages) -> None:
        store.load("session")
        store.append("session", new)

    return turn, "transcript: fdatasync"


def _agents(place: Path, before: Messages, loop: asyncio.AbstractEventLoop) -> tuple[Turn, str]:
    from agents import SQLiteSession

    session: Any = SQLiteSession("session", place / "agents.db")
    loop.run_until_complete(session.add_items(list(before)))

    async def both(new: Messages) -> None:
        await session.get_items()
        await session.add_items(list(new))

    with session._locked_connection() as connection:
        syncs = _syncs(connection)
    return lambda new: loop.run_until_complete(both(new)), syncs


def _langgraph(place: Path, before: Messages) -> tuple[Turn, str]:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(place / "langgraph.db", check_same_thread=False)
    saver: Any = SqliteSaver(connection)
    config: Any = {"configurable": {"thread_id": "session", "checkpoint_ns": ""}}

    def store(conversation: list[Any], step: int) -> None:
        checkpoint = {**empty_checkpoint(), "channel_values": {"messages": conversation}}
        saver.put(config, checkpoint, {"source": "loop", "step": step}, {})

    def turn(new: Messages) -> None:
        found: Any = saver.get_tuple(config)
        conversation = found.checkpoint["channel_values"]["messages"]
        store([*conversation, *new], len(conversation))

    store(list(before), 0)
    return turn, _syncs(connection)


def _syncs(connection: sqlite3.Connection) -> str:
    """What SQLite flushes at a commit, by its own words."""
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    return f"SQLite journal_mode={mode} synchronous={['off', 'normal', 'full', 'extra'][level]}"


def _turns(place: Path, length: int) -> list[Measurement]:
    before, fresh = messages(length), messages(300, seed=1)
    loop = asyncio.new_event_loop()
    makers: list[Callable[[Path, Messages], tuple[Turn, str]]] = [
        _ours,
        lambda folder, found: _agents(folder, found, loop),
        _langgraph,
    ]
    syncs: list[str] = []
    works = [_work(place / str(number), make, before, fresh, syncs) for number, make in enumerate(makers)]
    ours, *theirs = by_turns(works, ROUNDS[length])
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    own = f"{in_words(median(ours) / TURNS[length])} [{syncs[0]}]"
    return [
        Measurement(ratio(ours, other), f"{own} : {in_words(median(other) / TURNS[length])} [{syncs[place]}]")
        for place, other in enumerate(theirs, 1)
    ]


def _work(
    place: Path,
    make: Callable[[Path, Messages], tuple[Turn, str]],
    before: Messages,
    fresh: Messages,
    syncs: list[str],
) -> Work:
    """Rounds of turns; a short session is made anew for each round, since it does not stay short."""
    rounds = itertools.count()
    supply = itertools.cycle(itertools.pairwise(fresh))
    turn: Turn | None = None

    def once() -> float:
        nonlocal turn
        number = next(rounds)
        if turn is None or len(before) < 1000:
            folder = place / str(number)
            folder.mkdir(parents=True)
            turn, words = make(folder, before)
            if not number:
                syncs.append(words)
            turn(next(supply))  # opens what is kept open
        batch = list(itertools.islice(supply, TURNS[len(before)]))
        settle()
        return timed(lambda: [turn(pair) for pair in batch])()

    return once


def _benchmark(length: int) -> Benchmark:
    rows = tuple(
        Row(f"turn (read context + append) at {length:,} messages", peer, Limit(1))
        for peer in ("openai-agents SQLiteSession", "langgraph SqliteSaver")
    )
    return Benchmark(f"turn-{length}", rows, lambda place: _turns(place, length))


BENCHMARKS = tuple(map(_benchmark, LENGTHS))
