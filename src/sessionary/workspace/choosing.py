"""The messages that are asked for: by index, by turn, or around one of them; negative numbers count from the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sessionary.errors import Invalid
from sessionary.model import Item
from sessionary.transcript.typed import Numbered, numbered

Read = Callable[[], Iterable[Item]]
"""Reads a session or a file from its start."""


def by_index(read: Read, first: int, last: int | None, *, early: bool, **shown: bool) -> Iterator[Numbered]:
    """The messages from one index to another; with `early` those before them too, marked so."""
    begin, end = from_start(read, first, last or 0)
    found = numbered(read(), **shown)
    if last is not None:
        found = _up_to(found, end, also_outside=any(shown.values()))
    yield from since(found, begin, early=early)


def by_turn(read: Read, first: int, last: int | None, **shown: bool) -> Iterator[Numbered]:
    """The messages from one turn to another. Raises Invalid if there are none."""
    begin, end, turn = first, last, 0
    if min(first, last or 0) < 0:
        for one in numbered(read()):
            turn = one.turn
        begin = first if first >= 0 else turn + 1 + first
        end = last if last is None or last >= 0 else turn + 1 + last
        if first == last:
            begin = max(begin, 1)  # what comes before the first turn is turn 0, and not counted from the end
    found, none = numbered(read(), **shown), True
    for one in found:
        turn = one.turn
        if end is not None and turn > end:
            break
        if turn >= begin:
            none = False
            yield one
    if none:
        for one in found:  # to say how many there are
            turn = one.turn
        is_reverse = end is not None and end < begin <= turn and first != last
        lead = f"turn {first} comes after turn {last}" if is_reverse else f"no turn {first}"
        raise Invalid(f"{lead}: the session has {_words(turn, 'turn')}", operation="show")


def around(read: Read, index: int, beside: int, *, early: bool, **shown: bool) -> Iterator[Numbered]:
    """A message, and so many before and after it. Raises Invalid, before it yields any of them, if it is missing."""
    (wanted,) = from_start(read, index)
    count, held = wanted - index, list[Numbered]()  # the number of all messages, if it was needed
    found = numbered(() if wanted < 0 else read(), **shown)
    found = _up_to(found, wanted + beside, also_outside=any(shown.values()))
    for one in since(found, wanted - beside, early=True):
        if not (one.outside or one.inherited):
            count = one.index + 1
        if not one.early:
            held.append(one)
        elif early:
            yield one
        if count > wanted:
            yield from held
            held.clear()
    if not 0 <= wanted < count:
        words = f"no message {index}: the session has {_words(count, 'message')}"
        hint = "indexes are counted from 0; `sessionary search` prints them"
        raise Invalid(words, operation="show", hint=hint)


def since(messages: Iterable[Numbered], first: int, *, early: bool) -> Iterator[Numbered]:
    """The messages from an index on; with `early` those before it too, marked so."""
    for one in messages:
        if one.index >= first:
            yield one
        elif early:
            yield replace(one, early=True)


def from_start(read: Read, *indexes: int) -> list[int]:
    """The indexes, with negative ones counted from the end; one from before the start stays negative."""
    count = sum(1 for _ in numbered(read())) if min(indexes) < 0 else 0
    return [one + count if one < 0 else one for one in indexes]


def _up_to(messages: Iterable[Numbered], last: int, *, also_outside: bool) -> Iterator[Numbered]:
    """The messages up to an index; of those outside of the conversation, the ones before the message behind it."""
    for one in messages:
        if one.index > last:
            return
        yield one
        if one.index == last and not also_outside:
            return


def _words(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
