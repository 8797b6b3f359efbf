"""Select messages of a session by index, by turn, or around one of them; negative numbers count from the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionary.errors import Invalid
from sessionary.model import Item
from sessionary.transcript.typed import Numbered, numbered

if TYPE_CHECKING:
    from sessionary.redaction import Redaction

Read = Callable[[], Iterable[Item]]
"""Reads a session or a file from its start."""


def chosen(
    read: Read,
    first: int,
    last: int | None,
    around: int | None,
    turns: tuple[int, int | None] | None,
    redaction: Redaction | None = None,
    *,
    preceding: bool,
    **shown: bool,
) -> Iterator[Numbered]:
    """The selected messages; see `Workspace.messages`."""
    if turns is not None:
        found = _of_turns(read, *turns, **shown)
    elif around is not None:
        found = _around(read, first, around, preceding=preceding, **shown)
    else:
        found = between(numbered(read(), **shown), *resolve_indexes(read, first, last), preceding=preceding)
    if redaction is None:
        return found
    from sessionary.transcript.redacted import redacted_message  # here: `show` redacts nothing

    return (replace(one, message=redacted_message(one.message, redaction)) for one in found)


def resolve_indexes(read: Read, first: int, last: int | None = None) -> tuple[int, int | None]:
    """Resolve negative indexes, which count from the end; one before the start stays negative."""
    if min(first, last or 0) >= 0:
        return first, last
    count = sum(1 for _ in numbered(read()))
    return first + count * (first < 0), last if last is None or last >= 0 else last + count


def between(
    messages: Iterable[Numbered], first: int, last: int | None = None, *, preceding: bool
) -> Iterator[Numbered]:
    """The messages from one index to another; with `preceding` also those before them, marked as such."""
    for one in messages:
        if last is not None and one.index > last:
            return
        if one.index >= first:
            yield one
        elif preceding:
            yield replace(one, preceding=True)


def _around(read: Read, index: int, beside: int, *, preceding: bool, **shown: bool) -> Iterator[Numbered]:
    """A message, and those beside it. Raises Invalid, before it yields any of them, if the message is missing."""
    wanted, _ = resolve_indexes(read, index)
    count, held = wanted - index, list[Numbered]()  # the number of all messages, if it was needed
    found = numbered(() if wanted < 0 else read(), **shown)
    for one in between(found, wanted - beside, wanted + beside, preceding=True):
        if not (one.outside or one.inherited):
            count = one.index + 1
        if not one.preceding:
            held.append(one)
        elif preceding:
            yield one
        if count > wanted:
            yield from held
            held.clear()
    if not 0 <= wanted < count:
        hint = "indexes are counted from 0; `sessionary search` prints them"
        raise _missing(f"no message {index}", count, "message", hint)


def _of_turns(read: Read, first: int, last: int | None, **shown: bool) -> Iterator[Numbered]:
    """The messages from one turn to another. Raises Invalid if there are none."""
    begin, end, turn = first, last, 0
    if min(first, last or 0) < 0:
        for one in numbered(read()):
            turn = one.turn
        begin = first if first >= 0 else turn + 1 + first
        end = last if last is None or last >= 0 else turn + 1 + last
        if first == last:
            begin = max(begin, 1)  # turn 0, before the first turn, is not counted from the end
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
        raise _missing(lead, turn, "turn")


def _missing(lead: str, count: int, what: str, hint: str | None = None) -> Invalid:
    words = f"{lead}: the session has {count:,} {what}{'' if count == 1 else 's'}"
    return Invalid(words, operation="show", hint=hint)
