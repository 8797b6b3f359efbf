"""Looks of which a second process takes a part: the same answers, whatever becomes of it."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from itertools import islice

import pytest

from sessionary.disk.helper import PIECE, SHARE, WORTH, with_helper

ITEMS = range(2 * WORTH + 1)


def nothing() -> None:
    """There is nothing else to do."""


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
    assert bytes(with_helper(parity, ITEMS, nothing)) == parity(ITEMS)
    assert len(two_cores) == 1


def test_the_child_takes_its_share_and_this_process_the_rest() -> None:
    here = os.getpid()
    answers = bytes(with_helper(lambda some: bytes([os.getpid() == here] * len(some)), ITEMS, nothing))
    theirs = int(SHARE * len(ITEMS))
    assert answers == bytes([1] * (len(ITEMS) - theirs) + [0] * theirs)


def test_this_process_goes_on_while_the_child_looks() -> None:
    """Each waits for the other: neither could end if it had to be alone."""
    told, tell = os.pipe()
    heard, hear = os.pipe()
    here = os.getpid()

    def waits(some: Sequence[int]) -> bytes:
        if os.getpid() != here:
            os.write(hear, b"child")
            assert os.read(told, 5) == b"ready"
        return parity(some)

    def meanwhile() -> None:
        assert os.read(heard, 5) == b"child"
        os.write(tell, b"ready")

    try:
        assert bytes(with_helper(waits, ITEMS, meanwhile)) == parity(ITEMS)
    finally:
        for fd in (told, tell, heard, hear):
            os.close(fd)


def test_answers_come_as_soon_as_they_are_known() -> None:
    """Those of the child too: it goes on only when its first have arrived here."""
    told, tell = os.pipe()
    here = os.getpid()

    def slow(some: Sequence[int]) -> Iterator[int]:
        for number, item in enumerate(some):
            if os.getpid() != here and number == PIECE:
                assert os.read(told, 5) == b"ready"
            yield item % 2

    asked: list[int] = []

    def noted(some: Sequence[int]) -> Iterator[int]:
        for answer in slow(some):
            asked.append(answer)
            yield answer

    try:
        answers = with_helper(noted, ITEMS, nothing)
        first = [next(answers)]
        assert len(asked) == 1
        ours = len(ITEMS) - int(SHARE * len(ITEMS))
        first += islice(answers, ours - 1 + PIECE)
        os.write(tell, b"ready")
        assert bytes([*first, *answers]) == parity(ITEMS)
        assert len(asked) == ours
    finally:
        os.close(told)
        os.close(tell)


def test_whoever_has_enough_leaves_no_child_and_no_descriptor() -> None:
    before = os.listdir("/dev/fd")
    answers = with_helper(parity, range(300_000), nothing)
    assert next(answers) == 0
    answers.close()
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_child_that_is_killed_on_the_way_is_asked_for_the_rest_only() -> None:
    here = os.getpid()
    asked: list[int] = []

    def deadly(some: Sequence[int]) -> Iterator[int]:
        for number, item in enumerate(some):
            if os.getpid() != here and number == PIECE + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            asked.append(item)
            yield item % 2

    assert bytes(with_helper(deadly, ITEMS, nothing)) == parity(ITEMS)
    assert len(asked) == len(ITEMS) - PIECE


def test_more_than_a_pipe_holds_comes_whole() -> None:
    many = range(300_000)
    assert bytes(with_helper(parity, many, nothing)) == parity(many)


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
    done: list[int] = []
    assert bytes(with_helper(parity, items, lambda: done.append(1))) == parity(items)
    assert two_cores == []
    assert done == [], "nobody waits, so there is nothing to do meanwhile"


def test_a_child_that_is_killed_takes_no_answer_along() -> None:
    here = os.getpid()

    def deadly(some: Sequence[int]) -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return parity(some)

    assert bytes(with_helper(deadly, ITEMS, nothing)) == parity(ITEMS)


def test_a_system_that_gives_no_process_more_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuses)
    before = len(os.listdir("/dev/fd"))
    assert bytes(with_helper(parity, ITEMS, nothing)) == parity(ITEMS)
    assert len(os.listdir("/dev/fd")) == before


def test_a_child_for_which_the_system_has_waited_is_no_failure() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as some that start programs leave it
    try:
        assert bytes(with_helper(parity, ITEMS, nothing)) == parity(ITEMS)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_fails_in_the_child_fails_here_too() -> None:
    def fails(some: Sequence[int]) -> bytes:
        if ITEMS[-1] in some:
            raise PermissionError("no")
        return parity(some)

    with pytest.raises(PermissionError):
        bytes(with_helper(fails, ITEMS, nothing))


@pytest.mark.parametrize("at", ["look", "meanwhile"])
def test_whoever_is_interrupted_leaves_no_child_and_no_descriptor(at: str) -> None:
    here = os.getpid()

    def interrupted(some: Sequence[int]) -> bytes:
        if os.getpid() == here:
            raise KeyboardInterrupt
        return bytes(200_000)  # more than the pipe holds: it must not wait for ever for somebody to read it

    def meanwhile() -> None:
        if at == "meanwhile":
            raise KeyboardInterrupt

    before = os.listdir("/dev/fd")
    with pytest.raises(KeyboardInterrupt):
        bytes(with_helper(interrupted, ITEMS, meanwhile))
    assert len(os.listdir("/dev/fd")) == len(before)
