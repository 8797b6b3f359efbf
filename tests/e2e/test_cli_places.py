"""Where commands look: the home and the project that are named, by default, and what is said where nothing is."""

from pathlib import Path

import pytest

from sessionary import WorkStore
from sessionary.cli import main
from tests.e2e.driving import ROOT, Result, Run, put


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("COLUMNS", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["check", "tree", "list"])
def test_a_default_home_without_sessions_is_named(
    run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SESSIONARY_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    result = run(command)
    assert (result.code, result.out) == (0, "")  # no sign that all is well: nothing was looked at
    place = tmp_path / ".amplifier"
    assert result.err == f"no sessions in {place}: there is no projects/ in it; --home names another place\n"


READING = ("list", "tree", "stats", "check", "search x", "show x", "events x", "undo --list", "trash --list")
CHANGING = ("fork x", "rewind x 1", "repair x", "restore-backup x", "trash x", "undo x", "mv a b")


@pytest.mark.parametrize("command", [*READING, *CHANGING])
def test_a_home_that_was_named_and_is_not_there_is_an_error(
    run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, empty = tmp_path / "gone", tmp_path / "empty"
    empty.mkdir()
    missing = run(*command.split(), "--home", str(gone))
    assert (missing.code, missing.out) == (10, "")
    assert missing.err.startswith(f"sessionary: --home: there is no folder {gone}\n")
    other = run(*command.split(), "--home", str(empty))
    assert (other.code, other.out) == (10, "")
    assert f"--home: {empty} holds no sessions; looked for projects/, docs/sessions/" in other.err
    monkeypatch.setenv("SESSIONARY_HOME", str(empty))
    assert run(*command.split()).err.startswith(f"sessionary: SESSIONARY_HOME: {empty} holds no")


def test_sessionary_home_takes_the_place_of_the_home_of_the_agent(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "home", ROOT, "-p", {"transcript.jsonl": b"\n"})
    WorkStore(tmp_path / "project" / "docs" / "sessions").create("pm")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("SESSIONARY_HOME", str(tmp_path / "home"))
    assert {row["kind"] for row in run("list", "--json").json} == {"amplifier", "work"}
    assert {row["kind"] for row in run("list", "--json", "--home", str(tmp_path / "home")).json} == {
        "amplifier"
    }


@pytest.mark.parametrize(
    ("command", "looked_for"),
    [
        ("work list", "docs/sessions/"),
        ("work show x", "docs/sessions/"),
        ("work stats", "docs/sessions/"),
        ("brainstorm list", ".project-memory/brainstorm-sessions/"),
        ("brainstorm validate", ".project-memory/brainstorm-sessions/"),
        ("brainstorm cleanup", ".project-memory/brainstorm-sessions/"),
        ("feature list", ".ai-session/"),
        ("feature validate", ".ai-session/"),
        ("feature repair --rebuild-index", ".ai-session/"),
    ],
)
def test_a_root_that_was_named_and_holds_no_store_is_an_error(
    run: Run, tmp_path: Path, command: str, looked_for: str
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("gone", "empty"):
        result = run(*command.split(), "--root", str(tmp_path / name))
        assert (result.code, result.out) == (10, "")
        assert str(tmp_path / name) in result.err
    assert f"looked for {looked_for} in it" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("command", ["brainstorm start sign-in", "feature create login"])
def test_a_command_that_begins_a_session_makes_the_store_but_no_project(
    run: Run, tmp_path: Path, command: str
) -> None:
    assert run(*command.split(), "--root", str(tmp_path / "gone")).code == 10
    assert list(tmp_path.iterdir()) == []
    assert run(*command.split(), "--root", str(tmp_path)).code == 0


@pytest.mark.parametrize("group", ["brainstorm", "feature"])
def test_a_check_of_nothing_shows_no_sign_that_all_is_well(
    run: Run, tmp_path: Path, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(group, "validate")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("there is nothing to check in ")
    assert run(group, "validate", "--json").json["checked"] == 0
