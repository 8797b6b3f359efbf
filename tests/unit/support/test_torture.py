"""Real workers: acknowledged data survives kills, and their errors are reported."""

import os
from pathlib import Path

import pytest

from tests.support.torture import Promise, start, torture

COUNT = """
import sys
from tests.support.torture import ack, spec
me = spec()
for count in range(int(sys.argv[1])):
    ack([me.number, me.run, count])
"""

HANG = """
import time
from tests.support.torture import ack
ack("ready")
time.sleep(600)
"""

APPEND = """
import os, sys
from tests.support.torture import ack, spec
me = spec()
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
for count in range(300):
    os.write(fd, f"{me.number} {me.run} {count}\\n".encode())
    ack(count)
"""

pytestmark = pytest.mark.lane("sigkill")


def test_a_worker_says_what_it_was_promised() -> None:
    worker = start(COUNT, ["3"], number=7, run=2)
    worker.finish()
    assert worker.acks == [[7, 2, 0], [7, 2, 1], [7, 2, 2]]
    assert not worker.wait_for_acks(4, 1)


def test_the_acknowledgments_of_a_killed_worker_are_kept() -> None:
    worker = start(HANG)
    assert worker.wait_for_acks(1)
    worker.kill()
    assert worker.acks == ["ready"]
    assert worker.process.returncode == -9


def test_a_failing_worker_is_reported() -> None:
    worker = start("raise SystemExit('the reason why')")
    with pytest.raises(AssertionError, match="the reason why"):
        worker.finish()


def test_a_worker_that_hangs_is_ended() -> None:
    worker = start(HANG)
    with pytest.raises(AssertionError, match="did not end"):
        worker.finish(0.01)
    assert worker.process.returncode == -9


def test_killed_workers_are_replaced_and_nothing_acknowledged_is_forgotten(tmp_path: Path) -> None:
    log = tmp_path / "log"
    promises = torture(APPEND, [str(log)], workers=2, kills=4, seed=1)
    written = set(log.read_text().splitlines())
    assert {f"{promise.number} {promise.run} {promise.value}" for promise in promises} <= written
    assert {promise.number for promise in promises} == {0, 1}
    for number in (0, 1):  # the last one of each number was not killed
        last = max(promise.run for promise in promises if promise.number == number)
        assert Promise(number, last, 299) in promises
    assert sum(1 for _ in os.listdir(tmp_path)) == 1


def test_an_error_of_a_worker_ends_the_torture() -> None:
    with pytest.raises(AssertionError, match="broken"):
        torture("raise SystemExit('broken')", workers=2, kills=0)
