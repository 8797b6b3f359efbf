"""Looks that two processes share: the same answers, whatever becomes of the second one."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator, Sequence

import pytest

from sessionary.disk.halves import WORTH, in_halves

ITEMS = range(2 * WORTH + 1)


def parity(some: Sequence[int]) -> bytes:
    return bytes([item % 2 for item in some])


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A machine with two cores and a program with one thread; the children that were made."""
    children: list[int] = []
    fork = os.fork

    def counted() -> int:
        child = fork()
        if child:
            children.append(child)
        return child

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "fork", counted)
    yield children
    for child in children:  # each has been waited for: it is no zombie
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_the_answers_come_in_the_order_of_the_items(two_cores: list[int]) -> None:
    assert in_halves(parity, ITEMS) == parity(ITEMS)
    assert len(two_cores) == 1


def test_each_process_looks_at_one_half() -> None:
    here = os.getpid()
    answers = in_halves(lambda some: bytes([os.getpid() == here] * len(some)), ITEMS)
    assert answers == bytes([1] * WORTH + [0] * (WORTH + 1))


def test_more_than_a_pipe_holds_comes_whole() -> None:
    many = range(300_000)
    assert in_halves(parity, many) == parity(many)


@pytest.mark.parametrize("alone", ["few", "core", "thread", "no affinity"])
def test_one_process_looks_alone(alone: str, two_cores: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    items = ITEMS
    if alone == "few":
        items = range(WORTH - 1)
    elif alone == "core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    elif alone == "thread":
        monkeypatch.setattr(threading, "active_count", lambda: 2)
    else:
        monkeypatch.delattr(os, "sched_getaffinity")
    assert in_halves(parity, items) == parity(items)
    assert two_cores == []


def test_a_child_that_is_killed_takes_no_answer_along() -> None:
    here = os.getpid()

    def deadly(some: Sequence[int]) -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return parity(some)

    assert in_halves(deadly, ITEMS) == parity(ITEMS)


def test_a_system_that_gives_no_process_more_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuses)
    before = len(os.listdir("/dev/fd"))
    assert in_halves(parity, ITEMS) == parity(ITEMS)
    assert len(os.listdir("/dev/fd")) == before


def test_a_child_for_which_the_system_has_waited_is_no_failure() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as some that start programs leave it
    try:
        assert in_halves(parity, ITEMS) == parity(ITEMS)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_fails_in_the_child_fails_here_too() -> None:
    def fails(some: Sequence[int]) -> bytes:
        if ITEMS[-1] in some:
            raise PermissionError("no")
        return parity(some)

    with pytest.raises(PermissionError):
        in_halves(fails, ITEMS)


def test_whoever_is_interrupted_leaves_no_child_and_no_descriptor() -> None:
    here = os.getpid()

    def interrupted(some: Sequence[int]) -> bytes:
        if os.getpid() == here:
            raise KeyboardInterrupt
        return bytes(200_000)  # more than the pipe holds: it must not wait for ever for somebody to read it

    before = os.listdir("/dev/fd")
    with pytest.raises(KeyboardInterrupt):
        in_halves(interrupted, ITEMS)
    assert len(os.listdir("/dev/fd")) == len(before)
