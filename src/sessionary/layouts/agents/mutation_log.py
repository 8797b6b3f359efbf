"""The plan of a log that changes one document line by line, as VS Code writes a chat session.

A line states the document anew (kind 0), sets a value (1), cuts a list and adds values (2), or removes a value (3).
Only the requests of the document matter here. The first pass finds out which line completes each request, and which
requests a later line takes out of the list; the second one gives every request as soon as it is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, msgpack

from sessionary.layouts.agents.fields import list_of, object_of, object_or_value, text_or_none
from sessionary.layouts.agents.logs import Verdict
from sessionary.model import Place, Record
from sessionary.transcript.seen_ids import SeenIds

REMOVED = "of requests that were undone or sent again"
INITIAL, SET, PUSH, DELETE = range(4)
LARGEST_GAP = 64
"""Requests that may be missing before one that a line names: their lines were damaged. Others are not believed."""

_NOT_READ = frozenset(
    "codeCitations contentReferences editedFileEvents elapsedMs followups isCanceled responseMarkdownInfo"
    " timeSpentWaiting usedContext vote voteDownReason".split()
)
"""Fields of a request of which no message is made; a change of one of them completes nothing."""


class Request(NamedTuple):
    """A request as the last line leaves it, the place of the line that added it, and whether it is shown."""

    value: dict[str, Any]
    place: Place
    shown: bool


class Missing(NamedTuple):
    """A line changes something that is not there."""

    place: Place


class _Step(NamedTuple):
    """The change of one request by a line.

    Attributes:
        number: of the request, in the order in which requests were added.
        path: the path below the request; empty if the line adds the request.
        missing: True if the line names a request that no line added.
    """

    number: int
    path: tuple[str | int, ...]
    value: Any = None
    missing: bool = False


class _State(Struct, array_like=True):
    """Content of a cursor: the number of requests, and the ids of all current and removed requests."""

    requests: int
    seen: bytes


class MutationLog:
    """The requests that count, and their order; see `logs.Plan`. Keeps the number and the id of each in memory.

    Args:
        state: of a cursor; None to read from the start.
    """

    def __init__(self, state: bytes | None = None) -> None:
        self.hidden: Counter[str] = Counter()
        self.is_plain = False
        found = None if state is None else msgpack.decode(state, type=_State)
        if found is not None and not 0 <= found.requests <= 1 << 24:
            raise MsgspecError("more requests than a session has")
        self._before = found.requests if found else 0
        self._seen = SeenIds(found.seen) if found else None
        self._restart()
        self._ids: dict[int, str] = {}
        self._last: dict[int, int] = {}  # of each request: the line that completes it
        self._undone: set[int] = set()
        self._line = 0

    def _restart(self) -> None:
        self._order = list(range(self._before))
        self._added = self._before

    # -- the first pass

    def survey(self, found: Record) -> None:
        self._surveyed(found.value)

    def _surveyed(self, record: dict[str, Any]) -> list[_Step]:
        steps = self._steps(record)
        for step in steps:
            self._last[step.number] = self._line
            if not step.path:
                value = object_of(step.value)
                self._ids[step.number] = text_or_none(value.get("requestId")) or f"\0{step.number}"
                if is_undone(value):
                    self._undone.add(step.number)
            elif step.path[0] in ("shouldBeRemovedOnSend", "isHidden"):
                undone = is_undone({str(step.path[0]): record.get("v")})
                (self._undone.add if undone else self._undone.discard)(step.number)
        self._line += 1
        return steps

    def follow(self, record: dict[str, Any]) -> bool:
        """As `Plan.follow`: only records that add requests, or change those that were added here, can be followed."""
        count, known = len(self._order), self._seen or SeenIds()
        steps = self._surveyed(record)
        added = [step.number for step in steps if not step.path]
        cut = len(self._order) < count + len(added)
        if cut or self._undone or any(step.missing or step.number < self._before for step in steps):
            return False
        for name in (self._ids[number] for number in added):
            if name in known:
                return False
            known.add(name)
        self._seen = known
        return True

    def settle(self) -> None:
        self._seen = SeenIds(room=2 * len(self._ids) + 64)
        for name in self._ids.values():
            self._seen.add(name)
        live = set(self._order) - self._undone
        if count := len(self._counting() - live):
            self.hidden[REMOVED] = count

    def _counting(self) -> set[int]:
        """The last version of each request."""
        return set({name: number for number, name in self._ids.items()}.values())

    def newest(self, record: dict[str, Any]) -> None:
        """None: `complete` knows the versions."""

    def verdict(self, record: dict[str, Any]) -> Verdict:
        return Verdict.SHOWN  # `complete` is used in its place

    def state(self) -> bytes:
        return msgpack.encode(_State(len(self._order), (self._seen or SeenIds()).state()))

    # -- the second pass

    def begin(self) -> None:
        """Begin the second pass, over the records that the first one saw."""
        self._counts = self._counting()
        self._live = set(self._order) - set(range(self._before))
        self._waiting = [number for number in reversed(self._order) if number >= self._before]
        self._held: dict[int, tuple[dict[str, Any], Place]] = {}
        self._reported: set[int] = set()
        self._restart()
        self._line = 0

    def complete(self, record: dict[str, Any], place: Place) -> Iterator[Request | Missing]:
        """The requests that are complete once this record was read, each as soon as those before it are."""
        line, self._line = self._line, self._line + 1
        steps = self._steps(record)
        lost = set[int]()
        for step in steps:
            there = not step.missing
            if not step.path:
                self._held[step.number] = (object_or_value(step.value), place)
            elif step.number in self._held:
                there = _changed(self._held[step.number][0], step.path, record)
            if not there:
                lost.add(step.number)
        if lost - self._reported:
            yield Missing(place)
            self._reported |= lost
        for number in dict.fromkeys(step.number for step in steps):
            if number in self._held and number not in self._live and self._last[number] == line:
                value, begin = self._held.pop(number)
                if number in self._counts:
                    yield Request(value, begin, shown=False)
        while self._waiting and (number := self._waiting[-1]) in self._held and self._last[number] <= line:
            self._waiting.pop()
            value, begin = self._held.pop(number)
            yield Request(value, begin, shown=number not in self._undone)

    # -- both passes

    def _steps(self, record: dict[str, Any]) -> list[_Step]:
        """The changes of requests by a record. Updates the list of requests."""
        kind, path = record.get("kind"), record.get("k")
        if not is_change(record):
            return []
        if kind == INITIAL:
            return self._cut(list_of(record["v"].get("requests")), 0)
        if not isinstance(path, list) or path[0] != "requests":
            return []
        if len(path) == 1:
            at = record.get("i") if kind == PUSH else 0
            return self._cut(list_of(record.get("v")) if kind != DELETE else [], at)
        at, below = path[1], tuple(path[2:])
        if not _is_index(at) or at > len(self._order) + LARGEST_GAP or (below and below[0] in _NOT_READ):
            return []
        steps = self._fill(at + bool(below))
        if below:
            return [*steps, _Step(self._order[at], below)]
        if at == len(self._order):
            return [*steps, self._new(record.get("v"))]
        added = self._new(record.get("v"))
        self._order[at] = self._order.pop()
        return [*steps, added]

    def _cut(self, values: list[Any], at: Any) -> list[_Step]:
        """Cut the list at an index, if there is one, and add requests."""
        steps = list[_Step]()
        if _is_index(at) and at <= len(self._order) + LARGEST_GAP:
            steps = self._fill(at)
            del self._order[at:]
        return [*steps, *map(self._new, values)]

    def _fill(self, count: int) -> list[_Step]:
        """Add empty requests in the place of those whose lines were damaged, so that all others keep their index."""
        return [self._new({}, missing=True) for _ in range(count - len(self._order))]

    def _new(self, value: Any, *, missing: bool = False) -> _Step:
        self._order.append(self._added)
        self._added += 1
        return _Step(self._added - 1, (), value, missing)


def is_change(record: dict[str, Any]) -> bool:
    """True for a record of a kind that this module knows."""
    kind, path = record.get("kind"), record.get("k")
    if type(kind) is not int or not INITIAL <= kind <= DELETE:
        return False
    if kind == INITIAL:
        return isinstance(record.get("v"), dict)
    return isinstance(path, list) and bool(path) and all(isinstance(one, str | int) for one in path)


def _is_index(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_undone(request: dict[str, Any]) -> bool:
    """True if the user went back behind a request, so that the next one takes its place."""
    removed = request.get("shouldBeRemovedOnSend")
    return request.get("isHidden") is True or (isinstance(removed, dict) and not removed.get("afterUndoStop"))


def _has(holder: Any, key: str | int) -> bool:
    if isinstance(holder, list):
        return type(key) is int and 0 <= key < len(holder)
    return isinstance(holder, dict) and isinstance(key, str) and key in holder


def _changed(holder: Any, path: tuple[str | int, ...], record: dict[str, Any]) -> bool:
    """Change a value within a request; False if there is nothing at the path."""
    for step in path[:-1]:
        if not _has(holder, step):
            return False
        holder = holder[step]
    key: Any = path[-1]
    kind, value = record["kind"], record.get("v")
    if isinstance(holder, list) and kind == SET and key == len(holder):
        holder.append(value)
        return True
    if not _has(holder, key) and not (isinstance(holder, dict) and isinstance(key, str)):
        return False
    if kind == PUSH:
        kept = list_of(_get(holder, key)) if _has(holder, key) else []
        if _is_index(record.get("i")):
            del kept[record["i"] :]
        kept.extend(list_of(value))
        value = kept
    elif kind != SET:
        value = None
    _put(holder, key, value)
    return True


def _get(holder: Any, key: Any) -> Any:
    return holder[key]


def _put(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value
