"""The items that a journal shows, stored as what changed of them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.state import State
from sessionary.layouts.records.survey import Survey
from sessionary.layouts.records.view import FEW_RANGES, SNAPSHOT_STEPS, VIEW, showing, shown_in
from sessionary.model import Cursor, Item, Message, Reset
from sessionary.transcript.ranges import Spans, spans_of

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
    return survey.shown() or []


def open_in(folder: Path, framework: str = "langgraph") -> RecordJournal:
    return RecordJournal(folder, framework, "one", durability="none")


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
        assert shown_in(state.tables) == spans_of(numbers)
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
    assert shown_in(journal.state().tables) == surveyed(journal) == [(0, 0), (2, 4)]


def test_a_missing_key_is_not_written_over_by_a_later_one(tmp_path: Path) -> None:
    journal, numbers = open_in(tmp_path), list(range(0, 24, 2))
    for step in range(1, len(numbers) + 1):
        show(journal, numbers[:step])
    path = Path(journal.path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-2], DAMAGED + b"\n", lines[-1]]))
    again = open_in(tmp_path)
    show(again, [*numbers[:-2], numbers[-1], 24])
    assert shown_in(again.state().tables) == surveyed(again) == spans_of([*numbers[:-2], numbers[-1], 24])


def grow(choose: random.Random, journal: RecordJournal, lines: list[list[int]]) -> list[int]:
    """Add two items to a branch, which may be a new one, and return the items that lead to them."""
    line = choose.choice(lines)
    if choose.random() < 0.2:
        line = line[: choose.randint(0, len(line))]
        lines.append(line)
    number = journal.state().next_item
    after = (
        {} if not number or (line and line[-1] == number - 1) else {str(number): line[-1] if line else None}
    )
    line += [number, number + 1]
    tables: dict[str, Any] = {VIEW: {"head": number + 1}, **({"after": after} if after else {})}
    journal.change(lambda _: Change([{"role": "user", "content": f"{n}"} for n in line[-2:]], set=tables))
    return line


@pytest.mark.parametrize("seed", range(4))
def test_the_branch_of_the_head_is_shown(tmp_path: Path, seed: int) -> None:
    choose, lines = random.Random(seed), list[list[int]]([[]])
    journal = open_in(tmp_path / "openai-agents", "openai-agents")
    for _ in range(60):
        line = grow(choose, journal, lines)
        assert shown_in(journal.state().tables) == surveyed(journal) == spans_of(line)
    read = RecordsLayout(tmp_path).read(next(iter(RecordsLayout(tmp_path).discover())))
    assert [int(one.text) for one in read if isinstance(one, Message)] == line


def cursors(journal: RecordJournal, home: Path, changes: list[Change]) -> tuple[list[int], int]:
    """The sizes of the cursors after each change, and how many readers had to begin anew."""
    layout = RecordsLayout(home)
    journal.change(lambda _: Change(["x"]))
    ref = next(iter(layout.discover()))
    cursor: Item | None = None
    sizes, resets = list[int](), 0
    for change in changes:
        journal.change(lambda _, change=change: change)  # type: ignore[misc]
        assert cursor is None or isinstance(cursor, Cursor)
        found = list(layout.read(ref, cursor))
        resets += sum(isinstance(one, Reset) for one in found)
        cursor = found[-1]
        assert isinstance(cursor, Cursor)
        sizes.append(len(cursor.state))
    return sizes, resets


def test_a_cursor_of_two_branches_does_not_grow(tmp_path: Path) -> None:
    journal = open_in(tmp_path / "langgraph")
    tree = [
        Change(["x"] * 2, set={VIEW: {"head": 2 * n + 2}, "after": {str(2 * n + 1): 2 * n - 2}})
        for n in range(1, 300)
    ]
    sizes, resets = cursors(journal, tmp_path, [Change(["x"] * 2, set={VIEW: {"head": 2}}), *tree])
    assert max(sizes[200:]) - max(sizes[10:100]) <= 8
    assert resets == 299  # each of them leaves the branch that the cursor had read


def test_a_cursor_of_a_list_of_many_ranges_does_not_grow(tmp_path: Path) -> None:
    journal, view, changes = open_in(tmp_path / "langgraph"), dict[str, Any](), list[Change]()
    for number in range(1, 600):
        shown = [(2 * one, 2 * one) for one in range(1, number + 1)]
        new, unset = showing({key: json.dumps(one).encode() for key, one in view.items()}, shown)
        view = {key: one for key, one in {**view, **new}.items() if key not in unset}
        changes.append(Change(["x"] * 2, set={VIEW: new}, unset={VIEW: unset} if unset else {}))
    sizes, resets = cursors(journal, tmp_path, changes)
    assert max(sizes) < 200
    assert resets == 600 // SNAPSHOT_STEPS


@pytest.mark.parametrize("key", ["items", "items+1", "title", "head"])
def test_a_key_that_was_removed_does_not_count(tmp_path: Path, key: str) -> None:
    shown = {"items": [[0, 1]], "items+1": {"below": 2, "then": [[3, 3]]}, "title": "T"}
    journal = open_in(tmp_path / "langgraph")
    journal.change(lambda _: Change(list("abcd"), set={VIEW: {"head": 0} if key == "head" else shown}))
    layout = RecordsLayout(tmp_path)
    ref = next(iter(layout.discover()))
    cursor = list(layout.read(ref))[-1]
    journal.change(lambda _: Change(unset={VIEW: [key]}))
    whole = list(layout.read(ref))
    assert isinstance(cursor, Cursor)
    again = list(layout.read(ref, cursor))
    assert [again[0], *again[1:]] == ([Reset(), *whole] if key != "title" else [again[0]])
    survey = Survey()
    for record in records(journal):
        survey.add(record)
    expected = {"items": None, "items+1": [(0, 1)], "title": [(0, 1), (3, 3)], "head": None}
    assert survey.shown() == shown_in(journal.state().tables) == expected[key]
    assert survey.facts == ({"title": "T"} if key.startswith("items") else {})
