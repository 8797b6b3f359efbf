"""Histories of real processes: four that leave messages, four that apply them, and SIGKILL for all of them.

A killed process is replaced. In the end a last consumer applies what is left, and then the log is held against the
files: every message is there exactly once. What a producer got as a result is there; what a consumer got was in the
log when it got it. Where one process works at a time, each of its rounds was in order.
"""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox
from tests.messages import echo, log
from tests.support.torture import Worker, start

pytestmark = pytest.mark.lane("sigkill")

SOAK = bool(os.environ.get("SESSIONARY_SOAK"))
PRODUCERS = CONSUMERS = 4
KILLS = 400 if SOAK else 16
MESSAGES = 400 if SOAK else 30  # of each life of a producer

PRODUCER = """
import sys, time
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from tests.support.torture import ack, spec
me = spec()
for count in range(int(sys.argv[2])):
    crumb = create_breadcrumb(f"{me.number}.{me.run}.{count}", "x" * (me.seed * count % 5000), [], [], None,
                              count % 2, "sonnet", {})
    write_crumb(sys.argv[1], crumb)
    ack(crumb.breadcrumb_id)
"""

CONSUMER = """
import os, random, sys, time
from sessionary import Locked, Mailbox
from tests.support.torture import ack, spec
me = spec()
rng = random.Random(me.seed)
mailbox = Mailbox(sys.argv[1], shared=sys.argv[2] == "shared")
who = f"{me.number}.{me.run}"
turn = 0

def handle(crumb):
    if rng.random() < 0.05:
        time.sleep(rng.random() * 0.01)
    if rng.random() < 0.02:
        raise RuntimeError("fails now and then")
    return {"prompt": crumb.prompt, "who": who, "turn": turn, "at": crumb.timestamp, "depth": crumb.depth_level}

while not os.path.exists(os.path.join(sys.argv[1], "stop")):
    turn += 1
    try:
        report = mailbox.consume(handle, limit=rng.randint(1, 40), timeout=0.05, max_attempts=1000)
    except Locked:
        continue
    if report.applied:
        ack([turn, report.applied])
    time.sleep(0.001)
"""


class History:
    """Workers by number, the killed ones too."""

    def __init__(self, session: Path, mode: str, seed: int) -> None:
        self.session = session
        self.mode = mode
        self.rng = random.Random(seed)
        self.lives: Counter[int] = Counter()
        self.all: list[Worker] = []
        self.running = {number: self.begin(number) for number in range(PRODUCERS + CONSUMERS)}

    def begin(self, number: int) -> Worker:
        produces = number < PRODUCERS
        arguments = [str(self.session), str(MESSAGES) if produces else self.mode]
        run = self.lives[number]
        self.lives[number] += 1
        seed = self.rng.getrandbits(32)
        worker = start(PRODUCER if produces else CONSUMER, arguments, number=number, run=run, seed=seed)
        self.all.append(worker)
        return worker

    def kill_one(self) -> None:
        victim = self.running[self.rng.randrange(len(self.running))]
        victim.wait_for_acks(len(victim.acks) + self.rng.randint(0, 3), timeout=1.0)
        time.sleep(self.rng.uniform(0, 0.01))
        victim.kill()
        self.running[victim.number] = self.begin(victim.number)

    def end(self) -> None:
        try:
            for number in range(PRODUCERS):
                self.running[number].finish()
            (self.session / "stop").touch()
            for number in range(PRODUCERS, PRODUCERS + CONSUMERS):
                self.running[number].finish()
        finally:
            for worker in self.running.values():
                worker.kill()


def messages_of(session: Path) -> dict[str, str]:
    """Every message that is there: id and ``<depth>/<name>``."""
    return {
        json.loads(path.read_bytes())["breadcrumb_id"]: f"{path.parent.name}/{path.name}"
        for path in (session / "breadcrumbs").glob("*/*.json")
    }


@pytest.mark.timeout(1800 if SOAK else 120)
@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_killed_producers_and_consumers_lose_nothing_and_double_nothing(mode: str, tmp_path: Path) -> None:
    history = History(tmp_path, mode, seed=11)
    for _ in range(KILLS):
        history.kill_one()
    history.end()
    Mailbox(tmp_path).consume(lambda crumb: {**echo(crumb), "who": "last", "turn": 0})
    records = log(tmp_path)
    there = messages_of(tmp_path)
    assert Counter(record["breadcrumb_id"] for record in records) == dict.fromkeys(there, 1)
    assert {record["breadcrumb_id"]: record["file"] for record in records} == there
    promised = {known for worker in history.all if worker.number < PRODUCERS for known in worker.acks}
    assert promised <= set(there)
    assert len(promised) >= PRODUCERS * MESSAGES
    check_acknowledged(history, records)
    if mode == "exclusive":
        check_order(records)


def check_acknowledged(history: History, records: list[dict[str, Any]]) -> None:
    """The log has as many lines of each round as its consumer was given."""
    written = Counter((record["result"]["who"], record["result"]["turn"]) for record in records)
    reported = 0
    for worker in history.all:
        if worker.number >= PRODUCERS:
            for turn, applied in worker.acks:
                assert written[f"{worker.number}.{worker.run}", turn] == applied
                reported += applied
    assert reported > 0


def check_order(records: list[dict[str, Any]]) -> None:
    """One process works at a time: rounds do not mix, and each applied its messages in order."""
    rounds: list[tuple[tuple[str, int], list[str]]] = []
    for record in records:
        who = (record["result"]["who"], record["result"]["turn"])
        if not rounds or rounds[-1][0] != who:
            rounds.append((who, []))
        depth, name = record["file"].split("/")
        rounds[-1][1].append(f"{name} {depth}")
    assert len({who for who, _ in rounds}) == len(rounds)
    assert all(files == sorted(files) for _, files in rounds)
