"""A watch ends when it is stopped, at whatever moment that comes."""

import random
import signal
import time

import pytest

from sessionary.workspace.sync_watch import Stop


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of this kind")
def test_a_signal_in_any_moment_of_a_wait_ends_it() -> None:
    fate = random.Random(3)
    before = signal.getsignal(signal.SIGALRM)
    try:
        for _ in range(1500):
            with Stop() as stop:
                signal.signal(signal.SIGALRM, lambda number, frame, stop=stop: stop.set())  # type: ignore[misc]
                signal.setitimer(signal.ITIMER_REAL, fate.uniform(1e-5, 4e-4))
                while not stop.is_set():
                    stop.wait(1e-5)
                assert stop.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_earlier_events_do_not_delay_the_wait() -> None:
    with Stop() as stop:
        stop.set()
        stop.set()
        begun = time.monotonic()
        stop.wait(60)
        assert time.monotonic() - begun < 30
