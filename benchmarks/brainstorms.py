"""What brainstorm sessions cost over PyYAML's C reader and writer, which do not check, lock or flush."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness import Benchmark, Limit, Measurement, Row, by_turns, compared, settle, timed
from sessionary import BrainstormStore
from sessionary.codec.yaml_write import dump_yaml

SESSIONS = 2_000
SIZE = 200_000
ROUNDS = 7


def _document(slug: str, size: int) -> dict[str, Any]:
    """A session of about so many bytes: iterations of three questions and three answers each."""
    question = "Quelle contrainte compte le plus ici, et pour qui?"
    answer = "La lisibilité d'abord; le reste se mesure, et se corrige, une fois que l'ensemble tient debout."
    history = [
        {
            "iteration": number,
            "phase": "divergent",
            "ems": min(100, 20 + number),
            "ems_delta": 1,
            "questions": [f"{question} ({number})"] * 3,
            "responses": [answer] * 3,
            "timestamp": "2026-01-09T10:30:00Z",
        }
        for number in range(1, max(2, size // 683))
    ]
    last = history[-1]
    session = {
        "id": f"{slug}-2026-01-09",
        "slug": slug,
        "status": "in_progress",
        "phase": "divergent",
        "mode": "standard",
        "ems": last["ems"],
        "persona": "architecte",
        "iteration": last["iteration"],
        "started_at": "2026-01-09T10:30:00Z",
        "duration_minutes": 30,
        "ideas": [],
        "history": history,
        "last_question": question,
        "created": "2026-01-09T10:30:00Z",
        "updated": "2026-01-09T11:00:00Z",
    }
    return {"format_version": "1.2", "session": session}


def _one_session(place: Path) -> list[Measurement]:
    store = BrainstormStore(place)
    store.create("large")
    path = Path(store.path("large"))
    path.write_bytes(dump_yaml(_document("large", SIZE)))
    session = store.load("large")
    number = 0

    def save() -> None:
        nonlocal number
        number += 1
        session.session["last_question"] = f"Question {number}?"
        if not store.save(session):
            raise RuntimeError("nothing was saved")

    def load_and_dump() -> None:
        value = yaml.load(path.read_bytes(), yaml.CSafeLoader)
        yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)

    settle()
    loaded, read, saved, written = by_turns(
        [
            timed(lambda: store.load("large")),
            timed(lambda: yaml.load(path.read_bytes(), yaml.CSafeLoader)),
            timed(save),
            timed(load_and_dump),
        ],
        ROUNDS,
    )
    return [compared(loaded, read), compared(saved, written)]


def _many_sessions(place: Path) -> list[Measurement]:
    store = BrainstormStore(place)
    os.makedirs(store.folder)
    for number in range(SESSIONS):
        slug = f"session-{number}"
        Path(store.path(slug)).write_bytes(dump_yaml(_document(slug, 3_600)))
    settle()

    def listed() -> None:
        rows = list(store.list())
        if len(rows) != SESSIONS or not all(row.health == "ok" for row in rows):
            raise RuntimeError("the list is not right")

    def read_all() -> None:
        for entry in os.scandir(store.folder):
            yaml.load(Path(entry.path).read_bytes(), yaml.CSafeLoader)

    ours, theirs = by_turns([timed(listed), timed(read_all)], 3)
    return [compared(ours, theirs)]


_READ = "read + PyYAML's C safe load"

BENCHMARKS = (
    Benchmark(
        "brainstorm",
        (
            Row(f"load a brainstorm session of {SIZE // 1000} kB, checked", _READ, Limit(1.5)),
            Row("save it, changed, durably", f"{_READ} + C dump, nothing written", Limit(3)),
        ),
        _one_session,
    ),
    Benchmark(
        "brainstorms",
        (Row(f"list {SESSIONS:,} brainstorm sessions of 3 kB, checked", _READ, Limit(1.5)),),
        _many_sessions,
    ),
)
