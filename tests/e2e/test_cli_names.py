"""By which names sessions of every kind are known on the command line, and how lists name them."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.cli import main
from sessionary.cli.app import cli
from tests.e2e.driving import ROOT, Result, Run, lines, put
from tests.e2e.every_command import commands

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
    then = 1_700_000_000  # older than everything in the project
    folder = Path.home() / ".amplifier" / "projects" / "-p" / "sessions" / ROOT
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))
    assert run("show", "latest", "--json").json["id"] != ROOT
    assert run("fork", "latest", "--dry-run", "--json").json["parent"] == ROOT
    assert run("repair", "latest", "--dry-run", "--json").json["id"] == ROOT


def test_a_readable_id_is_not_shortened_in_a_list(run: Run) -> None:
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


_IDS = frozenset({"ID", "[ID]", "SLUG", "[SLUG]", "PARENT", "CHILD", "[ID | FILE]", "ID | DIR"})
NAMING = [
    pytest.param(name, one, id=f"{name} {one.name}")
    for name, command in commands()
    for one in command.params
    if not name.startswith("archive ")  # those of the archive are in it alone
    if (one.human_readable_name.upper() in ("SESSION", "SESSIONS", "TARGET", "TARGETS"))
    or (name, one.name) == ("work start", "parent")
    or (isinstance(one, click.Argument) and one.metavar in _IDS)
    or (name == "brainstorm restore" and isinstance(one, click.Argument))
]


@pytest.mark.parametrize(("name", "one"), NAMING)
def test_a_shell_completes_wherever_a_session_is_named(run: Run, name: str, one: click.Parameter) -> None:
    if name.endswith("restore"):
        run("brainstorm", "finish", "sign-in")
        run("brainstorm", "cleanup", "--days", "0")
    if name == "feature unarchive":
        run("feature", "complete", FEATURE)
        run("feature", "archive", FEATURE)
    before = [one.opts[0]] if isinstance(one, click.Option) else ["x"] * (name == "work breadcrumb move")
    shell = ShellComplete(cli, {}, "sessionary", "_SESSIONARY_COMPLETE")
    offered = {item.value for item in shell.get_completions([*name.split(), *before], "")}
    assert "latest" in offered
    assert len(offered) > 1
    assert offered <= {
        "latest",
        ROOT[:8],
        FEATURE,
        OTHER,
        "sign-in",
        "sign-out",
        *works(run),
        *map(str, heads(run)),
    }


def works(run: Run) -> list[str]:
    return [row["session_id"] for row in run("work", "list", "--json").json]


def heads(run: Run) -> list[str]:
    return [one[:8] for one in works(run)]


IN_FUTURE = "2090-05-05T10:00:00+00:00"


def test_latest_is_never_a_session_of_a_time_after_the_clock(run: Run) -> None:
    work = WorkStore(Path("docs", "sessions")).create("pm")
    for path in (
        BrainstormStore(Path.cwd()).path("sign-out"),
        Path(".ai-session", OTHER, "state.yaml"),
        Path(WorkStore(Path("docs", "sessions")).folder(work.session_id), "session.json"),
    ):
        text = Path(path).read_text()
        ahead = re.sub(r'((?:updated|last_updated|modified)"?: )"[^"]*"', rf'\1"{IN_FUTURE}"', text)
        assert ahead != text
        Path(path).write_text(ahead)
    for words in (["brainstorm", "validate"], ["feature", "validate"], ["check"]):
        notes = [
            one["path"] for one in run(*words, "--json").json["problems"] if one["code"] == "future_time"
        ]
        assert len(notes) == (3 if words == ["check"] else 1)
    assert run("brainstorm", "status", "latest", "--json").json["slug"] == "sign-in"
    assert run("brainstorm", "list", "--json").json[0]["slug"] == "sign-in"
    assert run("feature", "status", "latest", "--json").json["feature_id"] == FEATURE
    assert run("feature", "list", "--json").json[0]["feature_id"] == FEATURE
    assert run("work", "show", "latest", "--json").json["session_id"] != work.session_id
    assert run("work", "list", "--json").json[0]["session_id"] != work.session_id


@pytest.mark.parametrize("word", ["latest", "SIGN-I", "sign-in"])
def test_trashed_sessions_match_latest_and_a_prefix(run: Run, word: str) -> None:
    assert run("brainstorm", "finish", "sign-in").code == 0
    assert run("brainstorm", "cleanup", "--days", "0").code == 0
    assert run("brainstorm", "restore", word, "--json").json["slug"] == "sign-in"
    assert run("brainstorm", "start", "sign-in", "--new").code == 0
    restored = run("brainstorm", "restore", word, "--archived", "--replace", "--json")
    assert restored.json["slug"] == "sign-in"
    feature = "latest" if word == "latest" else "LOGI"
    assert run("feature", "complete", FEATURE).code == 0
    assert run("feature", "archive", FEATURE).code == 0
    assert run("feature", "unarchive", feature, "--json").json["feature_id"] == FEATURE


def test_undo_of_latest_restores_the_last_trashed_session(run: Run) -> None:
    other = f"{ROOT[:-1]}2"
    said = lines(HELLO, {"role": "assistant", "content": "x"}, HELLO)
    metadata = {"transcript.jsonl": said, "metadata.json": json.dumps({"session_id": other}).encode()}
    put(Path.home() / ".amplifier", other, "-q", metadata, timedelta(hours=1))
    assert run("rewind", other, "1").code == 0
    assert run("trash", ROOT).code == 0
    assert run("undo", "latest", "--json").json["id"] == ROOT
    assert len(run("show", other, "--json").json["messages"]) == 2  # its rewind stands
