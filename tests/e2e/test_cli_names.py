"""By which names sessions of every kind are known on the command line, and how lists name them."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.cli import main
from tests.e2e.driving import ROOT, Result, Run, lines, put

HELLO = {"role": "user", "content": "Fix the login race"}
LONG_AGO = datetime(2026, 1, 9, 10, 30, tzinfo=UTC)
FEATURE, OTHER = "login-2026-01-02", "logout-2026-01-03"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a project with sessions of each kind."""
    for name in ("COLUMNS", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    files = {"transcript.jsonl": lines(HELLO), "metadata.json": json.dumps({"session_id": ROOT}).encode()}
    put(tmp_path / ".amplifier", ROOT, "-p", files)
    for slug in ("sign-in", "sign-out"):
        BrainstormStore(project).create(slug, questions=["Who?"], now=LONG_AGO)
    for feature_id in (FEATURE, OTHER):
        FeatureStore(project).create(feature_id, name=feature_id)
    WorkStore(project / "docs" / "sessions").create("pm")

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


@pytest.mark.parametrize("word", ["sign-i", "SIGN-IN", "Sign-I"])
def test_a_brainstorm_is_known_by_the_beginning_of_its_slug(run: Run, word: str) -> None:
    assert run("brainstorm", "status", word, "--json").json["slug"] == "sign-in"
    assert run("brainstorm", "answer", word, "All of us", "--json").json["slug"] == "sign-in"
    assert run("brainstorm", "validate", word).code == 0


@pytest.mark.parametrize("word", ["login", "LOGIN-2026-01-02", "Logi"])
def test_a_feature_is_known_by_the_beginning_of_its_id(run: Run, word: str) -> None:
    assert run("feature", "status", word, "--json").json["feature_id"] == FEATURE
    assert run("feature", "update", word, "--model", "opus", "--json").json["feature_id"] == FEATURE
    assert run("feature", "validate", word).code == 0


def test_a_feature_that_was_put_away_is_known_so_too(run: Run) -> None:
    assert run("feature", "complete", "login").code == 0
    assert run("feature", "archive", "login").code == 0
    assert run("feature", "history", "login", "--json").code == 0


@pytest.mark.parametrize(("group", "word", "matches"), [
    ("brainstorm", "sign", ["sign-in", "sign-out"]),
    ("feature", "LOG", [FEATURE, OTHER]),
])  # fmt: skip
def test_a_beginning_that_fits_several_names_them(
    run: Run, group: str, word: str, matches: list[str]
) -> None:
    result = run(group, "status", word, "--json")
    assert (result.code, result.error["details"]["matches"]) == (12, matches)


def test_latest_is_understood_wherever_an_id_is(run: Run) -> None:
    assert run("brainstorm", "answer", "sign-in", "All").code == 0
    assert run("brainstorm", "status", "latest", "--json").json["slug"] == "sign-in"
    assert run("feature", "update", "login", "--model", "opus").code == 0
    assert run("feature", "status", "latest", "--json").json["feature_id"] == FEATURE
    assert run("feature", "validate", "latest").code == 0
    for command in ("show", "tree", "check"):
        assert run(command, "latest").code == 0
    assert run("search", "login", "--session", "latest").code in (0, 1)
    assert run("work", "show", "latest").code == 0


def test_latest_of_a_command_for_agents_is_a_session_of_an_agent(run: Run) -> None:
    then = 1_700_000_000  # older than all that lies in the project
    folder = Path.home() / ".amplifier" / "projects" / "-p" / "sessions" / ROOT
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))
    assert run("show", "latest", "--json").json["id"] != ROOT
    assert run("fork", "latest", "--dry-run", "--json").json["parent"] == ROOT
    assert run("trash", "latest", "--json").json[0]["id"] == ROOT


def test_an_id_that_says_something_stands_whole_in_a_list(run: Run) -> None:
    out = run("list").out
    ids = [line.split()[0] for line in out.splitlines()[1:]]
    assert {FEATURE, OTHER, "sign-in", "sign-out", ROOT[:8]} < set(ids)
    for name in ids:
        assert run("show", name).code == 0


@pytest.mark.parametrize("word", ["3F0C", ROOT.upper()])
def test_ids_of_agents_match_whatever_their_case(run: Run, word: str) -> None:
    assert run("show", word, "--json").json["id"] == ROOT
    assert run("rewind", word, "1", "--dry-run").code == 0
    assert run("trash", word).code == 0
    assert run("undo", word).code == 0


def test_a_work_session_matches_whatever_its_case(run: Run) -> None:
    session = run("work", "list", "--json").json[0]["session_id"]
    assert run("work", "show", session[:9].upper(), "--json").json["session_id"] == session
    assert run("work", "show", session.upper(), "--json").json["session_id"] == session
