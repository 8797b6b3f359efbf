"""Lists whose elements are items: what is stored of them, and what is read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec import Raw

from sessionary.errors import Corrupt
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.lists import continued, numbers_in, spans_in_list
from sessionary.layouts.records.state import State
from sessionary.layouts.records.view import FEW_RANGES, SNAPSHOT_STEPS

TABLE = "values"


def open_in(folder: Path) -> RecordJournal:
    return RecordJournal(folder, "langgraph", "one", durability="none")


def store(journal: RecordJournal, key: str, base: str | None, elements: list[int]) -> int:
    """Store a list, and return how many items that added."""
    add: list[Raw] = []

    def decide(state: State) -> Change:
        encoded = [json.dumps(one).encode() for one in elements]
        stored, _ = continued(state, TABLE, base, encoded, add)
        return Change(add=add, set={TABLE: {key: stored}})

    journal.change(decide)
    return len(add)


def read(state: State, key: str) -> list[int]:
    spans = spans_in_list(state, TABLE, state.value(TABLE, key))
    return [json.loads(bytes(state.items[number])) for number in numbers_in(spans)]


@pytest.mark.parametrize("seed", range(6))
def test_any_list_is_read_as_it_was_stored(tmp_path: Path, seed: int) -> None:
    choose, journal = random.Random(seed), open_in(tmp_path)
    lists: dict[str, list[int]] = {"0": [1, 2, 3]}
    store(journal, "0", None, lists["0"])
    for step in range(1, 400):
        base = choose.choice([*lists][-5:])
        elements = list(lists[base])
        if choose.random() < 0.3 and elements:
            del elements[choose.randrange(len(elements))]
        if choose.random() < 0.1:
            choose.shuffle(elements)
        elements += [choose.randint(1, 400) for _ in range(choose.randint(0, 2))]
        lists[str(step)] = elements
        store(journal, str(step), base if choose.random() < 0.9 else None, elements)
        if choose.random() < 0.05:
            journal = open_in(tmp_path)
    for reader in (journal, open_in(tmp_path)):
        assert {key: read(reader.state(), key) for key in lists} == lists


def test_a_list_of_elements_that_are_there_adds_none(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    assert store(journal, "all", None, list(range(100))) == 100
    assert store(journal, "again", None, list(range(100))) == 0
    assert store(journal, "later ones", "all", list(range(40, 100))) == 0
    assert store(journal, "with others", "all", [*range(0, 100, 3), 1000]) == 1
    assert store(journal, "backwards", "all", [2, 1, 0]) == 2
    journal.change(lambda _: Change(drop=[(0, 49)]))
    assert store(journal, "dropped", None, list(range(100))) == 99  # 0 stands behind all others


def test_lists_that_build_on_one_another_do_so_in_a_limit(tmp_path: Path) -> None:
    journal, elements = open_in(tmp_path), list[int]()
    for step in range(2 * SNAPSHOT_STEPS):
        elements.append(2 * step)
        store(journal, "other", None, [-step - 1])  # so that each element is a range
        store(journal, str(step), str(step - 1), elements)
    state = journal.state()
    depths = [state.value(TABLE, str(step))["depth"] for step in range(2 * SNAPSHOT_STEPS)]
    assert (depths[FEW_RANGES - 1], depths[FEW_RANGES], max(depths)) == (0, 1, SNAPSHOT_STEPS - 1)
    assert read(state, str(2 * SNAPSHOT_STEPS - 1)) == elements


def test_a_list_that_lost_what_it_builds_on_is_refused_and_stored_anew(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    for step in range(FEW_RANGES + 2):
        store(journal, "other", None, [-step - 1])
        store(journal, str(step), str(step - 1), list(range(step + 1)))
    last = str(FEW_RANGES + 1)
    assert journal.state().value(TABLE, last)["from"] is not None
    journal.change(lambda state: Change(unset={TABLE: [state.value(TABLE, last)["from"]]}))
    with pytest.raises(Corrupt):
        read(journal.state(), last)
    store(journal, "next", last, list(range(FEW_RANGES + 3)))
    assert read(journal.state(), "next") == list(range(FEW_RANGES + 3))
