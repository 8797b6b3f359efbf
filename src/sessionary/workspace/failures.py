"""Folders and sessions that cannot be read: everything else is read first, then they are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sessionary.errors import Corrupt, StorageFailed
from sessionary.layouts.files import raise_joined
from sessionary.model import Problem, Severity

Found = TypeVar("Found")


def readable(
    items: Iterable[Found], problems: Callable[[], Iterable[Problem]], operation: str
) -> Iterator[Found]:
    """Yield the items of a session or a file; raise if it has no message because it is damaged, or something else.

    Raises:
        Corrupt: no message can be read, and a problem is worse than a note.
    """
    empty = True
    for one in items:
        empty = empty and isinstance(one, Problem)
        yield one
    worst = max(problems(), key=lambda problem: problem.severity, default=None) if empty else None
    if worst is not None and worst.severity > Severity.note:
        raise Corrupt(
            f"{worst.path}: {worst.message}", operation=operation, path=worst.path, hint=worst.repair
        )


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
