"""Cosmos DB: what a turn costs in request units, beside the upsert of the whole transcript that is often written first.

Both are priced by the table that Microsoft publishes: ours by the double of the service, request for request, theirs
by the sizes that the transcript has after each turn. An account charges something near it; no account was charged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import Benchmark, Limit, Measurement, Row
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.engine import Engine
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.retry import Cost
from tests.support.cosmos_double import CosmosDouble
from tests.support.request_units import LARGEST, replace_ru

TURNS = 200
MESSAGES = 8
TOGETHER = 3
WORDS = 1_500


def turns() -> Iterator[bytes]:
    """The lines that each turn adds: 200 turns of eight messages, about 3 MB, of words that repeat as words do."""
    chance = random.Random(2025)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 11))) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    for _ in range(TURNS):
        lines = []
        for role in ("user", "assistant", *("tool", "assistant") * 3):
            text = " ".join(chance.choices(words, weights, k=chance.randint(80, 396)))
            lines.append(json.dumps({"role": role, "content": text}).encode() + b"\n")
        yield b"".join(lines)


def upserts() -> tuple[float, int]:
    """Request units per turn, up to the turn at which the transcript does not fit into an item any more; and that."""
    total, size, count = 0.0, 0, 0
    for lines in turns():
        if size + len(lines) > LARGEST:
            break
        total += replace_ru(size, size + len(lines))
        size += len(lines)
        count += 1
    return total / count, count


def pushed(folder: Path) -> tuple[Cost, int]:
    """What 200 turns cost that are pushed three at a time, and the bytes of the transcript."""
    session = folder / "home" / "projects" / "-work" / "sessions" / "one"
    session.mkdir(parents=True)
    (session / "metadata.json").write_text(json.dumps({"session_id": "one", "turn_count": 0}))
    total = Cost()
    with CosmosDouble() as double:
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", key=double.key), tenant="me")
        remote.prepare()
        engine = Engine(AmplifierSyncLayout(folder / "home"), remote, state_dir=folder / "state", quiet=0)
        for number, lines in enumerate(turns(), start=1):
            with open(session / "transcript.jsonl", "ab") as file:
                file.write(lines)
            if number % TOGETHER == 0 or number == TURNS:
                (session / "metadata.json").write_text(
                    json.dumps({"session_id": "one", "turn_count": number})
                )
                cost = engine.push().cost
                total.requests += cost.requests
                total.bytes_up += cost.bytes_up
                total.ru += cost.ru
        remote.close()
    return total, (session / "transcript.jsonl").stat().st_size


def _measure(folder: Path) -> Sequence[Measurement]:
    theirs, until = upserts()
    ours, size = pushed(folder)
    per_turn = ours.ru / TURNS
    work = f"{ours.requests} requests for {size / 1e6:.1f} MB"
    return (
        Measurement(per_turn / theirs, f"{per_turn:.1f} RU : {theirs:.0f} RU, up to turn {until}; {work}"),
    )


BENCHMARKS = (
    Benchmark(
        "sync-cosmos",
        (
            Row(
                f"{TURNS} turns pushed to Cosmos DB three at a time: RU per turn",
                "upsert of the whole transcript, up to the turn at which it hits 2 MB",
                Limit(1 / 50),
            ),
        ),
        _measure,
    ),
)
