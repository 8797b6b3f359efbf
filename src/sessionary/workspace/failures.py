"""Unreadable folders: all other sessions are read first, then these are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sessionary.errors import Corrupt, StorageFailed
from sessionary.layouts.files import raise_joined
from sessionary.model import Problem, Severity

Found = TypeVar("Found")


def nothing_read(problems: Iterable[Problem], operation: str) -> Corrupt | None:
    """The error of a file or session of which no message can be read; None if its problems are only notes."""
    worst = max(problems, key=lambda problem: problem.severity, default=None)
    if worst is None or worst.severity == Severity.note:
        return None
    return Corrupt(f"{worst.path}: {worst.message}", operation=operation, path=worst.path, hint=worst.repair)


def in_turn(finders: Iterable[Iterator[Found]]) -> Iterator[Found]:
    """The items of all iterators, one iterator after the other.

    Raises:
        StorageFailed: an iterator raised it; after all others, with all folders in `details["folders"]`.
    """
    failures: list[StorageFailed] = []
    for found in finders:
        try:
            yield from found
        except StorageFailed as error:
            failures.append(error)
    raise_joined(failures)


def gathered(found: Iterable[Found]) -> tuple[list[Found], StorageFailed | None]:
    """All items of an iterator, and the StorageFailed that ended it."""
    items: list[Found] = []
    try:
        items.extend(found)
    except StorageFailed as error:
        return items, error
    return items, None


def ending_in(items: Iterable[Found], failure: StorageFailed | None) -> Iterator[Found]:
    """The reverse of `gathered`. Raises the failure, a StorageFailed, after the items."""
    yield from items
    if failure is not None:
        raise failure


def joined(one: StorageFailed | None, other: StorageFailed | None) -> StorageFailed | None:
    """The first of two failures, with the folders of both; None if nothing failed."""
    _, failure = gathered(in_turn([ending_in((), one), ending_in((), other)]))
    return failure
