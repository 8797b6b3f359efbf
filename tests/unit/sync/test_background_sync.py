"""When the background goes: after the quiet, at a bulk, late at most; and what it does without an answer."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sessionary.sync import background_sync as rules
from sessionary.sync.background_sync import BackgroundSync, Delivered


class Rounds:
    """A background without a thread: its clock is set by hand, and it goes when it is asked whether it would."""

    def __init__(self, *answers: Delivered) -> None:
        self.now = 1000.0
        self.sent: list[list[str]] = []
        self.answers = list(answers)
        self.background = BackgroundSync(self._carry, clock=lambda: self.now)
        self.background._thread = (
            threading.Thread()
        )  # never started: nothing goes by itself, and the end waits for nothing

    def _carry(self, batch: list[str]) -> Delivered:
        self.sent.append(batch)
        return self.answers.pop(0) if self.answers else Delivered()

    def after(self, seconds: float) -> list[str] | None:
        """What goes so many seconds later; None if nothing does."""
        self.now += seconds
        due = self.background._due()
        if due is None or due > self.now:
            return None
        batch = self.background._take()
        self.background._settle(self._carry(batch) if batch else self.background._look(), self.now)
        return batch


def test_nothing_is_sent_during_writes_and_everything_afterwards() -> None:
    rounds = Rounds()
    for _ in range(5):
        rounds.background.touched("a")
        rounds.background.touched("b")
        assert rounds.after(1.9) is None
    assert rounds.after(0.1) == ["a", "b"]
    assert rounds.after(100) is None


def test_continuous_writes_are_sent_late_but_sent() -> None:
    rounds = Rounds()
    went = []
    for second in range(1, 32):
        rounds.background.touched("a", 100)
        if rounds.after(1.0):
            went.append(second)
    assert went == [30]


def test_a_bulk_is_sent_at_once_but_not_twice_in_a_row() -> None:
    rounds = Rounds()
    rounds.background.touched("a", rules.BULK - 1)
    assert rounds.after(0.1) is None
    rounds.background.touched("a", 1)
    assert rounds.after(0.0) == ["a"]
    rounds.background.touched("a", rules.BULK)
    assert rounds.after(0.5) is None
    assert rounds.after(0.5) == ["a"]


def test_it_is_not_woken_by_each_touch() -> None:
    rounds = Rounds()
    woken: list[int] = []
    rounds.background._news.notify_all = lambda: woken.append(1)  # type: ignore[method-assign]
    for _ in range(100):
        rounds.background.touched("a", 10)
        rounds.background.touched("b", 10)
    assert len(woken) == 1
    rounds.background.touched("a", rules.BULK)
    assert len(woken) == 2


def test_a_remote_that_does_not_answer_is_asked_after_longer_and_longer_pauses() -> None:
    rounds = Rounds(*[Delivered(["a"], answered=False)] * 9)
    rounds.background.touched("a")
    assert rounds.after(2.0) == ["a"]
    for longest in (2, 4, 8, 16, 32, 64, 128, 256, 300):
        waited = 1
        while rounds.after(1.0) is None:
            waited += 1
        assert longest / 2 <= waited <= longest
    assert rounds.background.waiting == []
    rounds.background.touched("a")
    assert rounds.after(2.0) == ["a"], "an answer ends the pauses"


def test_touches_do_not_shorten_a_pause() -> None:
    rounds = Rounds(*[Delivered(["a"], answered=False)] * 6)
    rounds.background.touched("a")
    for _ in range(100):
        rounds.background.touched("a", rules.BULK)
        rounds.after(0.5)
    assert len(rounds.sent) <= 6


def test_what_must_go_again_waits_and_is_reported_as_waiting() -> None:
    rounds = Rounds(Delivered(["b"], answered=False))
    rounds.background.touched("a")
    rounds.background.touched("b")
    assert rounds.after(2.0) == ["a", "b"]
    assert rounds.background.waiting == ["b"]


def test_many_sessions_go_in_several_deliveries() -> None:
    rounds = Rounds()
    for number in range(45):
        rounds.background.touched(f"{number:02}")
    sizes = [len(rounds.after(seconds) or []) for seconds in (2.0, 1.0, 1.0)]
    assert sizes == [20, 20, 5]


def test_what_earlier_programs_left_is_looked_through_last() -> None:
    rounds = Rounds()
    rounds.background.look_through(lambda: [f"old{number:02}" for number in range(25)])
    assert rounds.after(1.9) is None
    assert rounds.after(0.1) == []  # it looks what is there
    rounds.background.touched("new")
    assert rounds.after(1.0) is None
    assert rounds.after(1.0) == ["new"]
    assert len(rounds.after(1.0) or []) == 20
    assert len(rounds.after(1.0) or []) == 5
    assert rounds.after(60.0) is None


def test_a_session_sent_by_another_program_is_not_sent_again_unless_changed() -> None:
    rounds = Rounds()
    rounds.background.touched("a")
    rounds.background.touched("b")
    rounds.now += 1.0
    since = rounds.now
    rounds.now += 1.0
    rounds.background.touched("b")
    rounds.background.carried(since)
    assert rounds.background.waiting == ["b"]


# -- with its thread


def delivered(carry: Callable[[list[str]], Delivered]) -> BackgroundSync:
    return BackgroundSync(carry)


def test_closing_sends_what_waits_and_ends_the_thread() -> None:
    sent: list[list[str]] = []

    def carry(batch: list[str]) -> Delivered:
        sent.append(batch)
        return Delivered()

    background = delivered(carry)
    for number in range(45):
        background.touched(f"{number:02}")
    thread = background._thread
    background.close(30)
    assert [len(batch) for batch in sent] == [20, 20, 5]
    assert thread is not None
    assert not thread.is_alive()
    background.touched("later")
    assert background.waiting == ["later"]


def test_closing_waits_no_longer_than_it_says() -> None:
    hung = threading.Event()

    def carry(batch: list[str]) -> Delivered:
        hung.wait(30)
        return Delivered(batch, answered=False)

    background = delivered(carry)
    background.touched("a")
    thread = background._thread
    assert thread is not None
    background.close(0.05)
    assert thread.is_alive()
    assert background.given_up.is_set()
    assert background.waiting == ["a"]
    hung.set()
    thread.join(30)
    assert not thread.is_alive()


def test_closing_does_not_retry_a_remote_that_did_not_answer_just_now() -> None:
    tries: list[int] = []

    def carry(batch: list[str]) -> Delivered:
        tries.append(1)
        return Delivered(batch, answered=False)

    background = delivered(carry)
    background.touched("a", rules.BULK)
    while not background._failures:
        threading.Event().wait(0.001)
    background.close(30)
    assert tries == [1]


class Deliveries:
    """What a background with a thread sends; it gives the answers that are set."""

    def __init__(self, *answers: Delivered) -> None:
        self.sent: list[list[str]] = []
        self.patience: list[float] = []
        self._answers = list(answers)
        self.background = BackgroundSync(self._carry)

    def _carry(self, batch: list[str]) -> Delivered:
        self.sent.append(sorted(batch))
        self.patience.append(self.background.patience)
        return self._answers.pop(0) if self._answers else Delivered()


def test_the_end_of_the_main_thread_sends_what_waits_and_then_what_earlier_programs_left() -> None:
    deliveries = Deliveries()
    background = deliveries.background
    background.look_through(lambda: ["old", "older"])
    background.touched("new")
    rules.flush_all(30)
    assert deliveries.sent == [["new"], ["old", "older"]]
    assert all(0 < patience <= 30 for patience in deliveries.patience)
    assert background.patience == 0
    background.touched("from another thread")
    background.close(30)
    assert deliveries.sent[2:] == [["from another thread"]]


def test_closing_sends_what_earlier_programs_left_too() -> None:
    deliveries = Deliveries()
    deliveries.background.look_through(lambda: ["old"])
    deliveries.background.close(30)
    assert deliveries.sent == [["old"]]


def test_a_courier_that_is_forgotten_does_the_same() -> None:
    deliveries = Deliveries()
    deliveries.background.look_through(lambda: ["old"])
    deliveries.background.touched("new")
    deliveries.background.finish()
    rules.flush_all(30)
    assert deliveries.sent == [["new"], ["old"]]


def test_when_the_time_is_over_what_earlier_programs_left_stays_for_the_next() -> None:
    deliveries = Deliveries()
    deliveries.background.look_through(lambda: ["old"])
    deliveries.background.close(0)
    thread = deliveries.background._thread
    assert thread is not None
    thread.join(30)
    assert deliveries.sent == []


def test_a_remote_that_fails_at_the_end_is_asked_once() -> None:
    deliveries = Deliveries(Delivered(["new"], answered=False))
    deliveries.background.look_through(lambda: ["old"])
    deliveries.background.touched("new")
    rules.flush_all(30)
    deliveries.background.close(30)
    assert deliveries.sent == [["new"]]
    assert deliveries.background.waiting == ["new"]


def test_each_exit_starts_at_another_unsent_session() -> None:
    names = [f"{number:03}" for number in range(400)]
    orders = set()
    for _ in range(3):
        rounds = Rounds()
        rounds.background.look_through(lambda: list(names))
        rounds.after(2.0)
        assert sorted(rounds.background._backlog) == names
        orders.add(tuple(rounds.background._backlog))
    assert len(orders) == 3


class _Unstartable(threading.Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_where_no_thread_can_be_started_nothing_fails_and_a_later_touch_starts_it() -> None:
    sent = threading.Event()
    kinds: list[type[threading.Thread]] = [_Unstartable, _Unstartable, threading.Thread]

    def carry(batch: list[str]) -> Delivered:
        sent.set()
        return Delivered()

    def thread(**options: Any) -> threading.Thread:
        return kinds.pop(0)(**options)

    background = BackgroundSync(carry, thread=thread)
    background.look_through(list)
    background.touched("a")
    background.touched("a", rules.BULK)
    assert sent.wait(60)
    background.close(20)
    assert background.waiting == []


def test_a_carrier_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def carry(batch: list[str]) -> Delivered:
        raise ZeroDivisionError("a secret of the remote")

    background = delivered(carry)
    background.touched("a", rules.BULK)
    while not background._failures:
        threading.Event().wait(0.001)
    assert background._thread is not None
    assert background._thread.is_alive()
    assert background.waiting == ["a"]
    background.close(30)
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text
