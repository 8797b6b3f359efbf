"""The changes of a session that can be undone: records that name the operation which wrote them.

An undo is a record as well: it brings back what stood before the other one. Items that had been dropped are added
again, under new numbers; nothing is erased, so an undo can be undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from sessionary.codec.times import parse_time
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, not_found, storage_failed
from sessionary.disk.journal import lines_of
from sessionary.layouts.records.journal import Change, decoded
from sessionary.layouts.records.state import SNAPSHOT, State
from sessionary.layouts.records.view import AFTER, HEAD, ITEMS, MORE, VIEW, shown_in
from sessionary.transcript.ranges import spans_of

_MARK = b'"cause":'


class Cause(Struct):
    """The operation that a record is the result of.

    Attributes:
        operation: ``rewind`` or ``undo``.
        to_turn: of a rewind: the last turn that was kept.
        of: of an undo: the operation that it undid.
    """

    operation: str
    to_turn: int | None = None
    of: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Further facts of the operation, by the names that `sessionary undo --list` prints."""
        facts = {"to_turn": self.to_turn, "operation": self.of}
        return {name: value for name, value in facts.items() if value is not None}


class Caused(Struct):
    """A record with a cause."""

    n: int
    at: str
    cause: Cause

    @property
    def stamp(self) -> str:
        """The time of the record, as text that sorts."""
        time = parse_time(self.at)
        return "" if time is None else atomic.timestamp_name(time)


def stored_lines(fs: Fs, path: str) -> Iterator[bytes]:
    """The lines of a session, without their newlines.

    Raises:
        NotFound: it is gone.
        StorageFailed: it cannot be read.
    """
    try:
        yield from lines_of(fs, path)
    except FileNotFoundError:
        raise not_found(path, f"there is no session in {path}") from None
    except OSError as error:
        raise storage_failed(error, "read", path) from error


_decode = msgspec.json.Decoder(Caused).decode


def caused(fs: Fs, path: str) -> list[Caused]:
    """The records of a session that can be undone, in their order.

    Raises: as `stored_lines`.
    """
    found = []
    for line in stored_lines(fs, path):
        if _MARK in line and decoded(line) is not None:
            try:
                found.append(_decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue  # the words are part of an item
    return found


def undoing(fs: Fs, path: str, now: State) -> tuple[Change, frozenset[int]] | None:
    """The change that undoes the last operation, and the numbers of the items that were added since.

    None if there is no operation to undo.
    """
    records = caused(fs, path)
    if not records:
        return None
    last = records[-1]
    before, after = _around(fs, path, last.n)
    return back_to(before, now, _named(Cause("undo", of=last.cause.operation))), frozenset(
        now.items.keys() - after
    )


def _named(cause: Cause) -> Mapping[str, Any]:
    return {key: value for key, value in msgspec.structs.asdict(cause).items() if value is not None}


def rewinding(turn: int) -> Mapping[str, Any]:
    """The cause of a rewind to a turn."""
    return _named(Cause("rewind", turn))


def _around(fs: Fs, path: str, number: int) -> tuple[State, frozenset[int]]:
    """The state before a record, and the numbers of the items that stood behind it."""
    state, after = State(), frozenset[int]()
    for raw in stored_lines(fs, path):
        line = decoded(raw)
        if line is None or line.op == SNAPSHOT:
            continue
        if line.n >= number:
            following = State()
            following.items, following.next_item = dict(state.items), state.next_item
            following.apply(line)
            after = frozenset(following.items)
            break
        state.apply(line)
    return state, after


def back_to(before: State, now: State, cause: Mapping[str, Any]) -> Change:
    """The change that turns the current items back into the earlier ones, in their order."""
    kept = set[int]()
    for number in before.items:
        if number not in now.items:
            break
        kept.add(number)
    again = [number for number in before.items if number not in kept]
    numbers = {old: now.next_item + index for index, old in enumerate(again)}
    names = {number: key for key, number in before.keys.items()}
    tables = renumbered(before.tables, kept, numbers)
    return Change(
        [before.items[number] for number in again],
        [names.get(number) for number in again] if names else (),
        spans_of(number for number in now.items if number not in kept),
        cause=cause,
        **tables_between(now.tables, tables),
    )


def tables_between(
    now: Mapping[str, Mapping[str, Any]], then: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What to set and to unset so that the tables become others."""
    unset = {
        table: gone
        for table, values in now.items()
        if (gone := [key for key in values if key not in then.get(table, {})])
    }
    changed = {
        table: {key: value for key, value in values.items() if now.get(table, {}).get(key) != value}
        for table, values in then.items()
    }
    return {"set": {key: one for key, one in changed.items() if one}, "unset": unset}


def renumbered(
    tables: Mapping[str, Mapping[str, Any]], kept: set[int], numbers: Mapping[int, int]
) -> dict[str, dict[str, Any]]:
    """The tables, with the ranges of shown items as these are numbered now.

    Args:
        tables: the tables.
        kept: the items that keep their number.
        numbers: the new number of each other item.
    """
    found = {name: dict(values) for name, values in tables.items()}
    spans = shown_in(found)
    if spans is not None and numbers:
        shown = [number for first, last in spans for number in range(first, last + 1)]
        moved = sorted(numbers.get(number, number) for number in shown if number in kept or number in numbers)
        found.pop(AFTER, None)
        found[VIEW] = {
            key: one for key, one in found[VIEW].items() if key != HEAD and not key.startswith(MORE)
        }
        found[VIEW][ITEMS] = msgspec.Raw(msgspec.json.encode(spans_of(moved)))
    return found
