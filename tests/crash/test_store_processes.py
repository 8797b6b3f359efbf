"""Real processes on real disks: killed, full, and eight at once."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from sessionary.codec import read_lines
from sessionary.layouts.amplifier.store import SessionStore
from tests.lanes import run_on_tiny_disk
from tests.support.original import load_transcript
from tests.support.torture import start, torture

SOAK = 10 if os.environ.get("SESSIONARY_SOAK") else 1
META = {"session_id": "s", "created": "2025-01-31T12:00:00.000Z", "bundle": "bundle:x"}

APPENDER = """
import random, sys
from sessionary import SessionStore
from tests.support.torture import ack, spec
me = spec()
store = SessionStore(sys.argv[1])
rng = random.Random(me.seed)
for count in range(int(sys.argv[2])):
    name = f"{me.number}.{me.run}.{count}"
    pad = "x" * rng.choice([1, 10, 300, 4000, 70_000])
    store.append("s", [{"role": "user", "content": name, "pad": pad}])
    ack(name)
"""

SAVER = """
import sys
from sessionary import SessionStore
from tests.support.torture import ack, spec
me = spec()
store = SessionStore(sys.argv[1])
session = f"own{me.number}"
messages = store.load(session)[0] if store.exists(session) else []
for count in range(int(sys.argv[2])):
    messages.append({"role": "user", "content": f"{me.run}.{count}", "pad": "x" * 3000})
    if count % 7 == 3:
        messages[0] = {**messages[0], "edited": count}
    store.save(session, messages, {"session_id": session, "created": "t", "bundle": "b", "turn_count": len(messages)})
    ack([session, len(messages), f"{me.run}.{count}"])
"""


@pytest.mark.lane("sigkill")
def test_killed_appenders_lose_nothing_and_tear_nothing(tmp_path: Any) -> None:
    base = tmp_path / "sessions"
    promises = torture(APPENDER, [str(base), "25"], workers=4, kills=10 * SOAK, seed=1)
    messages = SessionStore(base).load("s")[0]
    found = Counter(message["content"] for message in messages)
    owed = {promise.value for promise in promises}
    assert owed <= set(found)
    assert set(found.values()) == {1}
    orders = defaultdict(list)
    for message in messages:
        worker, count = message["content"].rsplit(".", 1)
        orders[worker].append(int(count))
    assert all(order == sorted(order) for order in orders.values())
    store = SessionStore(base)
    store.append("s", [{"role": "user", "content": "after"}])
    assert load_transcript(base / "s")[-1]["content"] == "after"


@pytest.mark.lane("sigkill")
def test_killed_savers_keep_what_was_acknowledged(tmp_path: Any) -> None:
    base = tmp_path / "sessions"
    promises = torture(SAVER, [str(base), "20"], workers=3, kills=9 * SOAK, seed=2)
    store = SessionStore(base)
    for session in sorted({promise.value[0] for promise in promises}):
        messages, metadata, report = store.load_with_report(session)
        contents = [message["content"] for message in messages]
        assert not [p for p in report.problems if p.code not in ("torn_tail", "missing_newline")]
        for promise in promises:
            if promise.value[0] == session:
                assert promise.value[2] in contents
        assert metadata["turn_count"] <= len(messages)  # metadata is never ahead of the transcript


HUGE = """
import json, random, sys
from sessionary import SessionStore
from tests.support.torture import ack, spec
me = spec()
store = SessionStore(sys.argv[1], durability="none")
rng = random.Random(me.number)
sizes = [1, 2, 100, 5_000, 300_000] * 3 + ([20_000_000] if me.number % 4 == 0 else [2_000_000])
rng.shuffle(sizes)
for count, size in enumerate(sizes):
    store.append("s", [{"role": "user", "content": f"{me.number}.{count}", "size": size, "pad": "y" * size}])
    ack([f"{me.number}.{count}", size])
"""


@pytest.mark.timeout(300)
def test_eight_processes_with_lines_up_to_20_mb_and_a_tailing_reader(tmp_path: Any) -> None:
    base = tmp_path / "sessions"
    path = base / "s" / "transcript.jsonl"
    workers = [start(HUGE, [str(base)], number=number) for number in range(8)]
    offset = reads = 0
    try:
        while any(worker.process.poll() is None for worker in workers):
            offset += _read_whole_lines(path, offset)
            reads += 1
        for worker in workers:
            worker.finish()
    finally:
        for worker in workers:
            worker.kill()
    offset += _read_whole_lines(path, offset)
    assert reads > 1
    assert offset == path.stat().st_size
    found = {(m["content"], len(m["pad"])) for m in SessionStore(base).load("s")[0]}
    assert found == {tuple(value) for worker in workers for value in worker.acks}
    assert len(found) == 8 * 16


def _read_whole_lines(path: Any, offset: Any) -> Any:
    """Read what is behind `offset` as a follower does: whole lines only, each of which must be a whole record."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return 0
    end = data.rfind(b"\n") + 1
    reading = read_lines(data[:end])
    assert not reading.problems
    assert all(len(value["pad"]) == value["size"] for value in reading.values)
    return end


FULL = """
import json, os, sys
from pathlib import Path
from sessionary import EventsLog, SessionStore
from sessionary.errors import StorageFailed
base = Path(sys.argv[1], "sessions")
store = SessionStore(base)
messages, refused = [], 0
for count in range(400):
    messages.append({"role": "user", "content": str(count), "timestamp": "t", "pad": "x" * 2000})
    try:
        store.save("s", messages, {"session_id": "s", "created": "t", "bundle": "b", "turn_count": count})
    except StorageFailed as error:
        assert error.errno == 28, error
        assert "full" in error.hint
        if error.details.get("stored") == ["transcript.jsonl"]:
            assert error.outcome == "unknown", error.outcome
        else:
            assert error.outcome == "not_committed", error.outcome
            messages.pop()
        refused += 1
        if refused == 3:
            break
try:
    with EventsLog(base / "s", durability="full") as log:
        for count in range(1000):
            log.append({"event": "x", "data": "y" * 500})
except StorageFailed:
    refused += 1
kept, _, report = store.load_with_report("s")
os.unlink(Path(sys.argv[1], "ballast"))
store.append("s", [{"role": "user", "content": "after", "timestamp": "t"}])
after = SessionStore(base).load("s")[0]
print(json.dumps([
    refused, [m["content"] for m in kept] == [m["content"] for m in messages], len(kept) > 10,
    [p.code for p in report.problems], after[-1]["content"], len(after) - len(kept),
    [n for n in os.listdir(base / "s") if n.endswith(".tmp")]]))
"""


@pytest.mark.lane("disk-full")
def test_a_full_disk_is_said_loses_nothing_and_works_again_with_space(tmp_path: Any) -> None:
    prepare = "import sys; open(sys.argv[1] + '/ballast', 'wb').write(b'x' * 65536)\n"
    result = run_on_tiny_disk(prepare + FULL, tmp_path, size="512k")
    assert result.returncode == 0, result.stderr
    refused, same, some, problems, last, more, temps = json.loads(result.stdout)
    assert refused >= 3
    assert same
    assert some
    assert problems == []
    assert (last, more) == ("after", 1)
    assert temps == []


def test_batched_events_survive_a_kill_of_the_process(tmp_path: Any) -> None:
    code = (
        "import sys, os, signal; from sessionary import EventsLog\n"
        "log = EventsLog(sys.argv[1])\n"
        "for n in range(10): log.append({'event': 'x', 'n': n})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=False)
    lines = Path(tmp_path, "s", "events.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(10))
