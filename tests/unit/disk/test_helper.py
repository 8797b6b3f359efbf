"""Looks of which a second process takes a part: the same answers, whatever becomes of it."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from sessionary.disk.helper import PIECE, WORTH, Helper

ITEMS = range(2 * WORTH + 1)
HERE = os.getpid()


def parity(some: Sequence[int]) -> bytes:
    return bytes([item % 2 for item in some])


def looked(look: Callable[[Sequence[int]], Iterable[int]], items: Sequence[int] = ITEMS) -> bytes:
    with Helper(look, items) as helper:
        return bytes(helper.answers())


@pytest.fixture(autouse=True)
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A machine with two cores and a program with one thread; the children that were made.

    Every one of them has been waited for in the end, and no pipe is open any more. Which pipes is asked, not how many
    files are open: what earlier tests have dropped may be closed at any time.
    """
    children: list[int] = []
    made: set[int] = set()
    fork, pipe = os.fork, os.pipe

    def noted() -> tuple[int, int]:
        ends = pipe()
        made.add(os.fstat(ends[0]).st_ino)
        return ends

    def counted() -> int:
        child = fork()
        if child:
            children.append(child)
        return child

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(os, "pipe", noted)
    yield children
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    assert made.isdisjoint(_open_pipes())


def _open_pipes() -> Iterator[int]:
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # that of the list itself is closed by now
            found = os.fstat(int(name))
            if stat.S_ISFIFO(found.st_mode):
                yield found.st_ino


def test_the_answers_come_in_the_order_of_the_items(children: list[int]) -> None:
    for length in (WORTH, WORTH + 1, WORTH + PIECE - 1, 2 * WORTH + 1):
        items = range(length)
        assert looked(parity, items) == parity(items)
    assert len(children) == 4


class Gate:
    """Something that one process waits for and the other one opens."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def open(self) -> None:
        os.write(self._write, b"x")

    def wait(self) -> None:
        assert os.read(self._read, 1) == b"x"

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


def in_child() -> bool:
    return os.getpid() != HERE


def test_the_child_begins_with_the_last_while_this_process_does_something_else(gate: Gate) -> None:
    seen: list[int] = []

    def look(some: Sequence[int]) -> bytes:
        if not in_child():
            seen.extend(some)
        elif some[0] == 0:
            gate.open()
        return bytes([in_child()] * len(some))

    with Helper(look, ITEMS) as helper:
        assert helper.is_at_work
        gate.wait()  # until it is at the very first of them
        answers = bytes(helper.answers())
    assert seen == list(range(PIECE)), "only what one takes at once is looked at here, before one asks"
    assert answers == bytes([0] * PIECE + [1] * (len(ITEMS) - PIECE))


def test_a_child_that_comes_to_nothing_is_not_waited_for(gate: Gate) -> None:
    """As where the second core has something else to do, or the disk does not answer it."""

    def look(some: Sequence[int]) -> bytes:
        if in_child():
            gate.wait()  # for ever
        return parity(some)

    assert looked(look) == parity(ITEMS)


def test_of_the_pieces_that_the_child_has_done_none_is_looked_at_again(gate: Gate) -> None:
    done = Gate()
    seen: list[int] = []

    def look(some: Sequence[int]) -> bytes:
        if not in_child():
            seen.extend(some)
        elif some[-1] == len(ITEMS) - 1 - 7 * PIECE:
            done.open()  # seven have been sent
            gate.wait()
        return parity(some)

    with Helper(look, ITEMS) as helper:
        done.wait()
        assert bytes(helper.answers()) == parity(ITEMS)
    done.close()
    assert seen == list(range(len(ITEMS) - 7 * PIECE))


def test_answers_come_as_soon_as_they_are_known() -> None:
    asked: list[int] = []

    def noted(some: Sequence[int]) -> Iterator[int]:
        for item in some:
            asked.append(item)
            yield item % 2

    with Helper(noted, ITEMS) as helper:
        answers = helper.answers()
        first = [next(answers)]
        assert asked == [0]
        first += islice(answers, 9)
        assert asked == list(range(10))
        assert bytes([*first, *answers]) == parity(ITEMS)


def test_whoever_has_enough_leaves_no_child_and_no_descriptor() -> None:
    with Helper(parity, range(300_000)) as helper:
        assert next(helper.answers()) == 0


@pytest.mark.parametrize("pieces", [0, 1, 5])
def test_a_child_that_is_killed_takes_no_answer_along(pieces: int) -> None:
    last = len(ITEMS) - 1 - pieces * PIECE

    def deadly(some: Sequence[int]) -> bytes:
        if in_child() and some[-1] == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return parity(some)

    assert looked(deadly) == parity(ITEMS)


def test_more_than_a_pipe_holds_comes_whole(gate: Gate) -> None:
    many = range(300_000)

    def look(some: Sequence[int]) -> bytes:
        if in_child() and some[-1] == len(many) - 1 - 60_000:
            gate.open()
        return parity(some)

    with Helper(look, many) as helper:
        gate.wait()
        assert bytes(helper.answers()) == parity(many)


@pytest.mark.parametrize("alone", ["few", "core", "thread", "no affinity", "not wanted"])
def test_one_process_looks_alone(alone: str, children: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    items = range(WORTH - 1) if alone == "few" else ITEMS
    if alone == "core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    elif alone == "thread":
        monkeypatch.setattr(threading, "active_count", lambda: 2)
    elif alone == "no affinity":
        monkeypatch.delattr(os, "sched_getaffinity")
    asked: list[Sequence[int]] = []

    def noted(some: Sequence[int]) -> bytes:
        asked.append(some)
        return parity(some)

    with Helper(noted, items, is_wanted=alone != "not wanted") as helper:
        assert not helper.is_at_work
        assert bytes(helper.answers()) == parity(items)
    assert children == []
    assert asked == [items], "at once, as nobody else does a part"


def test_a_system_that_gives_no_process_more_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuses)
    with Helper(parity, ITEMS) as helper:
        assert not helper.is_at_work
        assert bytes(helper.answers()) == parity(ITEMS)


def test_a_system_that_gives_no_pipe_more_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", refuses)
    with Helper(parity, ITEMS) as helper:
        assert not helper.is_at_work
        assert bytes(helper.answers()) == parity(ITEMS)


def test_a_child_for_which_the_system_has_waited_is_no_failure() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as some that start programs leave it
    try:
        assert looked(parity) == parity(ITEMS)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_fails_in_the_child_fails_here_too() -> None:
    def fails(some: Sequence[int]) -> bytes:
        if ITEMS[-1] in some:
            raise PermissionError("no")
        return parity(some)

    with pytest.raises(PermissionError):
        looked(fails)


@pytest.mark.parametrize("at", ["look", "meanwhile"])
def test_whoever_is_interrupted_leaves_no_child_and_no_descriptor(at: str) -> None:
    def interrupted(some: Sequence[int]) -> bytes:
        if not in_child():
            raise KeyboardInterrupt
        return bytes(200_000)  # more than the pipe holds: it must not wait for ever for somebody to read it

    def use() -> None:
        with Helper(interrupted, ITEMS) as helper:
            if at == "meanwhile":
                raise KeyboardInterrupt
            bytes(helper.answers())

    with pytest.raises(KeyboardInterrupt):
        use()


def test_an_interrupt_right_after_the_fork_makes_no_second_parent(
    children: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ctrl-C reaches all processes of a terminal, whatever they are doing."""
    fork = os.fork

    def interrupted() -> int:
        child = fork()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return child

    monkeypatch.setattr(os, "fork", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            looked(parity)
    finally:
        if in_child():
            (tmp_path / "came back").touch()
            os._exit(0)
    assert len(children) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_knows_nothing_of_its_child_any_more() -> None:
    with Helper(parity, ITEMS) as helper:
        was_at_work = helper.is_at_work
    assert (was_at_work, helper.is_at_work) == (True, False)
    assert bytes(helper.answers()) == parity(ITEMS)
