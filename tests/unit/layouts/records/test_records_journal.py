"""The journal of a framework's session: one transaction a line, for many writers, with snapshots."""

import json
import multiprocessing
import os
import signal
import threading
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import AlreadyExists, Invalid, InvalidId, Unsupported
from sessionary.layouts.records.journal import SNAPSHOT_AFTER, Change, RecordJournal
from sessionary.layouts.records.names import file_name, parts_of
from sessionary.layouts.records.state import State

NAME = "openai-agents"


def journal(folder: Path, session: str = "one", **options: Any) -> RecordJournal:
    return RecordJournal(folder, NAME, session, durability="none", **options)


def add(one: RecordJournal, *items: Any, **fields: Any) -> None:
    one.change(lambda state: Change(add=items, **fields))


def put(one: RecordJournal, key: str, value: Any) -> None:
    one.change(lambda state: Change(set={"t": {key: value}}))


def stored(one: RecordJournal) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(one.path).read_bytes().splitlines()]


def test_items_and_tables_are_seen_by_another_journal(tmp_path: Path) -> None:
    one, other = journal(tmp_path), journal(tmp_path)
    add(one, {"a": b"\0"}, "second", keys=["k", None])
    other.change(lambda state: Change(drop=[(1, 1)], set={"t": {"x": float("inf"), "y": 1}}))
    one.change(lambda state: Change(add=["third"], unset={"t": ["y"]}))
    for state in (one.state(), other.state(), journal(tmp_path).state()):
        assert state.values() == [{"a": b"\0"}, "third"]
        assert state.keys == {"k": 0}
        assert state.table("t") == {"x": float("inf")}
        assert (state.next_item, state.next_line) == (3, 4)


def test_the_file_is_as_its_page_says(tmp_path: Path) -> None:
    one = journal(tmp_path, scope=["app", "user"])
    add(one, 1, 2, keys=[None, "k"])
    one.change(lambda state: Change(drop=[(0, 0)], set={"t": {"x": 1}}, unset={"u": ["y"]}))
    begin, first, second = stored(one)
    assert {key: value for key, value in begin.items() if key != "at"} == {
        "n": 0, "op": "begin", "format": 1, "framework": NAME, "session": "one", "scope": ["app", "user"],
        "chain": False,
    }  # fmt: skip
    assert (first["n"], first["op"], first["first"], first["add"], first["keys"]) == (
        1,
        "change",
        0,
        [1, 2],
        [None, "k"],
    )
    assert (second["drop"], second["set"], second["unset"]) == ([[0, 0]], {"t": {"x": 1}}, {"u": ["y"]})


def test_a_decision_sees_the_newest_state_and_may_refuse(tmp_path: Path) -> None:
    one, other = journal(tmp_path), journal(tmp_path)
    add(one, "a")
    before = Path(one.path).read_bytes()

    def refuse(state: Any) -> Change:
        assert state.values() == ["a"]
        raise ValueError("stale")

    with pytest.raises(ValueError, match="stale"):
        other.change(refuse)
    assert other.change(lambda state: None).next_line == 2
    assert Path(one.path).read_bytes() == before


@pytest.mark.parametrize("session", ["../../x", "a/b", ".hidden", "", "A" * 400, "é", "a,b", "~", "nul\0"])
def test_any_id_stays_in_the_folder(tmp_path: Path, session: str) -> None:
    one = journal(tmp_path / "f", session)
    add(one, "x")
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [
        file_name([], session),
        file_name([], session) + ".lock",
    ]
    assert journal(tmp_path / "f", session).state().values() == ["x"]
    named = parts_of(file_name(["s,1"], "id/1"))
    assert named == (["s,1"], "id/1")


def test_half_a_character_in_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidId):
        journal(tmp_path, "a\ud800")
    with pytest.raises(Invalid, match="a lone surrogate"):
        add(journal(tmp_path), "x", keys=["\udc00"])


def test_ids_that_share_a_name_are_distinguished_by_the_first_line(tmp_path: Path) -> None:
    one, other = journal(tmp_path, "one"), journal(tmp_path, "two")
    add(one, "x")
    Path(one.path).rename(other.path)
    with pytest.raises(AlreadyExists, match="'one'"):
        other.state()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    one = journal(tmp_path)
    add(one, "x")
    path = Path(one.path)
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))
    with pytest.raises(Unsupported, match="format 2"):
        journal(tmp_path).state()


@pytest.mark.parametrize("tail", [b'{"n":2,"at":"x","op":"cha', b"\0\0\0", b'{"n":2,"at":"x","op":"change"'])
def test_a_torn_line_is_set_aside(tmp_path: Path, tail: bytes) -> None:
    one = journal(tmp_path)
    add(one, "a")
    with Path(one.path).open("ab") as file:
        file.write(tail)
    assert journal(tmp_path).state().values() == ["a"]
    add(one, "b")
    assert journal(tmp_path).state().values() == ["a", "b"]
    (torn,) = tmp_path.glob("*.torn-*")
    assert torn.read_bytes().strip(b"\n") == tail.strip(b"\n")


def test_a_whole_record_without_its_newline_counts(tmp_path: Path) -> None:
    one = journal(tmp_path)
    add(one, "a")
    with Path(one.path).open("ab") as file:
        file.write(b'{"n":2,"at":"x","op":"change","first":1,"add":["b"]}')
    add(one, "c")
    assert one.state().values() == journal(tmp_path).state().values() == ["a", "b", "c"]
    assert [record["n"] for record in stored(one)] == [0, 1, 2, 3]


def test_a_damaged_line_is_kept_and_reported(tmp_path: Path) -> None:
    one = journal(tmp_path)
    for item in ("a", "b", "c"):
        add(one, item)
    path = Path(one.path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'["b"]', b'["b]"'))
    again = journal(tmp_path)
    assert again.state().values() == ["a", "c"]
    assert again.skipped == [(data.index(b'{"n":2'), len(data.splitlines()[2]))]
    add(again, "d")
    assert b'["b]"' in path.read_bytes()
    assert again.state().next_item == 4


def test_a_deleted_session_begins_anew(tmp_path: Path) -> None:
    one, other = journal(tmp_path), journal(tmp_path)
    add(one, "a")
    assert other.state().values() == ["a"]
    assert one.delete()
    assert not one.delete()
    assert list(tmp_path.iterdir()) == []
    assert other.state().values() == []
    add(other, "b")
    assert one.state().values() == ["b"]


def test_a_snapshot_skips_dropped_items(tmp_path: Path) -> None:
    one = journal(tmp_path)
    add(one, "kept", "dropped", keys=["k", "gone"])
    one.change(lambda state: Change(drop=[(1, 1)]))
    for number in range(60):
        value = "x" * (SNAPSHOT_AFTER // 20) + str(number)
        put(one, "v", value)
    add(one, "last")
    snapshots = [record for record in stored(one) if record["op"] == "snapshot"]
    assert snapshots
    again = journal(tmp_path)
    state = again.state()
    assert (state.values(), state.keys) == (["kept", "last"], {"k": 0})
    assert state.value("t", "v").endswith("x59")
    assert (state.next_item, state.next_line) == (3, one.state().next_line)
    assert again._replayed < 2 * SNAPSHOT_AFTER < Path(one.path).stat().st_size
    add(again, "more")
    assert one.state().values() == ["kept", "last", "more"]


def test_a_chain_holds_the_hash_of_the_record_before(tmp_path: Path) -> None:
    from hashlib import sha256

    one = journal(tmp_path, chain=True)
    add(one, "a")
    add(journal(tmp_path), "b")
    lines = Path(one.path).read_bytes().splitlines()
    for before, line in pairwise(lines):
        assert json.loads(line)["prev"] == sha256(before).hexdigest()


def _writer(folder: Path, number: int) -> None:
    one = journal(folder)
    for step in range(50):
        item = [number, step]
        one.change(partial(_counted, item))


def _counted(item: list[int], state: State) -> Change:
    return Change(add=[item], set={"n": {"v": len(state.items) + 1}})


def test_four_processes_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_writer, args=(tmp_path, number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    state = journal(tmp_path).state()
    assert sorted(state.values()) == [[number, step] for number in range(4) for step in range(50)]
    assert state.value("n", "v") == 200
    assert [record["n"] for record in stored(journal(tmp_path))] == list(range(201))


def test_a_reader_counts_a_whole_record_without_its_newline_as_a_writer_does(tmp_path: Path) -> None:
    one = journal(tmp_path)
    add(one, "a")
    with Path(one.path).open("ab") as file:
        file.write(b'{"n":2,"at":"x","op":"change","first":1,"add":["b"]}')
    assert one.state().values() == ["a", "b"]
    add(one, "c")
    assert one.state().values() == journal(tmp_path).state().values() == ["a", "b", "c"]


def test_a_session_begun_anew_in_a_file_of_the_same_number_is_read_anew(tmp_path: Path) -> None:
    """File systems use the number of a deleted file again. Overwriting the file in place gives the same state."""
    one, other = journal(tmp_path / "one"), journal(tmp_path / "two")
    add(one, "a")
    assert one.state().values() == ["a"]
    add(other, "longer than the first one", "b")
    with Path(one.path).open("r+b") as file:
        file.write(Path(other.path).read_bytes())
    assert one.state().values() == ["longer than the first one", "b"]
    assert one.state().next_line == 2


def test_a_session_of_another_is_refused_each_time(tmp_path: Path) -> None:
    one, other = journal(tmp_path, "one"), journal(tmp_path, "two")
    add(one, "x")
    Path(one.path).rename(other.path)
    for _ in range(2):
        with pytest.raises(AlreadyExists, match="'one'"):
            other.state()
    with pytest.raises(AlreadyExists, match="'one'"):
        add(other, "y")


def test_names_leave_room_for_what_is_set_aside(tmp_path: Path) -> None:
    one = journal(tmp_path, "i" * 64, scope=["a" * 64, "u" * 300])
    add(one, "x")
    with Path(one.path).open("ab") as file:
        file.write(b'{"n":2')
    add(one, "y")
    assert one.state().values() == ["x", "y"]


def grown(tmp_path: Path) -> RecordJournal:
    """A journal with a snapshot behind its first items."""
    one = journal(tmp_path)
    for item in ("first", "second", "third"):
        add(one, item)
    for number in range(60):
        put(one, "v", "x" * (SNAPSHOT_AFTER // 20) + str(number))
    return one


def test_a_snapshot_whose_offsets_are_out_of_date_is_not_used(tmp_path: Path) -> None:
    path = Path(grown(tmp_path).path)
    data = path.read_bytes()
    lines = data.split(b"\n")
    assert lines[2].count(b"second") == 1
    path.write_bytes(b"\n".join([*lines[:2], *lines[3:]]))
    again = journal(tmp_path)
    assert again.state().values() == ["first", "third"]
    add(again, "last")
    assert journal(tmp_path).state().values() == ["first", "third", "last"]


@pytest.mark.parametrize("lines", ["[[-5,10]]", "[[10,5]]", "[[0,999999999]]"])
def test_offsets_that_cannot_be_are_not_followed(tmp_path: Path, lines: str) -> None:
    path = Path(grown(tmp_path).path)
    stored = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(stored) if b'"op":"snapshot"' in line)
    snapshot = json.loads(stored[at])
    changed = stored[at].replace(
        json.dumps(snapshot["lines"], separators=(",", ":")).encode(), lines.encode()
    )
    assert changed != stored[at]
    path.write_bytes(b"\n".join([*stored[:at], changed, *stored[at + 1 :]]))
    assert journal(tmp_path).state().values() == ["first", "second", "third"]


def test_a_snapshot_with_huge_ranges_costs_nothing(tmp_path: Path) -> None:
    path = Path(grown(tmp_path).path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"items":[[0,2]]', b'"items":[[0,2],[5,99999999999999]]'))
    assert journal(tmp_path).state().values() == ["first", "second", "third"]


def test_a_child_can_use_a_journal_that_a_thread_held_at_the_fork(tmp_path: Path) -> None:
    one = journal(tmp_path)
    add(one, "a")
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with one.guard:
            held.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if not pid:
        signal.alarm(10)
        add(one, "b")
        os._exit(0 if one.state().values() == ["a", "b"] else 1)
    end.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
    assert one.state().values() == ["a", "b"]
