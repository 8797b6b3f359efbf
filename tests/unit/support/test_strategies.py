"""The strategies really draw what they promise: a strategy that never gets nasty proves nothing."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

from tests.support import strategies

KNOWN = {"metadata", "timestamp", "tool_calls", "tool_call_id", "thinking_text", "name"}
FEW = settings(max_examples=20)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def drawn(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """So many values. Hypothesis draws constants of the modules that are loaded, too, so they differ: ask for many."""
    values: list[Any] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate])
    @given(strategy)
    def draw(value: Any) -> None:
        values.append(value)

    draw()
    return values


def test_text_holds_what_breaks_stores() -> None:
    together = "".join(drawn(strategies.text(), 400))
    assert [nasty for nasty in strategies.NASTY if nasty not in together] == []


WANTED: dict[str, tuple[SearchStrategy[Any], list[Callable[[Any], bool]]]] = {
    "values": (
        strategies.json_values(),
        [
            lambda v: any(isinstance(x, float) and math.isnan(x) for x in leaves(v)),
            lambda v: math.inf in leaves(v),
            lambda v: any(isinstance(x, int) and abs(x) >= 2**64 for x in leaves(v)),
            lambda v: any(isinstance(x, str) and surrogate(x) for x in leaves(v)),
            lambda v: depth(v) >= 3,
        ],
    ),
    "messages": (
        strategies.messages(),
        [
            lambda m: m["content"] is None,
            lambda m: isinstance(m["content"], list) and bool(m["content"]),
            lambda m: m["role"] == "system",
            lambda m: "function" in m.get("tool_calls", [{}])[0],
            lambda m: "tool" in m.get("tool_calls", [{}])[0],
            lambda m: "timestamp" in m and m["timestamp"].endswith("Z"),
            lambda m: bool(set(m) - {"role", "content", *KNOWN}),
        ],
    ),
    "metadata": (
        strategies.metadata(),
        [lambda m: "session_id" not in m, lambda m: "session_id" in m and m.get("parent_id") is not None],
    ),
    "events": (
        strategies.events(),
        [lambda e: e["event"] in strategies.EVENTS and bool(e.get("data")), lambda e: "ts" not in e],
    ),
    "ids": (strategies.session_ids(), [lambda i: "_" in i and ":" in i, lambda i: "_" not in i]),
}


@pytest.mark.parametrize("name", WANTED)
def test_documents_hold_what_agents_store(name: str) -> None:
    strategy, wishes = WANTED[name]
    values = drawn(strategy, 400)
    assert [number for number, wish in enumerate(wishes) if not any(map(wish, values))] == []


def test_transcripts_are_lists_of_messages() -> None:
    transcripts = drawn(strategies.transcripts(max_size=2), 12)
    assert {len(transcript) for transcript in transcripts} == {0, 1, 2}


@FEW
@given(strategies.json_values(finite=True))
def test_finite_values_are_strict_json(value: Any) -> None:
    # Not as escapes: two halves that happen to lie side by side would be read back as one character.
    assert json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False)) == value


@FEW
@given(strategies.deep(50))
def test_deep_is_deep(value: Any) -> None:
    assert depth(value) == 50


@FEW
@given(strategies.messages(), strategies.metadata(), strategies.events())
def test_documents_are_objects_that_json_can_hold(message: Any, metadata: Any, event: Any) -> None:
    for document in (message, metadata, event):
        assert isinstance(document, dict)
        json.dumps(document)
    assert message["role"] in strategies.ROLES
    assert event["event"]


@FEW
@given(strategies.session_ids())
def test_ids_are_plain_names(session_id: str) -> None:
    assert session_id.strip() == session_id != ""
    assert not set(session_id) & set("/\\\0\n")
