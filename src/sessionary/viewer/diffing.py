"""Comparison of two sessions: their totals, and their turns."""

from __future__ import annotations

from typing import Any

from sessionary.export.wording import one_line
from sessionary.model import AGENT, PERSON
from sessionary.transcript.typed import numbered
from sessionary.viewer.library import Place, key_of
from sessionary.workspace import documents

TURNS = 400
"""Turns of each session that are shown."""

_ROWS = 60
"""Tools, and files, that are shown: those that differ most."""

_LONGEST = 400


def diff(one: Place, other: Place) -> dict[str, Any]:
    """Two sessions, with the fields of docs/cli-json.md, and the turns of both.

    Raises:
        NotFound: a session is gone.
    """
    found = documents.of_comparison(one.workspace.diff(one.ref, other.ref))
    for side, place in ((found["a"], one), (found["b"], other)):
        side |= {"key": key_of(place.ref), "title": one_line(side["title"] or side["id"], _LONGEST)}
        side["models"] = list(map(one_line, side["models"]))
    rows = {name: _most_different(found[name], key) for name, key in (("tools", "name"), ("files", "file"))}
    turns = [_turns(place) for place in (one, other)]
    most = max(map(len, turns))
    pairs = [[side[at] if at < len(side) else None for side in turns] for at in range(min(most, TURNS))]
    return found | rows | {"rows": pairs, "more": max(most - TURNS, 0)}


def _most_different(counts: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The counts that differ most."""
    return [row | {key: one_line(row[key], _LONGEST)} for row in documents.most_different(counts)[:_ROWS]]


def _turns(place: Place) -> list[dict[str, Any]]:
    """The turns of a session: the prompt, the last words of the agent, and how often it called tools."""
    found: list[dict[str, Any]] = []
    for one in numbered(place.workspace.read(place.ref)):
        if one.turn == 0:
            continue
        if one.turn > len(found):
            found.append({"index": one.index, "prompt": "", "answer": "", "calls": 0, "errors": 0})
        turn, message = found[-1], one.message
        if message.origin == PERSON and not turn["prompt"]:
            turn["prompt"] = one_line(message.text, _LONGEST)
        elif message.origin == AGENT and message.text.strip():
            turn["answer"] = one_line(message.text, _LONGEST)
        turn["calls"] += len(message.calls)
        turn["errors"] += sum(result.is_error for result in message.results)
    return found
