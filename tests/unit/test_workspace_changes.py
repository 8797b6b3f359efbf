"""The operations of `Workspace` that change sessions, and those that a layout must grant."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary import SessionStore, Workspace, create_session
from sessionary.errors import AlreadyExists, Invalid, NotFound, Unsupported
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.model import SessionRef

TURNS = [
    {"role": role, "content": f"{role} {turn}", "timestamp": f"2026-03-0{turn}T09:00:00Z"}
    for turn in (1, 2)
    for role in ("user", "assistant")
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SessionStore(tmp_path / "projects" / "-p" / "sessions", durability="none")
    store.save("one", TURNS, {"name": "First"})
    return tmp_path


def texts(workspace: Workspace, ref: SessionRef) -> list[str]:
    return [one.text for one in workspace.read(ref)]  # type: ignore[union-attr]


def undone(workspace: Workspace, name: str) -> str:
    """Undo the last change of a session; returns what it was."""
    change = next(workspace.undoable(workspace.find_changed(name)))
    assert workspace.undo(change).operation == change.operation
    return change.operation


def test_a_rewind_is_planned_made_and_undone(home: Path) -> None:
    workspace = Workspace(home)
    ref = workspace.find("one")
    assert workspace.rewind(ref, 1, dry_run=True).messages_dropped == 2
    assert len(texts(workspace, ref)) == 4
    assert workspace.rewind(ref, 1).changed
    assert texts(workspace, ref) == ["user 1", "assistant 1"]
    assert undone(workspace, "one") == "rewind"
    assert len(texts(workspace, ref)) == 4


def test_a_repair_is_planned_made_and_undone(home: Path) -> None:
    workspace = Workspace(home)
    ref = workspace.find("one")
    with (ref.path / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "cut o')
    before = (ref.path / "transcript.jsonl").read_bytes()
    planned = workspace.repair(ref, dry_run=True)
    assert planned.done is not None
    assert (planned.done.changed, (ref.path / "transcript.jsonl").read_bytes()) == (True, before)
    assert workspace.repair(ref).remaining == []
    assert undone(workspace, "one") == "repair"
    assert (ref.path / "transcript.jsonl").read_bytes() == before


def test_a_fork_takes_no_known_id(home: Path) -> None:
    SessionStore(home / "projects" / "-q" / "sessions", durability="none").save("two", TURNS, {})
    workspace = Workspace(home)
    ref = workspace.find("one")
    seen = workspace.preview_fork(ref, 1)
    assert (seen.turn, seen.turns, seen.messages, seen.last_user_message) == (1, 2, 2, "user 1")
    for make in (workspace.fork, workspace.preview_fork):
        for taken in ("one", "two"):
            with pytest.raises(AlreadyExists):
                make(ref, 1, session_id=taken)
    made = workspace.fork(ref, 1, session_id="three", name="Another")
    [fork] = [one for one in workspace.list() if one.ref.session_id == "three"]
    assert (fork.title, fork.parent, fork.messages, made.message_count) == ("Another", "one", 2, 2)
    [top] = [top for top in workspace.tree(workspace.list()) if top.ref == ref]
    assert [(kin.ref.session_id, kin.relation) for kin in top.children] == [("three", "fork")]


def test_a_name_is_set_and_removed(home: Path) -> None:
    workspace = Workspace(home)
    ref = workspace.find("First")
    assert workspace.rename(ref, "Second") == "First"
    assert workspace.summary(ref).title == "Second"
    assert workspace.rename(ref, None) == "Second"
    assert workspace.rename(ref, "Third") is None


def test_the_trash_is_listed_restored_and_emptied(home: Path) -> None:
    workspace = Workspace(home)
    ref = workspace.find("one")
    path = workspace.trash(ref)
    [gone] = workspace.trashed()
    assert (gone.ref, gone.stored.locator, gone.size > 0) == (ref, path, True)
    assert texts(workspace, gone.stored)[0] == "user 1"
    assert (list(workspace.refs()), workspace.find_changed("one")) == ([], ref)
    assert workspace.find_changed("latest") == ref
    assert undone(workspace, "one") == "trash"
    assert workspace.find("one") == ref
    workspace.trash(ref)
    [gone] = workspace.trashed()
    assert workspace.empty_trash([gone]) == [gone]
    assert list(workspace.trashed()) == []
    with pytest.raises(NotFound):
        workspace.find_changed("one")


def test_sessions_move_with_their_project(home: Path) -> None:
    workspace = Workspace(home)
    move = workspace.plan_move("-p", home / "new")
    assert [step.session_id for step in move.steps] == ["one"]
    assert workspace.find("one").project == "-p"
    workspace.move(move)
    assert workspace.find("one").project == move.new_slug


def test_a_folder_that_only_might_be_a_session_is_not_changed(home: Path) -> None:
    """A metadata.json alone is read as a session. To move such a folder to the trash could be to move a project."""
    folder = home / "code" / "app"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text("{}")
    workspace = Workspace(home)
    ref = workspace.find(str(folder))
    for change in (workspace.trash, workspace.fork, workspace.repair, lambda ref: workspace.rename(ref, "x")):
        with pytest.raises(NotFound, match="no session in"):
            change(ref)
    assert os.listdir(folder) == ["metadata.json"]


@pytest.fixture(params=["work", "claude_code"])
def read_only(request: pytest.FixtureRequest, home: Path) -> tuple[Workspace, SessionRef]:
    """A session whose layout grants neither changes nor events."""
    if request.param == "work":
        create_session("login", base_path=home / "docs" / "sessions")
        workspace = Workspace({"amplifier": home}, home)
    else:
        file = home / "claude" / "projects" / "-p" / "3f0c81d2-0000-4000-8000-000000000001.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text('{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Hi"}}\n')
        workspace = Workspace({"amplifier": home, ClaudeCodeLayout.name: home / "claude"})
    [ref] = [one for one in workspace.refs() if one.kind == request.param]
    return workspace, ref


OPERATIONS: list[Callable[[Workspace, SessionRef], Any]] = [
    Workspace.events,
    Workspace.repair,
    Workspace.fork,
    Workspace.preview_fork,
    Workspace.restore_backup,
    Workspace.trash,
    lambda workspace, ref: workspace.rewind(ref, 0),
    lambda workspace, ref: workspace.find_changed(ref.session_id),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_layout_does_not_grant_is_refused(
    read_only: tuple[Workspace, SessionRef], operation: Callable[[Workspace, SessionRef], Any]
) -> None:
    workspace, ref = read_only
    files = ref.path.parent.rglob("*")
    before = {path: path.read_bytes() for path in files if path.is_file()}
    with pytest.raises(Unsupported, match=f"sessions of kind {ref.kind}") as caught:
        operation(workspace, ref)
    assert caught.value.hint
    assert {path: path.read_bytes() for path in before} == before
    assert workspace.costs([ref]).logs == 0


def test_homes_name_the_folder_of_each_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    homes = {layout.name: layout.home for layout in Workspace().layouts[:2]}
    assert homes == {"amplifier": tmp_path / ".amplifier", "claude_code": tmp_path / ".claude"}
    one = Workspace({"claude_code": tmp_path / "c"})
    assert [layout.home for layout in one.layouts[:2]] == [tmp_path / ".amplifier", tmp_path / "c"]
    assert {layout.home for layout in Workspace(Path("~/x")).layouts} == {tmp_path / "x"}
    with pytest.raises(Invalid, match="codecs"):
        Workspace({"codecs": tmp_path})


def test_the_trash_of_every_home_is_listed_restored_and_emptied(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    SessionStore(other / "projects" / "-q" / "sessions", durability="none").save("two", TURNS, {})
    workspace = Workspace({"amplifier": [home, other]}, root=tmp_path, cache=str(tmp_path / "cache"))
    refs = [workspace.find(name) for name in ("one", "two")]
    for ref in refs:
        workspace.trash(ref)
    newest, oldest = workspace.trashed()
    assert [newest.ref, oldest.ref] == refs[::-1]
    assert list(workspace.trashed(oldest.when)) == []
    assert list(workspace.trashed(datetime.max.replace(tzinfo=UTC))) == [newest, oldest]
    assert [one.ref for one in workspace.undoable()] == refs[::-1]
    assert undone(workspace, "two") == "trash"
    assert workspace.find("two") == refs[1]
    workspace.trash(refs[1])
    assert [one.ref for one in workspace.empty_trash(workspace.trashed())] == refs[::-1]
    assert list(workspace.trashed()) == []
