"""Journals of records under real processes: two and eight at once, killed; and a disk that is full."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from sessionary.layouts.records.journal import RecordJournal
from tests.lanes import run_on_tiny_disk
from tests.support.torture import torture

SOAK = 10 if os.environ.get("SESSIONARY_SOAK") else 1

WRITER = """
import random, sys
from sessionary.layouts.records.journal import Change, RecordJournal
from tests.support.torture import ack, spec
me = spec()
one = RecordJournal(sys.argv[1], "openai-agents", "one")
rng = random.Random(me.seed)
for count in range(int(sys.argv[2])):
    name = f"{me.number}.{me.run}.{count}"
    pad = "x" * rng.choice([1, 10, 300, 4000, 70_000, 300_000])
    def decide(state):
        total = (state.value("t", "total") or 0) + 1
        dropped = [state.keys[name] for name in sorted(state.keys) if name.startswith(f"junk{me.number}.")]
        return Change(
            add=[[name, len(pad)], pad], keys=[name, f"junk{name}"], drop=[(n, n) for n in dropped],
            set={"t": {"total": total}},
        )
    one.change(decide)
    ack(name)
"""


@pytest.mark.lane("sigkill")
@pytest.mark.parametrize("workers", [2, 8])
def test_killed_writers_lose_nothing_and_repeat_nothing(workers: int, tmp_path: Path) -> None:
    promises = torture(WRITER, [str(tmp_path), "20"], workers=workers, kills=5 * workers * SOAK, seed=workers)
    one = RecordJournal(tmp_path, "openai-agents", "one", durability="none")
    values, total = one.read(lambda state: (state.values(), state.value("t", "total")))
    names = [value[0] for value in values if isinstance(value, list)]
    assert {promise.value for promise in promises} <= set(names)
    assert set(Counter(names).values()) == {1}
    assert total == len(names)  # each decision was made on the newest state
    orders = defaultdict(list)
    for name in names:
        worker, count = name.rsplit(".", 1)
        orders[worker].append(int(count))
    assert all(order == sorted(order) for order in orders.values())
    records = [json.loads(line) for line in Path(one.path).read_bytes().splitlines()]
    assert [record["n"] for record in records] == list(range(len(records)))
    assert one.skipped == []


FULL = """
import json, os, sys
from pathlib import Path
from sessionary.errors import StorageFailed
from sessionary.layouts.records.journal import Change, RecordJournal
folder = Path(sys.argv[1], "f")
one = RecordJournal(folder, "openai-agents", "one")
stored, outcomes = [], []
for count in range(400):
    try:
        one.change(lambda state: Change(add=[[count, "x" * 2000]]))
        stored.append(count)
    except StorageFailed as error:
        assert error.errno == 28 and "full" in error.hint, error
        outcomes.append(error.outcome)
        if len(outcomes) == 3:
            break
def read():
    return [value[0] for value in RecordJournal(folder, "openai-agents", "one").state().values()]
kept = read()
os.unlink(Path(sys.argv[1], "ballast"))
one.change(lambda state: Change(add=[["after", ""]]))
print(json.dumps([outcomes, kept == stored, len(stored) > 10, read() == [*stored, "after"], os.listdir(folder)]))
"""


@pytest.mark.lane("disk-full")
def test_a_full_disk_loses_nothing_and_works_again_with_space(tmp_path: Path) -> None:
    prepare = "import sys; open(sys.argv[1] + '/ballast', 'wb').write(b'x' * 65536)\n"
    result = run_on_tiny_disk(prepare + FULL, tmp_path, size="256k")
    assert result.returncode == 0, result.stderr
    outcomes, same, some, after, names = json.loads(result.stdout)
    assert outcomes == ["not_committed"] * 3
    assert (same, some, after) == (True, True, True)
    assert sorted(names) == ["one.records", "one.records.lock"]
