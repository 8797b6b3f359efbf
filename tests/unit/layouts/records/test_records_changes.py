"""Repair, rewind and fork of the sessions of frameworks, by the operations of the workspace and by the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.errors import AlreadyExists, Invalid, Unsupported
from sessionary.layouts.records.journal import Change, RecordJournal
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
    assert (done.changed, done.kept_in, done.messages_dropped) == (True, None, 4)
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
        place.trash(ref)
    assert "rewind" in str(error.value.hint)


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
    assert (code, document["to_turn"], document["messages_dropped"], document["undo"]) == (0, 2, 2, None)
    code, out, err = run(capsys, "fork", "s", "--turn", "1", "--id", "new", *home)
    assert (code, out.split("\n")[0]) == (0, "new")
    assert "trash" not in out + err
    assert json.loads(run(capsys, "fork", "s", "--json", *home)[1])["undo"] is None
    with open(one.path, "ab") as file:
        file.write(b"\0\0\0\n")
    code, out, _ = run(capsys, "check", "s", *home)
    assert code == 13
    code, out, _ = run(capsys, "repair", "s", "--json", *home)
    document = json.loads(out)
    assert (code, document["changed"], document["set_aside"], document["remaining"]) == (0, True, 3, [])
    assert run(capsys, "check", "s", *home)[0] == 0
    assert run(capsys, "undo", "s", *home)[0] == Unsupported.exit_code
    code, out, _ = run(capsys, "repair", "s", *home)
    assert "nothing to repair" in out
