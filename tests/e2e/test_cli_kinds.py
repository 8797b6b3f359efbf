"""The commands over all kinds of sessions: what each may be asked, and what is said where it may not."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore, FeatureStore, Workspace, WorkStore
from sessionary.cli import main
from sessionary.mcp.reading import Call, Reading

Say = Callable[..., tuple[int, str, str]]

SLUG = "sign-in"


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command in a project that has a session of each kind: its exit code, and what it printed."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    BrainstormStore(project).create(SLUG, questions=["Which kind of sign-in?"])
    FeatureStore(project).create("login-2026-01-02", name="Login", description="Let people in")
    WorkStore(project / "docs" / "sessions").create("pm")

    def say(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        reported = capsys.readouterr()
        return code, reported.out, reported.err

    return say


def kinds(say: Say) -> dict[str, dict[str, Any]]:
    code, out, _ = say("list", "--all", "--json")
    assert code == 0
    return {row["kind"]: row for row in json.loads(out)}


def test_a_list_holds_every_kind_of_the_project(say: Say) -> None:
    assert set(kinds(say)) == {"brainstorm", "feature", "work"}


def test_a_check_without_targets_checks_all_kinds(say: Say) -> None:
    code, out, _ = say("check", "--json")
    document = json.loads(out)
    assert (code, document["checked"]) == (0, 3)


def test_what_is_damaged_in_the_project_is_found(say: Say) -> None:
    path = Path(BrainstormStore(Path.cwd()).path(SLUG))
    path.write_bytes(b"session: [1\n")
    code, out, _ = say("check", "--json")
    assert code == 13
    worse = [problem for problem in json.loads(out)["problems"] if problem["severity"] != "note"]
    assert {problem["session"] for problem in worse} == {SLUG}


@pytest.mark.parametrize(
    ("year", "found"), [(2001, ["brainstorm", "feature", "work"]), (2003, ["feature", "work"])]
)
def test_a_session_that_states_no_time_has_that_of_its_file_on_every_surface(
    say: Say, year: int, found: list[str]
) -> None:
    path = Path(BrainstormStore(Path.cwd()).path(SLUG))
    path.write_bytes(b"session: [1\n")
    changed = datetime(2002, 1, 1, tzinfo=UTC).timestamp()
    os.utime(path, (changed, changed))
    since = ("--since", f"{year}-01-01", "--json")
    answer = Reading(lambda: Call(Workspace(), redact=False)).list_sessions(since=f"{year}-01-01")
    listed = {
        "list": [row["kind"] for row in json.loads(say("list", *since)[1])],
        "API": [one.ref.kind for one in Workspace().list(since=datetime(year, 1, 1, tzinfo=UTC))],
        "MCP": [row["kind"] for row in answer.content["sessions"]],
    }
    assert {place: sorted(kinds) for place, kinds in listed.items()} == dict.fromkeys(listed, found)
    assert json.loads(say("stats", *since)[1])["sessions"] == len(found)


FOR_AGENTS = ("events", "fork", "repair", "restore-backup")
REFUSED = [
    *((kind, command) for kind in ("brainstorm", "feature", "work") for command in FOR_AGENTS),
    *((kind, command) for kind in ("feature", "work") for command in ("rewind", "trash", "undo")),
]


@pytest.mark.parametrize(("kind", "command"), REFUSED)
def test_what_a_kind_cannot_do_says_so_and_changes_nothing(say: Say, kind: str, command: str) -> None:
    session = kinds(say)[kind]["id"]
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    code, out, err = say(command, session, *(["1"] if command == "rewind" else []))
    assert (code, out) == (18, "")
    assert f"sessionary {kind}" in err
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == before


def test_a_brainstorm_is_changed_and_undone_by_its_file(say: Say) -> None:
    store = BrainstormStore(Path.cwd())
    file = store.path(SLUG)
    store.answer(SLUG, ["Passkeys only"])
    store.continue_(SLUG, questions=["For whom?"])
    assert say("rewind", file, "1")[0] == 0
    assert store.load(SLUG).iteration == 1
    code, out, _ = say("undo", file, "--json")
    assert (code, json.loads(out)["operation"]) == (0, "rewind")
    assert store.load(SLUG).iteration == 2
    store.abandon(SLUG)
    assert say("trash", file)[0] == 0
    assert not Path(file).exists()
    code, out, _ = say("undo", file, "--json")
    assert (code, json.loads(out)["operation"]) == (0, "trash")
    assert store.load(SLUG).iteration == 2


def test_a_path_without_a_session_is_refused_and_says_where_to_look(say: Say) -> None:
    path = f"{Path.cwd()}/none.yaml"
    code, out, err = say("undo", path)
    assert (code, out) == (10, "")
    assert f"no session in {path}" in err
    assert "sessionary trash --list" in err
    Path(path).write_text("x: 1")
    code, out, err = say("trash", path)
    assert (code, out) == (12, "")
    assert "not that of a session" in err


@pytest.mark.parametrize("kind", ["feature", "work"])
@pytest.mark.parametrize("command", ["undo", "trash", "fork"])
def test_what_a_kind_cannot_do_says_so_of_a_path(say: Say, kind: str, command: str) -> None:
    path = kinds(say)[kind]["path"]
    code, out, err = say(command, path)
    assert (code, out) == (18, "")
    assert f"sessionary {kind}" in err


def test_a_brainstorm_is_known_by_its_file_from_any_project(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = BrainstormStore(Path.cwd()).path(SLUG)
    monkeypatch.chdir(tmp_path)
    code, out, _ = say("show", str(file), "--json")
    assert (code, json.loads(out)["id"]) == (0, SLUG)
    assert say("check", str(file))[0] == 0


def found(say: Say, *words: str) -> list[tuple[str, str]]:
    """The hits of a search: the role, and the words that were found; each must be what `show` opens."""
    code, out, _ = say("search", *words, "--json")
    hits = json.loads(out)["hits"]
    assert code == (0 if hits else 1)
    for hit in hits:
        [shown] = json.loads(say("show", hit["locator"], "--around", "0", "--json")[1])["messages"]
        assert (shown["role"], shown["index"]) == (hit["role"], hit["index"])
    return [(hit["role"], hit["text"][slice(*hit["marks"][0])]) for hit in hits]


def test_search_includes_brainstorms(say: Say) -> None:
    store = BrainstormStore(Path.cwd())
    store.answer(SLUG, ["Passkeys only"])
    store.idea(SLUG, "Magic links", score=7)
    store.party(SLUG, "Tokens", [{"persona": "Security", "key_points": ["rotate them"]}])
    assert found(say, "which kind") == [("assistant", "Which kind")]
    assert found(say, "passkeys", "--role", "person") == [("user", "Passkeys")]
    assert found(say, "magic") == [("idea", "Magic")]
    assert found(say, "rotate") == [("party", "rotate")]
    assert found(say, "ems_delta") == []


def unsearched(say: Say) -> tuple[list[str], str]:
    """The sessions of which a search says as JSON that it did not see all, and what it prints for a user."""
    _, out, _ = say("search", "kind", "--json")
    return [problem["session"] for problem in json.loads(out)["problems"]], say("search", "kind")[2]


def test_a_search_reports_a_brainstorm_that_it_cannot_read(say: Say) -> None:
    assert unsearched(say)[0] == []
    Path(BrainstormStore(Path.cwd()).path(SLUG)).write_bytes(b"session: [1\n")
    sessions, reported = unsearched(say)
    assert sessions == [SLUG]
    assert f"1 damaged place not searched; run `sessionary check {SLUG}` for details\n" in reported


def test_a_search_names_the_session_of_a_breadcrumb_that_it_cannot_read(say: Say) -> None:
    session_id = kinds(say)["work"]["id"]
    folder = Path(WorkStore("docs/sessions").folder(session_id), "breadcrumbs", "0")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "20260301_090000_000000.json").write_bytes(b'{"prompt": "kind')
    os.utime(folder / "20260301_090000_000000.json", (0, 0))
    (folder / "20260301_090000_000001.json").mkdir()
    sessions, reported = unsearched(say)
    assert sessions == [session_id] * 2
    assert f"2 damaged places not searched; run `sessionary check {session_id}` for details\n" in reported


def test_show_names_a_command_that_can_be_copied(say: Say) -> None:
    folder = Path("..", "home", ".amplifier", "projects", "-p", "sessions", "3f0c81d2")
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text('{"name": "Why not"}')
    (folder / "transcript.jsonl").write_bytes(b'{"role": "user", "content": "Hi"}\n{torn\n')
    for word in ("Why not", "3f0c81d2:0", "3f0c", str(folder)):
        assert "`sessionary check 3f0c81d2` for details\n" in say("show", word)[2]
    file = Path("a file.jsonl")
    file.write_bytes(b'{"role": "user", "content": "Hi"}\n{torn\n')
    assert "`sessionary check 'a file.jsonl'` for details\n" in say("show", str(file))[2]


def test_search_includes_the_history_of_features(say: Say) -> None:
    store = FeatureStore(Path.cwd())
    store.append("login-2026-01-02", {"command": "plan", "arguments": "the form", "agent": "ana"})
    store.append(
        "login-2026-01-02", {"command": "implement", "arguments": "the form", "error": "no colour left"}
    )
    assert found(say, "COLOUR") == [("command", "colour")]
    assert found(say, "form", "--role", "command") == [("command", "form")] * 2
    assert found(say, "agent") == []


def test_a_brainstorm_and_a_feature_are_shown_in_words(say: Say) -> None:
    BrainstormStore(Path.cwd()).answer(SLUG, ["Passkeys only"])
    FeatureStore(Path.cwd()).append("login-2026-01-02", {"command": "plan", "arguments": "the form"})
    code, out, _ = say("show", SLUG)
    assert code == 0
    assert "Which kind of sign-in?" in out
    assert out.splitlines()[-1] == "Passkeys only"
    history = Path.cwd() / ".ai-session" / "login-2026-01-02" / "history.jsonl"
    for target in ("login-2026-01-02", str(history)):
        code, out, _ = say("show", target)
        assert (code, out.splitlines()[-1]) == (0, "plan the form")
        assert "record:" not in out
    [shown] = json.loads(say("show", str(history), "--json")[1])["messages"]
    assert (shown["role"], shown["text"], shown["turn"]) == ("command", "plan the form", 1)


def test_a_history_is_not_a_log_of_events(say: Say) -> None:
    history = Path.cwd() / ".ai-session" / "login-2026-01-02" / "history.jsonl"
    code, out, err = say("events", str(history))
    assert (code, out) == (18, "")
    assert "does not support sessions of kind feature: login-2026-01-02" in err


@pytest.mark.parametrize("name", ["state.yaml", "implementation-plan.yaml"])
def test_a_file_of_a_feature_leads_to_the_feature(say: Say, name: str) -> None:
    file = Path.cwd() / ".ai-session" / "login-2026-01-02" / name
    file.touch()
    code, out, _ = say("check", str(file), "--json")
    assert (code, json.loads(out)["checked"]) == (0, 1)
    assert json.loads(say("show", str(file), "--json")[1])["id"] == "login-2026-01-02"
    assert say("events", str(file))[0] == 18


@pytest.mark.parametrize("command", ["check", "show", "events"])
def test_yaml_that_is_not_a_session_is_refused_and_not_called_damaged(say: Say, command: str) -> None:
    code, out, err = say(command, str(Path.cwd() / ".ai-session" / "active-features.yaml"))
    assert (code, out) == (12, "")
    assert "is YAML but not a known session" in err
