"""A workspace holds the brainstorm sessions of its project beside the sessions of an agent."""

from pathlib import Path

import pytest

from sessionary import BrainstormStore, Corrupt, Invalid
from sessionary.errors import TransitionError
from sessionary.workspace import Workspace


def test_brainstorms_of_a_named_home(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    store.create("sign-in", questions=["Who signs in?"])
    workspace = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    for _ in range(2):
        (summary,) = workspace.summaries()
        assert (summary.ref.kind, summary.title, summary.health) == ("brainstorm", "Who signs in?", "ok")
    ref = workspace.find("sign")
    assert str(ref.path) == store.path("sign-in")
    assert workspace.layout_of(ref).name == "brainstorm"
    assert workspace.ref_for_path(ref.path) == ref


def test_without_a_home_those_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    BrainstormStore(tmp_path).create("sign-in")
    assert [ref.session_id for ref in Workspace(cache=str(tmp_path / "cache")).refs()] == ["sign-in"]


def test_a_search_passes_over_what_is_not_a_file_of_lines(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from sessionary.cli.app import cli

    BrainstormStore(tmp_path).create("sign-in", questions=["Who signs in?"])
    result = CliRunner().invoke(cli, ["search", "signs", "--home", str(tmp_path)])
    assert "damaged" not in result.output


def advanced(tmp_path: Path) -> tuple[BrainstormStore, Workspace]:
    store = BrainstormStore(tmp_path)
    store.create("sign-in", questions=["Who signs in?"])
    for answer in ("Developers", "With a key"):
        store.answer("sign-in", [answer], ems=40)
        store.continue_("sign-in", ["And then?"])
    return store, Workspace(tmp_path, cache=str(tmp_path / "cache"))


def test_a_rewind_goes_back_as_the_store_does_and_its_undo_goes_forward(tmp_path: Path) -> None:
    store, workspace = advanced(tmp_path)
    ref = workspace.find("sign-in")
    assert list(workspace.undoable()) == []
    before = ref.path.read_bytes()
    planned = workspace.rewind(ref, 1, dry_run=True)
    assert (planned.turns_before, planned.to_turn, planned.messages_dropped, planned.changed) == (
        3,
        1,
        0,
        True,
    )
    assert ref.path.read_bytes() == before
    done = workspace.rewind(ref, 1)
    assert (done.messages_kept, done.kept_in) == (workspace.summary(ref).messages, str(ref.path))
    assert (store.load("sign-in").iteration, store.load("sign-in").tip) == (1, 3)
    (change,) = workspace.undoable()
    assert (change.ref, change.operation, change.facts, change.next) == (ref, "rewind", {"to_turn": 1}, True)
    assert workspace.undo(change).operation == "rewind"
    assert store.load("sign-in").iteration == 3
    assert list(workspace.undoable(ref)) == []
    assert workspace.rewind(ref, 3).changed is False


def test_a_rewind_of_a_brainstorm_names_the_turns_that_it_has(tmp_path: Path) -> None:
    store, workspace = advanced(tmp_path)
    ref = workspace.find("sign-in")
    for turn in (0, 4):
        with pytest.raises(Invalid, match=f"no iteration {turn}") as caught:
            workspace.rewind(ref, turn)
        assert caught.value.hint == "give 1 to 3"
    store.finish("sign-in")
    for dry_run in (True, False):
        with pytest.raises(TransitionError, match="completed"):
            workspace.rewind(ref, 1, dry_run=dry_run)


def test_a_brainstorm_that_has_ended_goes_to_the_trash_and_comes_back(tmp_path: Path) -> None:
    store, workspace = advanced(tmp_path)
    ref = workspace.find("sign-in")
    with pytest.raises(TransitionError, match="in_progress"):
        workspace.trash(ref)
    store.finish("sign-in")
    before = ref.path.read_bytes()
    place = workspace.trash(ref)
    assert (Path(place).read_bytes(), ref.path.exists()) == (before, False)
    (row,) = workspace.trashed()
    assert (row.ref, row.stored.locator, row.size) == (ref, place, len(before))
    assert workspace.summary(row.stored).title == "And then?"
    (change,) = workspace.undoable()
    assert workspace.find_changed("sign-in") == ref
    workspace.undo(change)
    assert ref.path.read_bytes() == before
    workspace.trash(ref)
    assert [one.ref for one in workspace.empty_trash(workspace.trashed())] == [ref]
    assert list(workspace.trashed()) == []
    assert store.trashed() == []


def test_a_brainstorm_that_cannot_be_read_is_only_named_tagged_and_exported(tmp_path: Path) -> None:
    _, workspace = advanced(tmp_path)
    ref = workspace.find("sign-in")
    ref.path.write_bytes(b"session: [")
    assert workspace.operations(ref) == {"rename", "tag", "star", "export"}
    with pytest.raises(Corrupt):
        workspace.trash(ref)
    assert ref.path.exists()


def test_the_name_of_a_brainstorm_is_kept_beside_its_file(tmp_path: Path) -> None:
    _, workspace = advanced(tmp_path)
    ref = workspace.find("sign-in")
    before = ref.path.read_bytes()
    assert workspace.rename(ref, "Accounts") is None
    assert workspace.summary(ref).title == "Accounts"
    assert workspace.rename(ref, None) == "Accounts"
    assert ref.path.read_bytes() == before
