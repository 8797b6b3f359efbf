"""ATIF 1.8, the Agent Trajectory Interchange Format of Harbor: one document, one step per line.

A result is in the step of its call, so the steps from the oldest open call on are held back, up to `WINDOW`. What
ATIF has no field for is under ``extra.sessionary``, so `sessionary import` reads back the same messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from sessionary.export.atif_steps import (
    OF_TOOL,
    VERSION,
    Document,
    metrics_of,
    result_of,
    results_message,
    step_of,
    unused,
)
from sessionary.export.documents import json_text, of_content, of_usage
from sessionary.export.exact import OWN, header_beyond, kept, own, plain, text
from sessionary.export.losses import FORM, Report
from sessionary.export.steps import Begin, End, Head, Steps
from sessionary.model import PERSON, Message, Place, Usage
from sessionary.transcript.fold import short_title
from sessionary.transcript.typed import Numbered

WINDOW = 1000
"""Steps that are held back for the result of a call; a later result gets a step of its own."""
FACTS = ("title", "cwd", "branch", "parent", "version")
"""The fields of a session that are kept under ``extra.sessionary``."""
_UNKNOWN = "unknown"
_COST_DIGITS = 9


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    sessions: list[_Trajectory] = []
    for step in steps:
        if isinstance(step, Begin):
            if sessions:
                yield from sessions[-1].begin_child()
            used = sessions[-1].names if sessions else set[str]()
            sessions.append(_Trajectory(step.head, unused(plain(step.head.id), used), report))
            yield from sessions[-1].begin()
        elif isinstance(step, Numbered):
            yield from sessions[-1].message(step)
        elif isinstance(step, End):
            yield from sessions.pop().end()


class _Held:
    """A step that is not written yet, with those of its calls whose results are missing."""

    def __init__(self, step: Document) -> None:
        self.step = step
        self.open: set[str] = set()


class _Trajectory:
    """A session that is being written."""

    def __init__(self, head: Head, name: str, report: Report) -> None:
        self.names: set[str] = set()
        self._head = head
        self._name = name
        self._report = report
        self._held: deque[_Held] = deque()
        self._calls: dict[str, tuple[_Held, str]] = {}
        self._written = 0
        self._read = 0
        self._models = set(head.models)
        self._usage: Usage | None = None
        self._title: str | None = None
        self._ended = False

    def begin(self) -> Iterator[str]:
        head = {"schema_version": VERSION, "session_id": self._name, "trajectory_id": self._name}
        yield json_text(head)[:-1] + ', "steps": ['

    def begin_child(self) -> Iterator[str]:
        if self._ended:
            yield ","
            return
        yield from self._end_steps()
        yield ', "subagent_trajectories": ['

    def end(self) -> Iterator[str]:
        has_children = self._ended
        if not has_children:
            yield from self._end_steps()
        yield "]}" if has_children else "}"

    def message(self, numbered: Numbered) -> Iterator[str]:
        message, at = numbered.message, self._read
        self._read += 1
        self._count(message, outside=numbered.outside)
        document = of_content(message)
        results = [part for part in document["parts"] if part["type"] == "tool_result"]
        known = [part for part in results if part["id"] in self._calls]
        if known and known == document["parts"] and not numbered.outside:
            self._attach(document, at, message.place)
        else:
            self._add(document, at, numbered)
            for part in known:
                self._put(part, {"copy": True})
            self._own_results([part for part in results if part not in known])
        yield from self._ready(WINDOW)

    def _attach(self, document: Document, at: int, place: Place) -> None:
        """Put the results of a message into the steps of their calls."""
        placed = [self._put(part, {"at": at}) for part in document["parts"]]
        first, step = placed[0]
        found = [result for result, _ in placed]
        self._extend(first, {"at": at, "header": header_beyond(document, OF_TOOL)}, place)
        one_step = all(other is step for _, other in placed)
        if not one_step or results_message(found, step) != document:
            self._extend(first, {"at": at, "message": document}, place)
            for result in found[1:]:
                self._extend(result, {"copy": True}, place)

    def _extend(self, result: Document, ours: Document, place: Place) -> None:
        known = {} if "message" in ours else own(result["extra"])
        known.pop("at", None)
        stored, whole = kept({**known, **ours})
        result["extra"] = {OWN: stored}
        self._check(whole, place)

    def _put(self, part: Document, ours: Document) -> tuple[Document, Document]:
        """Put a result into the step of its call; returns it, and the step."""
        held, written = self._calls.pop(part["id"])
        result, _ = result_of(part, written, ours)
        held.step.setdefault("observation", {"results": []})["results"].append(result)
        held.open.discard(part["id"])
        return result, held.step

    def _add(self, document: Document, at: int, numbered: Numbered) -> None:
        step, whole = step_of(document, at, outside=numbered.outside)
        self._check(whole, numbered.message.place)
        held = _Held(step)
        self._held.append(held)
        calls = [part["id"] for part in document["parts"] if part["type"] == "tool_call"]
        for call_id, call in zip(calls, step.get("tool_calls", ()), strict=False):
            if call_id is not None and not numbered.outside:
                self._forget(call_id)
                self._calls[call_id] = held, call["tool_call_id"]
                held.open.add(call_id)

    def _own_results(self, parts: list[Document]) -> None:
        """Show results without a call in the observation of the step that is theirs."""
        step = self._held[-1].step
        for part in parts:
            result, _ = result_of(part, None, {"copy": True})
            step.setdefault("observation", {"results": []})["results"].append(result)

    def _forget(self, call_id: str) -> None:
        if call_id in self._calls:
            self._calls.pop(call_id)[0].open.discard(call_id)

    def _ready(self, window: int) -> Iterator[str]:
        """The steps that wait for nothing, and those before the last `window`."""
        while self._held and (len(self._held) > window or not self._held[0].open):
            held = self._held.popleft()
            for call_id in list(held.open):
                self._forget(call_id)
            yield self._line(held.step)

    def _line(self, step: Document) -> str:
        self._written += 1
        return ("," if self._written > 1 else "") + json_text({"step_id": self._written, **step})

    def _end_steps(self) -> Iterator[str]:
        self._ended = True
        yield from self._ready(0)
        if not self._written:  # ATIF wants a step
            yield self._line({"source": "system", "message": "", "extra": {OWN: {"empty": True}}})
        head, usage = self._head, self._head.usage or self._usage
        models = sorted(self._models)
        agent = {"name": head.agent or head.kind, "version": head.version or _UNKNOWN}
        if len(models) == 1:
            agent["model_name"] = models[0]
        ours: dict[str, Any] = {"models": models, **self._facts()}
        end: dict[str, Any] = {"agent": agent}
        if usage is not None:
            ours["usage"] = stated = of_usage(_rounded(usage)) or {}
            metrics = metrics_of(stated)
            end["final_metrics"] = {f"total_{name}": value for name, value in metrics.items()}
        end["extra"] = {OWN: kept(ours)[0]}
        yield "], " + json_text(plain(end))[1:-1]

    def _facts(self) -> dict[str, str]:
        """The facts of the session. A title that readers take from its messages is left out."""
        facts = {name: text(getattr(self._head, name) or "") for name in FACTS}
        title = short_title(facts["title"])
        facts["title"] = "" if title is None or title == self._title else title
        return {name: fact for name, fact in facts.items() if fact}

    def _count(self, message: Message, *, outside: bool) -> None:
        if message.model is not None and (message.usage is not None or not outside):
            self._models.add(message.model)
        if message.usage is not None:
            self._usage = message.usage if self._usage is None else self._usage.plus(message.usage)
        if self._title is None and message.origin == PERSON and not outside:
            self._title = short_title(text(message.text))

    def _check(self, whole: bool, place: Place) -> None:
        if not whole:
            self._report.lose(FORM, "value", place)


def _rounded(usage: Usage) -> Usage:
    """Usage with a cost that does not depend on the order in which it was summed."""
    from msgspec.structs import replace

    return usage if usage.cost is None else replace(usage, cost=round(usage.cost, _COST_DIGITS))
