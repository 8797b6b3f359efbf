"""Sessions inside of a git work tree: what is said of our side files, to whom, and how often."""

import fnmatch
import json
import subprocess
from pathlib import Path

import pytest

from sessionary import SessionStore
from sessionary.cli import main
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.workspace import layout_in

LINES = AmplifierLayout.side_files


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = tmp_path / "project"
    (tree / ".git").mkdir(parents=True)
    store = SessionStore(tree / "agents" / "projects" / "-p" / "sessions")
    store.save("one", [{"role": "user", "content": "Hi"}], {"n": 1})
    store.save("one", [{"role": "user", "content": "Bye"}], {"n": 2})
    store.save("two", [{"role": "user", "content": "Hi"}], {})
    store.delete("two")
    return tree


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) in (0, 10)
    return capsys.readouterr().err


def test_it_is_said_once_for_a_work_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = said(capsys, "list", "--home", str(tree / "agents"))
    assert f"is in the git work tree {tree}." in first
    assert [line.strip() for line in first.splitlines() if line.startswith("  ")] == list(LINES)
    assert ".gitignore" not in said(capsys, "list", "--home", str(tree / "agents"))
    assert ".gitignore" not in said(capsys, "show", "one", "--home", str(tree / "agents"))
    other = tree.parent / "other"
    (other / "below").mkdir(parents=True)
    (other / ".git").write_text("gitdir: elsewhere\n")  # as a second work tree, or a submodule, has it
    assert str(other) in said(capsys, "list", "--home", str(other / "below"))


def test_nothing_is_written_into_the_work_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(tree.rglob("*"))
    said(capsys, "list", "--home", str(tree / "agents"))
    assert sorted(tree.rglob("*")) == before
    assert not (tree / ".gitignore").exists()


def test_a_script_gets_no_hint_and_the_user_gets_it_later(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "list", "--json", "--home", str(tree / "agents")) == ""
    failed = said(capsys, "show", "nobody", "--json", "--home", str(tree / "agents"))
    assert json.loads(failed)["error"] == "NotFound"
    assert ".gitignore" in said(capsys, "list", "--home", str(tree / "agents"))


def test_outside_of_a_work_tree_nothing_is_said(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / ".git").rmdir()
    assert ".gitignore" not in said(capsys, "list", "--home", str(tree / "agents"))
    kept = [path.name for path in (tree.parent / "state").rglob("*") if path.is_file()]
    assert kept == ["last-lists.json"]  # the numbers of the rows, and nothing of the hint


def test_it_is_said_where_it_cannot_be_remembered(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.parent / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tree.parent / "file"))
    for _ in range(2):
        assert ".gitignore" in said(capsys, "list", "--home", str(tree / "agents"))


FIRST = {
    "work": ["work", "start", "--type", "fix"],
    "feature": ["feature", "create", "One"],
    "brainstorm": ["brainstorm", "start", "names", "--new"],
}


@pytest.mark.parametrize("kind", FIRST)
def test_the_first_command_of_every_kind_says_it(
    kind: str, tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    assert main(FIRST[kind]) == 0
    reported = capsys.readouterr().err
    layout = layout_in(tree, kind)
    assert f" is in the git work tree {tree}." in reported
    assert [line for line in layout.side_files if f"  {line}\n" not in reported] == []
    assert ".gitignore" not in said(capsys, kind, "list")


@pytest.mark.parametrize("kind", FIRST)
def test_a_command_that_only_reads_says_it_where_sessions_came_by_another_way(
    kind: str, tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    assert ".gitignore" not in said(capsys, kind, "list"), "there are none"
    assert ".gitignore" not in said(capsys, *FIRST[kind], "--json")
    assert ".gitignore" in said(capsys, kind, "list")


def test_the_lines_are_those_of_git_and_fit_all_that_is_ours(tree: Path) -> None:
    (tree / ".git").rmdir()
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    (tree / ".gitignore").write_text("".join(f"{line}\n" for line in LINES))
    sessions = tree / "agents" / "projects" / "-p" / "sessions"
    (sessions / "one" / "transcript.jsonl.conflict-20260301T000000.000000Z").write_text("x")
    shown = subprocess.run(
        ["git", "-C", str(tree), "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    names = [line[3:].rpartition("/")[2] for line in shown.stdout.splitlines()]
    assert sorted(names) == [".gitignore", "metadata.json", "transcript.jsonl"]
    assert not [line for line in LINES if fnmatch.fnmatch("transcript.jsonl", line)]
