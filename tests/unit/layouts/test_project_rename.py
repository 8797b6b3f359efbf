"""The sessions of a project follow its folder."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sessionary import EventsLog, SessionStore
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Invalid, NotFound
from sessionary.layouts.amplifier import project_rename
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.layouts.amplifier.project_rename import carry_out, plan

OLD, NEW = "/home/u/app", "/home/u/work/shop"


def sessions(home: Path, path: str) -> Path:
    return home / "projects" / path_slug(path) / "sessions"


def make(
    home: Path, session_id: str, *, path: str = OLD, at: float | None = None, **metadata: object
) -> Path:
    folder = sessions(home, path) / session_id
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(f'{{"role": "user", "content": "{session_id}"}}\n'.encode())
    (folder / "metadata.json").write_text(json.dumps({"session_id": session_id, **metadata}))
    if at is not None:
        for place in (*folder.iterdir(), folder):
            os.utime(place, (at, at))
    return folder


def metadata(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "metadata.json").read_bytes())
    return found


def test_sessions_follow_and_their_working_directory_with_them(tmp_path: Path) -> None:
    make(tmp_path, "at", working_dir=OLD, name="At it", other={"kept": 1})
    make(tmp_path, "below", working_dir=f"{OLD}/src/deep")
    make(tmp_path, "beside", working_dir=f"{OLD}-two")
    make(tmp_path, "silent")
    move = plan(tmp_path, path_slug(OLD), NEW)
    carry_out(move)
    there = sessions(tmp_path, NEW)
    assert sorted(path.name for path in there.iterdir()) == ["at", "below", "beside", "silent"]
    assert metadata(there / "at") == {
        "session_id": "at", "working_dir": NEW, "name": "At it", "other": {"kept": 1}
    }  # fmt: skip
    assert metadata(there / "below")["working_dir"] == f"{NEW}/src/deep"
    assert metadata(there / "beside")["working_dir"] == f"{OLD}-two"
    assert metadata(there / "silent") == {"session_id": "silent"}
    assert (there / "below" / "transcript.jsonl").read_bytes() == b'{"role": "user", "content": "below"}\n'
    assert json.loads((there / "at" / "metadata.json.backup").read_bytes())["working_dir"] == OLD
    assert not sessions(tmp_path, OLD).parent.exists(), "an empty project is left"
    assert (move.old, move.problems, move.left, move.staying) == (OLD, [], [], [])


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    folder = make(tmp_path, "s", working_dir=OLD)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    (step,) = plan(tmp_path, path_slug(OLD), NEW).steps
    assert step == project_rename.Step("s", str(folder), str(sessions(tmp_path, NEW) / "s"), OLD, NEW, False)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_moving_back_takes_it_back(tmp_path: Path) -> None:
    make(tmp_path, "a", working_dir=f"{OLD}/x")
    make(tmp_path, "b")
    carry_out(plan(tmp_path, path_slug(OLD), NEW))
    carry_out(plan(tmp_path, path_slug(NEW), OLD, old=NEW))
    assert sorted(os.listdir(sessions(tmp_path, OLD))) == ["a", "b"]
    assert metadata(sessions(tmp_path, OLD) / "a")["working_dir"] == f"{OLD}/x"


def test_a_project_that_has_sessions_is_joined(tmp_path: Path) -> None:
    make(tmp_path, "mine", working_dir=OLD)
    make(tmp_path, "theirs", path=NEW, working_dir=NEW)
    move = plan(tmp_path, path_slug(OLD), NEW)
    carry_out(move)
    assert move.there == 1
    assert sorted(os.listdir(sessions(tmp_path, NEW))) == ["mine", "theirs"]


def test_an_id_that_is_taken_is_refused_before_anything_moves(tmp_path: Path) -> None:
    for name in ("a", "both", "z"):
        make(tmp_path, name, working_dir=OLD)
    make(tmp_path, "both", path=NEW)
    with pytest.raises(AlreadyExists, match="1 of the ids") as caught:
        plan(tmp_path, path_slug(OLD), NEW)
    assert caught.value.details == {"matches": ["both"], "count": 1}
    assert sorted(os.listdir(sessions(tmp_path, OLD))) == ["a", "both", "z"]


def test_two_paths_of_one_name_are_distinguished(tmp_path: Path) -> None:
    mine, other = "/home/u/a/b", "/home/u/a-b"
    assert path_slug(mine) == path_slug(other)
    make(tmp_path, "mine", path=mine, working_dir=mine)
    make(tmp_path, "other", path=mine, working_dir=f"{other}/src")
    make(tmp_path, "sub-of-other", path=mine, parent_id="other")
    make(tmp_path, "silent", path=mine)
    with pytest.raises(Invalid, match="sessions of 2 paths") as caught:
        plan(tmp_path, path_slug(mine), NEW)
    assert caught.value.details["matches"] == [other, mine]
    move = plan(tmp_path, path_slug(mine), NEW, old=mine)
    carry_out(move)
    assert move.staying == [("other", other), ("sub-of-other", other)]
    assert sorted(os.listdir(sessions(tmp_path, mine))) == ["other", "sub-of-other"]
    assert sorted(os.listdir(sessions(tmp_path, NEW))) == ["mine", "silent"]


def test_a_new_path_of_the_same_name_changes_only_what_sessions_say(tmp_path: Path) -> None:
    old, new = "/home/u/a/b", "/home/u/a-b"
    folder = make(tmp_path, "s", path=old, working_dir=f"{old}/x")
    make(tmp_path, "silent", path=old)
    move = plan(tmp_path, path_slug(old), new, old=old)
    assert [step.session_id for step in move.steps] == ["s"]
    carry_out(move)
    assert metadata(folder)["working_dir"] == f"{new}/x"


@pytest.mark.parametrize(
    ("said", "old", "new", "then"),
    [
        ("/a/b/c", "/a/b", "/a", "/a/c"),
        ("/a", "/a", "/a/b", "/a/b"),
        ("/a/b", "/a", "/a/b", "/a/b"),
        ("/ab", "/a", "/x", "/ab"),
        ("C:\\p\\x", "C:\\p", "/x", "/x\\x"),
    ],
)
def test_paths_within_one_another(tmp_path: Path, said: str, old: str, new: str, then: str) -> None:
    make(tmp_path, "s", path=old, working_dir=said)
    carry_out(plan(tmp_path, path_slug(old), new, old=old))
    assert metadata(sessions(tmp_path, new) / "s")["working_dir"] == then


def test_the_trash_moves_too_and_undo_finds_it(tmp_path: Path) -> None:
    make(tmp_path, "gone", working_dir=OLD)
    make(tmp_path, "here", working_dir=OLD)
    SessionStore(sessions(tmp_path, OLD)).delete("gone")
    move = plan(tmp_path, path_slug(OLD), NEW)
    assert [(step.session_id, step.trashed) for step in move.steps] == [("gone", True), ("here", False)]
    carry_out(move)
    store = SessionStore(sessions(tmp_path, NEW))
    assert store.undo() == "gone"
    assert store.get_metadata("gone")["working_dir"] == NEW
    assert not sessions(tmp_path, OLD).parent.exists()


def test_what_is_not_a_session_stays_and_is_reported(tmp_path: Path) -> None:
    make(tmp_path, "s", working_dir=OLD)
    (sessions(tmp_path, OLD).parent / "repl_history").write_text("x")
    (sessions(tmp_path, OLD) / "notes.txt").write_text("x")
    move = plan(tmp_path, path_slug(OLD), NEW)
    carry_out(move)
    assert move.left == ["repl_history", "sessions/notes.txt"]
    assert (sessions(tmp_path, OLD) / "notes.txt").read_text() == "x"


def test_a_list_shows_them_in_the_same_order_as_before(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "a", "d", "b")):
        make(tmp_path, name, at=1_700_000_000 - age, working_dir=OLD)
    assert SessionStore(sessions(tmp_path, OLD)).list_sessions() == ["c", "a", "d", "b"]
    carry_out(plan(tmp_path, path_slug(OLD), NEW))
    assert SessionStore(sessions(tmp_path, NEW)).list_sessions() == ["c", "a", "d", "b"]


def test_unreadable_metadata_is_moved_unchanged(tmp_path: Path) -> None:
    folder = make(tmp_path, "s")
    (folder / "metadata.json").write_bytes(b'{"working_dir": "/home')
    move = plan(tmp_path, path_slug(OLD), NEW, old=OLD)
    carry_out(move)
    assert (sessions(tmp_path, NEW) / "s" / "metadata.json").read_bytes() == b'{"working_dir": "/home'
    assert "recovered_metadata" in {problem.code for problem in move.problems}


def test_a_session_in_use_stays_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = make(tmp_path, "busy", working_dir=OLD)
    make(tmp_path, "free", working_dir=OLD)
    monkeypatch.setattr(FileLock.acquire, "__defaults__", (0.05,))
    lock = FileLock(str(busy / ".lock"))
    with lock.held(0.05):
        move = plan(tmp_path, path_slug(OLD), NEW)
        carry_out(move)
    assert [(problem.code, problem.path) for problem in move.problems] == [("not_moved", str(busy))]
    assert (os.listdir(sessions(tmp_path, OLD)), os.listdir(sessions(tmp_path, NEW))) == (["busy"], ["free"])
    carry_out(plan(tmp_path, path_slug(OLD), NEW))
    assert sorted(os.listdir(sessions(tmp_path, NEW))) == ["busy", "free"]


@pytest.mark.parametrize(("slug", "new"), [("-nothing", NEW), ("..", "relative")])
def test_what_makes_no_sense(tmp_path: Path, slug: str, new: str) -> None:
    with pytest.raises((NotFound, Invalid)):
        plan(tmp_path, slug, new)


def test_the_path_that_it_has_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "s", working_dir=OLD)
    with pytest.raises(Invalid, match="already"):
        plan(tmp_path, path_slug(OLD), OLD, old=OLD)


WRITER = """
import sys
from sessionary import SessionStore
store = SessionStore(sys.argv[1])
def say(text):
    store.append("s", [{"role": "user", "content": text, "timestamp": "t"}])
    print(text, flush=True)
say("before")
for line in sys.stdin:
    say(line.strip())
"""


def test_a_writer_that_has_the_session_open_notices_that_it_went(tmp_path: Path) -> None:
    """What it says afterwards is stored where it was asked to write, and not into a folder that it does not lock."""
    make(tmp_path, "s", working_dir=OLD)
    old, new = sessions(tmp_path, OLD), sessions(tmp_path, NEW)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(old)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "before\n"
        carry_out(plan(tmp_path, path_slug(OLD), NEW))
        writer.stdin.write("after\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "after\n"
        writer.stdin.close()
    said = [message["content"] for message in SessionStore(new).load("s")[0]]
    assert said == ["s", "before"]
    assert [message["content"] for message in SessionStore(old).load("s")[0]] == ["after"]
    with pytest.raises(AlreadyExists):
        plan(tmp_path, path_slug(OLD), NEW)


def test_writers_of_this_process_lose_nothing_while_sessions_move(tmp_path: Path) -> None:
    make(tmp_path, "s", working_dir=OLD)
    old, new = SessionStore(sessions(tmp_path, OLD)), SessionStore(sessions(tmp_path, NEW))
    acknowledged: list[str] = []
    begun = threading.Event()

    def write() -> None:
        for number in range(60):
            old.append("s", [{"role": "user", "content": f"m{number}", "timestamp": "t"}])
            acknowledged.append(f"m{number}")
            if number == 20:
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    carry_out(plan(tmp_path, path_slug(OLD), NEW))
    writer.join()
    stored = [
        message["content"] for store in (new, old) if store.exists("s") for message in store.load("s")[0]
    ]
    assert stored == ["s", *acknowledged]


def test_an_open_event_log_continues_at_the_given_place(tmp_path: Path) -> None:
    make(tmp_path, "s", working_dir=OLD)
    with EventsLog(sessions(tmp_path, OLD) / "s") as log:
        log.append({"event": "before"})
        carry_out(plan(tmp_path, path_slug(OLD), NEW))
        log.append({"event": "after"})
    places = [sessions(tmp_path, path) / "s" / "events.jsonl" for path in (NEW, OLD)]
    names = [
        json.loads(line)["event"]
        for path in places
        if path.exists()
        for line in path.read_bytes().splitlines()
    ]
    assert names == ["before", "after"]


def test_an_unfinished_operation_of_a_killed_writer_is_settled_first(tmp_path: Path) -> None:
    folder = make(tmp_path, "s", working_dir=OLD)
    (folder / ".undo" / "open").mkdir(parents=True)
    carry_out(plan(tmp_path, path_slug(OLD), NEW))
    assert not (sessions(tmp_path, NEW) / "s" / ".undo" / "open").exists()
