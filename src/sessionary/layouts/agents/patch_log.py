"""The plan of a log of messages that later records update, replace, remove or take back, as Gemini CLI writes it.

A record with an id is a message, or a new version of it, which takes its place. ``$rewindTo`` removes a message and
all after it (all, if the id is unknown), ``$patch`` changes, removes or reorders messages, and ``$set.messages``
replaces all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from sessionary.layouts.agents.fields import list_of, object_of, object_or_value, text_or_none
from sessionary.layouts.agents.logs import Verdict
from sessionary.model import Place, Record
from sessionary.transcript.seen_ids import SeenIds

TAKEN_BACK = "removed by a rewind or a replacement"


class Ready(NamedTuple):
    """A message, the place that was given with its record, and whether it is shown."""

    message: dict[str, Any]
    place: Place
    shown: bool = True


class PatchLog:
    """The messages that count, and their order; see `logs.Plan`. Keeps the id of each message in memory.

    Args:
        state: the ids before a cursor; None to read from the start.
    """

    def __init__(self, state: bytes | None = None) -> None:
        self.hidden: Counter[str] = Counter()
        self.is_plain = False
        self._known = None if state is None else SeenIds(state)
        self._ids: set[str] = set()
        self._last: dict[str, int] = {}  # of each message in order: the record that completes it
        self._base: dict[str, int] = {}  # of each message: the record with its last version
        self._number = 0
        self._waiting: list[str] = []
        self._held: dict[str, Ready] = {}

    def survey(self, found: Record) -> None:
        self._add(found.value)

    def _add(self, record: dict[str, Any]) -> None:
        number, self._number = self._number, self._number + 1
        kind = kind_of(record)
        if kind == "rewind":
            order = list(self._last)
            target = record["$rewindTo"]
            for key in order[order.index(target) if target in self._last else 0 :]:
                del self._last[key]
        elif kind == "patch":
            self._patch(record["$patch"], number)
        elif kind == "set" and "messages" in record["$set"]:
            self._last = {}
        for key, _ in versions(record, number):
            self._ids.add(key)
            self._last[key] = self._base[key] = number

    def _patch(self, patch: dict[str, Any], number: int) -> None:
        for change in updates(patch):
            if change["id"] in self._last:
                self._last[change["id"]] = number
        for key in list_of(patch.get("removeIds")):
            if isinstance(key, str):
                self._last.pop(key, None)
        for key in list_of(patch.get("orderIds")):
            if isinstance(key, str) and key in self._last:
                self._last[key] = self._last.pop(key)

    def follow(self, record: dict[str, Any]) -> bool:
        kind, known = kind_of(record), self._known or SeenIds()
        if kind in ("rewind", "patch") or "messages" in (record["$set"] if kind == "set" else record):
            return False
        for key, _ in versions(record, self._number):
            if kind == "message" and key in known:
                return False
            known.add(key)
        self._add(record)
        return True

    def settle(self) -> None:
        if count := len(self._ids) - len(self._last):
            self.hidden[TAKEN_BACK] = count
        self._known = SeenIds(room=2 * len(self._ids) + 64)
        for key in self._ids:
            self._known.add(key)

    def newest(self, record: dict[str, Any]) -> None:
        """None: `complete` knows the versions."""

    def verdict(self, record: dict[str, Any]) -> Verdict:
        return Verdict.SHOWN  # `complete` is used in its place

    def begin(self) -> None:
        """Begin the second pass, over the records that the first one saw."""
        self._waiting, self._number = list(reversed(self._last)), 0

    def complete(self, record: dict[str, Any], place: Place) -> Iterator[Ready]:
        """The messages that are complete once this record was read, each as soon as those before it are.

        A message is held until the record with its last version, and with it those that follow it.
        """
        number, self._number = self._number, self._number + 1
        if kind_of(record) == "patch":
            for change in updates(record["$patch"]):
                if change["id"] in self._held:
                    old = self._held[change["id"]]
                    self._held[change["id"]] = Ready(_changed(old.message, change), old.place)
        for key, message in versions(record, number):
            if self._base.get(key) == number:
                if key in self._last:
                    self._held[key] = Ready(message, place)
                else:
                    yield Ready(message, place, shown=False)
        while self._waiting and (key := self._waiting[-1]) in self._held and self._last[key] <= number:
            self._waiting.pop()
            yield self._held.pop(key)

    def state(self) -> bytes:
        return (self._known or SeenIds()).state()


def kind_of(record: dict[str, Any]) -> str:
    """The kind of a record: ``rewind``, ``patch``, ``message``, ``set``, ``metadata`` or ``unknown``."""
    if isinstance(record.get("$rewindTo"), str):
        return "rewind"
    if isinstance(record.get("$patch"), dict):
        return "patch"
    if isinstance(record.get("id"), str):
        return "message"
    if isinstance(record.get("$set"), dict):
        return "set"
    return "metadata" if isinstance(record.get("sessionId"), str) else "unknown"


def versions(record: dict[str, Any], number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages that a record states, by id; one without an id gets a name of its own."""
    kind = kind_of(record)
    if kind in ("message", "unknown"):
        yield record["id"] if kind == "message" else f"\0{number}", record
    elif kind in ("set", "metadata"):
        for at, one in enumerate(list_of((record["$set"] if kind == "set" else record).get("messages"))):
            message = object_or_value(one)
            yield text_or_none(message.get("id")) or f"\0{number}.{at}", message


def updates(patch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The changes of single messages that a patch states."""
    for change in (patch, *list_of(patch.get("updates"))):
        if isinstance(change, dict) and isinstance(change.get("id"), str):
            yield change


def _changed(message: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A message with another content, or with other results of its tools."""
    message = dict(message)
    if change.get("content") is not None:
        message["content"] = change["content"]
    results = {
        one["id"]: one["result"]
        for one in map(object_of, list_of(change.get("toolCalls")))
        if isinstance(one.get("id"), str) and "result" in one
    }
    if results:
        message["toolCalls"] = [
            {**call, "result": results[name]}
            if isinstance(name := object_of(call).get("id"), str) and name in results
            else call
            for call in list_of(message.get("toolCalls"))
        ]
    return message
