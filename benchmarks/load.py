"""What reading a conversation costs over decoding its lines."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, timed
from benchmarks.samples import messages, write_session
from sessionary import SessionStore

ROUNDS = 31


def _load(place: Path) -> list[Measurement]:
    write_session(place / "session", messages(10_000))
    lines = (place / "session" / "transcript.jsonl").read_bytes().splitlines()
    store = SessionStore(place)
    decode = msgspec.json.Decoder().decode
    ours = timed(lambda: store.load("session"))
    floor = timed(lambda: [decode(line) for line in lines])
    return [compared(*by_turns([ours, floor], ROUNDS))]


BENCHMARKS = (
    Benchmark(
        "load", (Row("load of 10,000 messages", "msgspec decode of the same lines", Limit(1.5)),), _load
    ),
)
