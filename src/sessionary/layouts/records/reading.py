"""Reading the records of a framework's session as messages, in two passes and from a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy

from msgspec import MsgspecError, msgpack

from sessionary.codec.times import parse_time
from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.layouts.jsonl import read_jsonl
from sessionary.layouts.records.messages import facts_from, message_from
from sessionary.layouts.records.names import framework_of, parent_of
from sessionary.layouts.records.state import Ranges
from sessionary.layouts.records.survey import Survey, items_of
from sessionary.layouts.records.values import unmarked
from sessionary.model import Aside, Cursor, Fact, Item, Place, Problem, Record, Reset, SessionRef, Severity

_NO_COPY = "restore the file from a backup or from the remote, if one has them; all other records are read"


def read_records(fs: Fs, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
    """As `Layout.read`."""
    start, earlier = (None, Survey()) if after is None else _position(after)
    end, survey = _survey(fs, ref, start, earlier)
    if after is not None and (survey is None or not survey.extends(earlier)):
        yield Reset()
        start, earlier = None, Survey()
        end, survey = _survey(fs, ref, None, earlier)
    if survey is None:
        return
    yield from (Fact(name, value) for name, value in survey.facts.items())
    if parent := parent_of(ref.locator):
        yield from (Fact("nested", "yes"), Fact("parent", parent))
    damaged = False
    for item in _messages(fs, ref, start, survey):
        damaged = damaged or isinstance(item, Problem)
        yield item
    if not damaged:  # a damaged line explains the gap
        yield from (_gap(ref, first, last) for first, last in survey.missing)
    if end is not None:
        yield Cursor(msgpack.encode((end.state, survey.end())))


def framework_in(fs: Fs, ref: SessionRef) -> str:
    """The framework of a session; "" if neither its folder nor its first record has it."""
    begin = Survey()
    with suppress(StorageFailed):  # reported by `read_records`
        for found in read_jsonl(fs, ref.locator):
            if isinstance(found, Record):
                begin.add(found.value)
                break
    return framework_of(ref.locator) or begin.framework


def _survey(
    fs: Fs, ref: SessionRef, start: Cursor | None, earlier: Survey
) -> tuple[Cursor | None, Survey | None]:
    """The items of the records after a cursor, and their end; nothing if earlier records changed."""
    survey, end = deepcopy(earlier), None
    for found in read_jsonl(fs, ref.locator, start):
        end = found if isinstance(found, Cursor) else None
        if isinstance(found, Reset):
            return None, None
        if isinstance(found, Record):
            survey.add(found.value)
    return end, survey


def _messages(fs: Fs, ref: SessionRef, start: Cursor | None, survey: Survey) -> Iterator[Item]:
    """The messages of the items that stand, and the problems of the lines."""
    framework, dropped = framework_of(ref.locator) or survey.framework, Ranges(survey.dropped)
    spans = survey.shown()
    shown = None if spans is None else Ranges(spans)
    for found in read_jsonl(fs, ref.locator, start):
        if isinstance(found, Problem):
            yield found
        if not isinstance(found, Record):
            continue
        place, time = Place(ref.locator, found.line, found.byte), parse_time(found.value.get("at"))
        for number, stored in items_of(found.value):
            if number in dropped:
                continue
            item = unmarked(stored)
            yield from facts_from(framework, item)
            message = message_from(framework, item, place, time)
            if message is not None:
                yield message if shown is None or number in shown else Aside(message)


def _position(after: Cursor) -> tuple[Cursor, Survey]:
    try:
        state, survey = msgpack.decode(after.state, type=tuple[bytes, Survey])
    except MsgspecError:
        return Cursor(b""), Survey()
    return Cursor(state), survey


def _gap(ref: SessionRef, first: int, last: int) -> Problem:
    words = f"record {first} is missing" if first == last else f"records {first} to {last} are missing"
    return Problem.of_file("missing_records", Severity.lost_data, ref.locator, words, _NO_COPY)
