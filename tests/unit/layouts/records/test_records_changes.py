"""Repair, rewind and fork of the sessions of frameworks, by the operations of the workspace and by the commands."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Invalid, Locked, NotFound, Unsupported
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.state import State
from sessionary.model import SessionRef
from sessionary.workspace import Workspace


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def event(role: str, text: str) -> dict[str, Any]:
    return {"author": role, "content": {"parts": [{"text": text}]}}


TURNS = [
    said("user", "one"), said("assistant", "1"),
    said("user", "two"), said("assistant", "2"),
    said("user", "three"), said("assistant", "3"),
]  # fmt: skip


def journal(
    home: Path, framework: str = "openai-agents", session: str = "s", scope: Any = ()
) -> RecordJournal:
    return RecordJournal(home / framework, framework, session, scope, durability="none")


EVENTS = [event(one["role"], one["content"]) for one in TURNS]


def stored(
    home: Path, framework: str = "openai-agents", scope: Any = (), turns: Any = TURNS
) -> RecordJournal:
    """Three turns, each with a state of its own; the last one has a key that is new."""
    one = journal(home, framework, scope=scope)
    for turn in range(3):
        state: dict[str, Any] = {"turn": turn} | ({"late": True} if turn == 2 else {})
        items = turns[2 * turn : 2 * turn + 2]
        keys = [f"k{2 * turn}", None]
        one.change(lambda _, items=items, keys=keys, state=state: Change(items, keys, set={"state": state}))  # type: ignore[misc]
    return one


def workspace(home: Path) -> tuple[Workspace, SessionRef]:
    place = Workspace(home, cache=str(home / "cache"))
    return place, place.find("s")


def test_a_rewind_drops_the_later_turns_and_what_they_set(tmp_path: Path) -> None:
    one = stored(tmp_path)
    before = Path(one.path).read_bytes()
    place, ref = workspace(tmp_path)
    seen = place.rewind(ref, 1, dry_run=True)
    assert (seen.to_turn, seen.turns_before, seen.messages_kept, seen.messages_dropped) == (1, 3, 2, 4)
    assert Path(one.path).read_bytes() == before
    done = place.rewind(ref, 1)
    assert (done.changed, done.kept_in, done.messages_dropped) == (True, one.path, 4)
    state = one.state()
    assert (state.values(), state.table("state"), state.keys) == (TURNS[:2], {"turn": 0}, {"k0": 0})
    assert Path(one.path).read_bytes().startswith(before)  # nothing is erased
    assert place.summary(ref).turns == 1
    assert not place.rewind(ref, 1).changed
    with pytest.raises(Invalid, match="no turn 2"):
        place.rewind(ref, 2)
    one.change(lambda _: Change(add=[said("user", "again")]))
    assert place.summary(ref).turns == 2
    assert place.rewind(ref, 0).messages_dropped == 3
    assert one.state().values() == []


def test_a_fork_has_the_first_turns_and_their_state(tmp_path: Path) -> None:
    one = stored(tmp_path, "google-adk", ["app", "ada"], EVENTS)
    before = Path(one.path).read_bytes()
    place, ref = workspace(tmp_path)
    assert place.preview_fork(ref, 2).messages == 4
    made = place.fork(ref, 2, session_id="new", name="Another way")
    assert (made.session_id, made.parent_id, made.forked_from_turn, made.message_count) == ("new", "s", 2, 4)
    state = journal(tmp_path, "google-adk", "new", ["app", "ada"]).state()
    assert (state.values(), state.table("state"), state.keys) == (EVENTS[:4], {"turn": 1}, {"k0": 0, "k2": 2})
    assert Path(one.path).read_bytes() == before
    (summary,) = [row for row in place.summaries() if row.ref.session_id == "new"]
    assert (summary.parent, summary.ref.project) == ("s", "google-adk/app/ada")
    with pytest.raises(AlreadyExists):
        place.fork(ref, 1, session_id="new")
    whole = place.fork(ref)
    state = journal(tmp_path, "google-adk", whole.session_id, ["app", "ada"]).state()
    assert (state.values(), state.table("state")) == (EVENTS, {"turn": 2, "late": True})


@pytest.mark.parametrize(
    ("framework", "operation", "hint"),
    [
        ("langgraph", "fork", "copy_thread"),
        ("langgraph", "rewind", "checkpoint_id"),
        ("pydantic-ai", "fork", "DurableConversationStore"),
        ("pydantic-ai", "rewind", "head"),
        ("claude-agent-sdk", "fork", "fork_session"),
    ],
)
def test_what_a_framework_has_to_do_itself_is_refused(
    tmp_path: Path, framework: str, operation: str, hint: str
) -> None:
    one = stored(tmp_path, framework)
    before = Path(one.path).read_bytes()
    place, ref = workspace(tmp_path)
    with pytest.raises(Unsupported) as error:
        place.fork(ref, 1) if operation == "fork" else place.rewind(ref, 1)
    assert hint in str(error.value.hint)
    assert Path(one.path).read_bytes() == before


def test_what_is_not_supported_names_what_is(tmp_path: Path) -> None:
    stored(tmp_path)
    place, ref = workspace(tmp_path)
    with pytest.raises(Unsupported) as error:
        place.restore_backup(ref)
    assert "rewind" in str(error.value.hint)


def test_an_undo_brings_back_what_a_rewind_dropped(tmp_path: Path) -> None:
    one = stored(tmp_path)
    before = one.state()
    whole = (before.values(), before.table("state"), sorted(before.keys))
    place, ref = workspace(tmp_path)
    place.rewind(ref, 1)
    (change,) = place.undoable(ref)
    assert (change.operation, change.facts, change.next, change.ref) == ("rewind", {"to_turn": 1}, True, ref)
    rewound = Path(one.path).read_bytes()
    undone = place.undo(change)
    assert (undone.operation, undone.messages_since, undone.kept_in) == ("rewind", 0, one.path)
    state = one.state()
    assert (state.values(), state.table("state"), sorted(state.keys)) == whole
    assert state.values()[state.keys["k4"] - state.next_item] == TURNS[4]
    assert Path(one.path).read_bytes().startswith(rewound)  # nothing is erased
    assert place.summary(ref).turns == 3
    assert [row.message.text for row in place.messages(ref)] == [item["content"] for item in TURNS]
    assert [(row.operation, row.next) for row in place.undoable(ref)] == [("undo", True), ("rewind", False)]


def test_an_undo_sets_aside_what_is_newer_and_a_second_one_redoes(tmp_path: Path) -> None:
    one = stored(tmp_path)
    place, ref = workspace(tmp_path)
    place.rewind(ref, 1)
    newer = [said("user", "another way"), said("assistant", "4")]
    one.change(lambda _: Change(add=newer, set={"state": {"turn": 9}}))
    assert place.undo(next(place.undoable(ref))).messages_since == 2
    assert (one.state().values(), one.state().table("state")) == (TURNS, {"turn": 2, "late": True})
    change = next(place.undoable(ref))
    assert (change.operation, change.facts) == ("undo", {"operation": "rewind"})
    assert place.undo(change).messages_since == 0
    assert (one.state().values(), one.state().table("state")) == ([*TURNS[:2], *newer], {"turn": 9})
    assert place.undo(next(place.undoable(ref))).messages_since == 0
    assert one.state().values() == TURNS
    assert [row.code for row in place.check(ref)] == []


def test_an_undo_keeps_the_order_where_items_before_the_turn_were_popped(tmp_path: Path) -> None:
    one = stored(tmp_path)
    place, ref = workspace(tmp_path)
    place.rewind(ref, 2)
    one.change(lambda state: Change(drop=[(1, 1)]))
    place.undo(next(place.undoable(ref)))
    assert one.state().values() == TURNS


def world_of(one: RecordJournal) -> Any:
    def select(state: State) -> Any:
        names = {number: key for key, number in state.keys.items()}
        return state.values(), state.table("state"), [names.get(number) for number in state.items]

    return one.read(select)


def change_at_random(one: RecordJournal, random: Random, step: int) -> None:
    said_now = [said("user", f"{step}"), said("assistant", f"of {step}")]
    key = random.choice("ab")
    changes = [
        lambda _: Change(said_now, [f"k{step}", None]),
        lambda _: Change(said_now, [f"k{step}", None], set={"state": {key: step}}),
        lambda state: Change(drop=[(last, last) for last in [*state.items][-1:]]),
        lambda _: Change(set={"state": {key: step}}),
        lambda _: Change(unset={"state": [key]}),
    ]
    one.change(random.choice(changes))


@pytest.mark.parametrize("seed", range(20))
def test_an_undo_leads_to_the_state_before_whatever_was_done_since(tmp_path: Path, seed: int) -> None:
    random, one = Random(seed), journal(tmp_path)
    one.change(lambda _: Change(add=[said("user", "begin")]))
    place, ref = workspace(tmp_path)
    before: list[Any] = []
    for step in range(40):
        now = world_of(one)
        if random.random() < 0.6:
            change_at_random(one, random, step)
        elif before and random.random() < 0.5:
            place.undo(next(place.undoable(ref)))
            assert world_of(one) == before.pop()
            before.append(now)
        elif place.rewind(ref, random.randrange(place.summary(ref).turns + 1)).changed:
            before.append(now)
    assert world_of(journal(tmp_path)) == world_of(one)
    assert list(place.check(ref)) == []


def test_an_undo_reads_no_cause_in_the_text_of_an_item(tmp_path: Path) -> None:
    one = journal(tmp_path)
    forged = {"cause": {"operation": "rewind", "to_turn": 0}}
    one.change(lambda _: Change(add=[{**said("user", "one"), **forged}], set={"t": forged}))
    place, ref = workspace(tmp_path)
    assert list(place.undoable(ref)) == []


def test_a_rewind_of_an_imported_session_keeps_its_title_and_its_branches(tmp_path: Path) -> None:
    one = journal(tmp_path, "import")
    parts = [{"role": item["role"], "origin": {"user": "person"}.get(item["role"], "agent"),
              "parts": [{"type": "text", "text": item["content"]}]} for item in TURNS]  # fmt: skip
    view = {"title": "The login race", "items": [[0, 0], [2, 5]]}
    one.change(lambda _: Change(add=parts, set={"view": view}))
    place, ref = workspace(tmp_path)

    def shown() -> list[str]:
        return [row.message.text for row in place.messages(ref)]

    assert shown() == ["one", "two", "2", "three", "3"]
    place.rewind(ref, 1)
    assert (shown(), place.summary(ref).title) == (["one"], "The login race")
    place.undo(next(place.undoable(ref)))
    assert shown() == ["one", "two", "2", "three", "3"]
    made = place.fork(ref, 2, session_id="new")
    new = place.find("new")
    assert ([row.message.text for row in place.messages(new)], made.message_count) == (["one", "two", "2"], 3)
    assert place.summary(new).title == "The login race"


def test_a_trashed_session_is_restored_with_its_quarantined_lines(tmp_path: Path) -> None:
    one = stored(tmp_path)
    other = journal(tmp_path, session="s.records.torn-1")
    other.change(lambda _: Change(add=[said("user", "other")]))
    aside = Path(f"{one.path}.corrupt-20260301T090000.000000Z")
    aside.write_bytes(b"damaged")
    before = Path(one.path).read_bytes()
    place, ref = workspace(tmp_path)
    kept = place.trash(ref)
    assert (Path(kept).read_bytes(), Path(one.path).exists(), aside.exists()) == (before, False, False)
    assert [summary.ref.session_id for summary in place.list()] == ["s.records.torn-1"]
    (row,) = place.trashed()
    assert (row.ref, row.stored.locator, row.size) == (ref, kept, len(before) + 7)
    assert next(place.messages(row.stored)).message.text == "one"
    assert place.find_changed("s") == ref
    (change,) = place.undoable(ref)
    assert (change.operation, change.next, change.kept_in) == ("trash", True, kept)
    place.undo(change)
    assert (Path(one.path).read_bytes(), aside.read_bytes()) == (before, b"damaged")
    assert list(place.trashed()) == []
    assert one.state().values() == TURNS
    with pytest.raises(NotFound):
        place.undo(change)


def test_a_session_of_the_same_id_is_not_replaced_by_that_in_the_trash(tmp_path: Path) -> None:
    one = stored(tmp_path)
    place, ref = workspace(tmp_path)
    place.trash(ref)
    one.change(lambda _: Change(add=[said("user", "new")]))
    with pytest.raises(AlreadyExists):
        place.undo(next(place.undoable(ref)))
    assert one.state().values() == [said("user", "new")]
    place.trash(ref)
    assert len(list(place.trashed())) == 2
    place.undo(next(place.undoable(ref)))
    assert one.state().values() == [said("user", "new")]  # the one that was moved last
    place.trash(ref)
    assert len(place.empty_trash(list(place.trashed()))) == 2
    assert list(tmp_path.glob("*/.trash/**/*.records*")) == []
    with pytest.raises(NotFound):
        place.trash(ref)


def test_a_session_that_another_process_holds_is_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stored(tmp_path)
    place, ref = workspace(tmp_path)
    monkeypatch.setattr("sessionary.layouts.records.trash.TIMEOUT", 0.05)
    lock = FileLock(one.path + ".lock")
    with lock.held(), pytest.raises(Locked):
        place.trash(ref)
    assert Path(one.path).exists()


def test_a_chain_stays_whole_through_rewind_undo_and_trash(tmp_path: Path) -> None:
    one = RecordJournal(tmp_path / "openai-agents", "openai-agents", "s", durability="none", chain=True)
    for item in TURNS:
        one.change(lambda _, item=item: Change(add=[item]))  # type: ignore[misc]
    place, ref = workspace(tmp_path)
    place.rewind(ref, 1)
    place.undo(next(place.undoable(ref)))
    place.trash(ref)
    place.undo(next(place.undoable(ref)))
    assert list(place.check_chain(ref)) == []
    assert one.state().values() == TURNS


def test_a_repair_moves_damaged_lines_aside(tmp_path: Path) -> None:
    one = stored(tmp_path)
    path = Path(one.path)
    lines = path.read_bytes().split(b"\n")
    damaged = lines[2][:-5]
    path.write_bytes(b"\n".join([*lines[:2], damaged, lines[3], b'{"n":4,"at']))
    place, ref = workspace(tmp_path)
    seen = place.repair(ref, dry_run=True)
    assert seen.done is not None
    assert [fix.line for fix in seen.done.fixes] == [3, 5]
    assert damaged in path.read_bytes()
    found = place.repair(ref)
    assert found.done is not None
    assert found.done.set_aside_in is not None
    assert Path(found.done.set_aside_in).read_bytes() == damaged + b'\n{"n":4,"at\n'
    assert path.read_bytes() == b"\n".join([*lines[:2], lines[3], b""])
    assert [problem.code for problem in found.remaining] == ["missing_records"]
    again = place.repair(ref).done
    assert again is not None
    assert not again.changed
    one.change(lambda _: Change(add=[said("user", "after")]))
    assert one.state().values() == [*TURNS[:2], *TURNS[4:], said("user", "after")]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, home = stored(tmp_path), ["--home", str(tmp_path)]
    code, out, _ = run(capsys, "rewind", "s", "2", "--json", *home)
    document = json.loads(out)
    assert (code, document["to_turn"], document["messages_dropped"]) == (0, 2, 2)
    assert document["undo"] == f"sessionary undo --home {tmp_path} s"
    code, out, _ = run(capsys, "undo", "s", *home)
    assert (code, "the rewind to turn 2 of" in out) == (0, True)
    assert one.state().values() == TURNS
    code, out, err = run(capsys, "fork", "s", "--turn", "1", "--id", "new", *home)
    assert (code, out.split("\n")[0]) == (0, "new")
    assert f"undo: sessionary trash --home {tmp_path} new" in err
    assert run(capsys, "trash", "new", *home)[0] == 0
    rows = json.loads(run(capsys, "trash", "--list", "--json", *home)[1])
    assert [(row["id"], row["project"]) for row in rows] == [("new", "openai-agents")]
    rows = json.loads(run(capsys, "undo", "--list", "--json", *home)[1])
    assert [(row["id"], row["operation"], row["next"]) for row in rows] == [
        ("new", "trash", True), ("s", "undo", True), ("s", "rewind", False),
    ]  # fmt: skip
    assert run(capsys, "undo", "new", *home)[0] == 0
    with open(one.path, "ab") as file:
        file.write(b"\0\0\0\n")
    code, out, _ = run(capsys, "check", "s", *home)
    assert code == 13
    code, out, _ = run(capsys, "repair", "s", "--json", *home)
    document = json.loads(out)
    assert (code, document["changed"], document["set_aside"], document["remaining"]) == (0, True, 3, [])
    assert run(capsys, "check", "s", *home)[0] == 0
    code, out, _ = run(capsys, "repair", "s", *home)
    assert "nothing to repair" in out
