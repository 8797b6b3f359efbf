"""Checkpoints with named channels: large values are stored once, and stay as long as something refers to them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Corrupt
from sessionary.layouts.records.checkpoints import (
    BLOB_BYTES,
    BLOBS,
    Place,
    copied,
    keep,
    lineage,
    places,
    put,
    put_writes,
    typed,
    values_at,
    writes_at,
)
from sessionary.layouts.records.journal import RecordJournal

LARGE = "x" * 20_000
ROOT, SUBGRAPH = "", "agent:1"


def open_in(folder: Path, name: str = "one") -> RecordJournal:
    return RecordJournal(folder, "langgraph", name, durability="none")


def stored(value: str) -> bytes:
    return typed("text", value.encode())


def store(journal: RecordJournal, place: Place, parent: str | None = None, **values: Any) -> int:
    """Store a checkpoint whose channels all have changed; return the bytes that it added."""
    before = Path(journal.path).stat().st_size if Path(journal.path).exists() else 0
    changed = {
        name: [*map(stored, one)] if isinstance(one, list) else stored(one) for name, one in values.items()
    }
    journal.change(
        lambda state: put(state, place, parent, values, {}, changed, lambda _: b"", metadata=b"{}")
    )
    return Path(journal.path).stat().st_size - before


def read(journal: RecordJournal, place: Place) -> dict[str, Any]:
    return journal.read(lambda state: values_at(state, place, lambda one: one[1].decode()))


def written(journal: RecordJournal, place: Place) -> list[tuple[Any, ...]]:
    return journal.read(lambda state: writes_at(state, place))


def blobs(journal: RecordJournal) -> list[str]:
    return [*journal.state().tables.get(BLOBS, ())]


def test_a_large_value_is_stored_once_by_its_hash(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    assert store(journal, Place(ROOT, "1"), document=LARGE) > 20_000
    key = sha256(stored(LARGE)).hexdigest()
    assert blobs(journal) == [key]
    size = Path(journal.path).stat().st_size
    journal.change(
        lambda state: put_writes(state, Place(ROOT, "1"), {("t", 0): ("document", stored(LARGE), "p")})
    )
    store(journal, Place(SUBGRAPH, "2"), document=LARGE, copy=LARGE)
    store(journal, Place(ROOT, "3"), "1", document=LARGE)
    assert Path(journal.path).stat().st_size - size < 1500
    for reader in (journal, open_in(tmp_path)):
        assert blobs(reader) == [key]
        assert read(reader, Place(SUBGRAPH, "2")) == {"document": LARGE, "copy": LARGE}
        assert read(reader, Place(ROOT, "3")) == {"document": LARGE}
        assert written(reader, Place(ROOT, "1")) == [("t", 0, "document", "text", LARGE.encode(), "p")]


def test_a_small_value_costs_no_reference(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    small, large = "x" * 12_270, "x" * 12_271
    assert len(stored(small)) < BLOB_BYTES <= len(stored(large))
    store(journal, Place(ROOT, "1"), small=small, large=large)
    assert blobs(journal) == [sha256(stored(large)).hexdigest()]
    assert read(journal, Place(ROOT, "1")) == {"small": small, "large": large}


def test_what_is_kept_keeps_its_large_values(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    for number in range(4):
        place = Place(ROOT, str(number))
        store(journal, place, str(number - 1), document=LARGE + str(number), items=["a", "b"])
        write = {("t", 0): ("document", stored(f"{number}{LARGE}"), "")}
        journal.change(lambda state, place=place, write=write: put_writes(state, place, write))  # type: ignore[misc]
    assert len(blobs(journal)) == 8
    journal.change(lambda state: keep(state, [Place(ROOT, "2")]))
    for reader in (journal, open_in(tmp_path)):
        assert len(blobs(reader)) == 2
        assert [*places(reader.state())] == [Place(ROOT, "2")]
        assert read(reader, Place(ROOT, "2")) == {"document": LARGE + "2", "items": ["a", "b"]}
        assert written(reader, Place(ROOT, "2"))[0][4] == f"2{LARGE}".encode()
    assert journal.read(lambda state: keep(state, [Place(ROOT, "2")])) is None


def test_a_copy_has_the_large_values(tmp_path: Path) -> None:
    journal, other = open_in(tmp_path), open_in(tmp_path, "two")
    store(journal, Place(ROOT, "1"), document=LARGE, items=["a", "b"])
    store(other, Place(ROOT, "0"), items=["c"])
    content = journal.state()
    other.change(lambda state: copied(content.items, content.tables, state))
    assert read(other, Place(ROOT, "1")) == {"document": LARGE, "items": ["a", "b"]}


def test_a_large_value_of_a_damaged_record_is_reported_and_stored_again(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    store(journal, Place(ROOT, "1"), document=LARGE)
    store(journal, Place(ROOT, "2"), document=LARGE)
    write = {("t", 0): ("document", stored(LARGE), "")}
    journal.change(lambda state: put_writes(state, Place(ROOT, "2"), write))
    path = Path(journal.path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:-5] + b"\n", *lines[2:]]))
    again = open_in(tmp_path)
    with pytest.raises(Corrupt, match=r"^'document' of checkpoint 2 cannot be read$") as raised:
        read(again, Place(ROOT, "2"))
    assert (raised.value.path, raised.value.session) == (again.path, "one")
    assert "sessionary check" in str(raised.value.hint)
    with pytest.raises(Corrupt, match="a write of checkpoint 2"):
        written(again, Place(ROOT, "2"))
    store(again, Place(ROOT, "3"), document=LARGE)
    assert read(again, Place(ROOT, "2")) == {"document": LARGE}
    assert written(again, Place(ROOT, "2"))[0][4] == LARGE.encode()


def test_a_lineage_ends_where_all_channels_have_a_value(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    for number, values in enumerate(({"a": "1"}, {"b": "1"}, {"c": "1"}, {"d": "1"})):
        store(journal, Place(ROOT, str(number)), str(number - 1) if number else None, **values)

    def names(*channels: str) -> str:
        return "".join(one.name for one in lineage(journal.state(), Place(ROOT, "3"), channels))

    assert (names(), names("d"), names("b"), names("c", "a"), names("unknown")) == (
        "3",
        "3",
        "321",
        "3210",
        "3210",
    )
