"""The sessions of agent frameworks as a layout: `<framework>/<id>.records` below the data folder. Read side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from sessionary.codec.times import parse_time
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.jsonl import may_hold, read_jsonl
from sessionary.layouts.records.messages import CLAUDE, FRAMEWORKS, facts_from, message_from
from sessionary.layouts.records.names import SUFFIX, parts_of
from sessionary.layouts.records.survey import Ranges, Survey, items_of
from sessionary.layouts.records.values import unmarked
from sessionary.model import (
    Aside,
    Cursor,
    Fact,
    Header,
    Item,
    Place,
    Problem,
    Record,
    Reset,
    SessionRef,
    Severity,
)
from sessionary.xdg import data_folder

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

_NO_COPY = "restore the file from a backup or from the remote, if one has them; all other records are read"


class RecordsLayout(AgentLayout):
    """The sessions that the plugs of this package stored below one folder.

    The folder has one folder for each framework, or holds the sessions itself.
    """

    name: ClassVar[str] = "records"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS})
    places: ClassVar[tuple[str, ...]] = tuple(f"{name}/" for name in FRAMEWORKS)

    @classmethod
    def default_home(cls) -> Path:
        return Path(data_folder() or os.path.expanduser("~/.local/share/sessionary"))

    def _files(self) -> Iterator[str]:
        for folder in (str(self.home), *(f"{self.home}/{name}" for name in FRAMEWORKS)):
            yield from (f"{folder}/{name}" for name in self._names(folder) if name.endswith(SUFFIX))

    def _ref(self, path: str) -> SessionRef | None:
        parts = parts_of(os.path.basename(path))
        if parts is None:
            return None
        scope, session_id = parts
        project = scope[:1] if _is_nested(path, scope) else scope
        return SessionRef(self.name, session_id, path, "/".join(project) or None)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        begin = Survey()
        for found in read_jsonl(self._fs, ref.locator):
            if isinstance(found, Record):
                begin.add(found.value)
                break
        return replace(super().header(ref, fold), agent=_framework(ref, begin) or self.name)

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        if may_match is not None and not may_hold(self._fs, ref.locator, may_match):
            return iter(())
        return self._items(ref, after)

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        start, earlier = (None, Survey()) if after is None else _position(after)
        end, survey = self._survey(ref, start, earlier)
        if after is not None and (survey is None or not survey.extends(earlier)):
            yield Reset()
            start, (end, survey) = None, self._survey(ref, None, Survey())
        if survey is None:
            return
        yield from (Fact(name, value) for name, value in survey.facts.items())
        scope = (parts_of(os.path.basename(ref.locator)) or ([], ""))[0]
        if _is_nested(ref.locator, scope):
            yield from (Fact("nested", "yes"), Fact("parent", scope[-1]))
        yield from self._taken(ref, start, survey)
        if end is not None:
            yield Cursor(msgpack.encode((end.state, survey)))

    def _survey(
        self, ref: SessionRef, start: Cursor | None, earlier: Survey
    ) -> tuple[Cursor | None, Survey | None]:
        """What the records behind a cursor say, and where they end; nothing if what is before it changed."""
        survey, end = deepcopy(earlier), None
        for found in read_jsonl(self._fs, ref.locator, start):
            end = found if isinstance(found, Cursor) else None
            if isinstance(found, Reset):
                return None, None
            if isinstance(found, Record):
                survey.add(found.value)
        return end, survey

    def _taken(self, ref: SessionRef, start: Cursor | None, survey: Survey) -> Iterator[Item]:
        """The messages of the items that stand, and the problems."""
        framework, dropped, damaged = _framework(ref, survey), Ranges(survey.dropped), False
        shown = None if survey.shown is None else Ranges(survey.shown)
        for found in read_jsonl(self._fs, ref.locator, start):
            if isinstance(found, Problem):
                damaged = True
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
        if not damaged:  # a damaged line explains the gap
            yield from (_gap(ref, first, last) for first, last in survey.missing)


def _position(after: Cursor) -> tuple[Cursor, Survey]:
    try:
        state, survey = msgpack.decode(after.state, type=tuple[bytes, Survey])
    except MsgspecError:
        return Cursor(b""), Survey()
    return Cursor(state), survey


def _is_nested(path: str, scope: list[str]) -> bool:
    """True for the session of a sub-agent: its scope ends with the id of the session that it belongs to."""
    return len(scope) == 2 and os.path.basename(os.path.dirname(path)) == CLAUDE


def _framework(ref: SessionRef, survey: Survey) -> str:
    """What stored a session. The folder says it too, where the first record is damaged."""
    folder = os.path.basename(os.path.dirname(ref.locator))
    return folder if folder in FRAMEWORKS else survey.framework


def _gap(ref: SessionRef, first: int, last: int) -> Problem:
    words = f"record {first} is missing" if first == last else f"records {first} to {last} are missing"
    return Problem("missing_records", Severity.lost_data, ref.locator, None, None, words, _NO_COPY)
