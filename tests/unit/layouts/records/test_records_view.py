"""The items that a journal shows, stored as what changed of them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.state import Ranges, Spans, State, spans_of
from sessionary.layouts.records.survey import Survey
from sessionary.layouts.records.view import FEW_RANGES, SNAPSHOT_STEPS, VIEW, showing, shown_in

DAMAGED = b"damaged"


def show(journal: RecordJournal, numbers: list[int], add: int = 2) -> None:
    """Add items, and show those of these numbers."""

    def decide(state: State) -> Change:
        shown, unset = showing(state.tables.get(VIEW, {}), spans_of(numbers))
        return Change(["x"] * add, set={VIEW: shown}, unset={VIEW: unset} if unset else {})

    journal.change(decide)


def records(journal: RecordJournal) -> list[dict[str, Any]]:
    lines = Path(journal.path).read_bytes().splitlines()
    return [json.loads(line) for line in lines if line != DAMAGED]


def surveyed(journal: RecordJournal) -> Spans:
    survey = Survey()
    for record in records(journal):
        survey.add(record)
    return Ranges(survey.shown or []).spans


def open_in(folder: Path) -> RecordJournal:
    return RecordJournal(folder, "langgraph", "one", durability="none")


@pytest.mark.parametrize("seed", range(6))
def test_any_conversation_is_read_as_it_was_shown(tmp_path: Path, seed: int) -> None:
    choose, journal = random.Random(seed), open_in(tmp_path)
    numbers: list[int] = []
    for step in range(700):
        if choose.random() < 0.1:
            numbers = numbers[: -choose.randint(1, 5 if choose.random() < 0.9 else 200)]
        numbers = [*numbers, *(2 * step + one for one in (0, 1) if choose.random() < 0.6)]
        show(journal, numbers)
        state = journal.state() if choose.random() < 0.9 else open_in(tmp_path).state()
        assert shown_in(state.tables[VIEW]) == spans_of(numbers)
    assert surveyed(journal) == spans_of(numbers)


def test_a_record_of_a_growing_conversation_holds_what_is_new(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    for step in range(3 * SNAPSHOT_STEPS):
        show(journal, list(range(0, 2 * step + 1, 2)))
    views = [record["set"][VIEW] for record in records(journal)[1:]]
    whole = [number for number, view in enumerate(views) if "items" in view]
    assert whole == [*range(FEW_RANGES), *range(FEW_RANGES + SNAPSHOT_STEPS - 1, len(views), SNAPSHOT_STEPS)]
    added = [
        (number, one) for number, view in enumerate(views) for one in view.values() if number not in whole
    ]
    assert added == [
        (number, {"below": 2 * number, "then": [[2 * number, 2 * number]]}) for number, _ in added
    ]
    assert len(journal.state().tables[VIEW]) <= SNAPSHOT_STEPS


def test_another_branch_is_stored_as_a_whole(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    for step in range(30):
        show(journal, list(range(0, 2 * step + 1, 2)))
    show(journal, list(range(1, 60, 2)))
    last = records(journal)[-1]
    assert last["set"][VIEW] == {"items": [[number, number] for number in range(1, 60, 2)]}
    assert journal.state().tables[VIEW].keys() == {"items"}
    assert surveyed(journal) == spans_of(range(1, 60, 2))


@pytest.mark.parametrize(
    "stored", [None, 1, "x", [], {}, {"below": "x", "then": [[9, 9]]}, {"below": None}, {"then": [[9, 9]]}]
)
def test_a_key_of_another_shape_changes_nothing(tmp_path: Path, stored: Any) -> None:
    journal = open_in(tmp_path)
    journal.change(lambda _: Change(["x"] * 10, set={VIEW: {"items": [[0, 0], [2, 4]], "items+1": stored}}))
    assert shown_in(journal.state().tables[VIEW]) == surveyed(journal) == [(0, 0), (2, 4)]


def test_a_missing_key_is_not_written_over_by_a_later_one(tmp_path: Path) -> None:
    journal, numbers = open_in(tmp_path), list(range(0, 24, 2))
    for step in range(1, len(numbers) + 1):
        show(journal, numbers[:step])
    path = Path(journal.path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-2], DAMAGED + b"\n", lines[-1]]))
    again = open_in(tmp_path)
    show(again, [*numbers[:-2], numbers[-1], 24])
    assert (
        shown_in(again.state().tables[VIEW]) == surveyed(again) == spans_of([*numbers[:-2], numbers[-1], 24])
    )
