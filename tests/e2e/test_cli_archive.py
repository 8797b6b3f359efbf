"""`sessionary archive` as it is typed: what it prints, its JSON, and its exit codes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from sessionary import Workspace
from sessionary.cli import last_list, main
from sessionary.cli.app import cli
from sessionary.errors import AlreadyExists
from sessionary.layouts import registry
from tests.support import agent_stores
from tests.support.agent_stores import CLAUDE, IDS, OPENCODE

Say = Callable[..., tuple[int, str, str]]
ALL = sum(map(len, IDS.values()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agent_stores.enter(tmp_path / "home", monkeypatch)
    agent_stores.make(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def say(home: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def say(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return say


def document(say: Say, *words: str) -> Any:
    code, out, err = say(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_run_prints_what_it_archived(say: Say) -> None:
    assert say("archive", "list")[1:] == ("", "Nothing is archived: `sessionary archive run`.\n")
    code, out, err = say("archive", "run")
    assert (code, err) == (0, "")
    assert out.startswith(f"✓ {ALL} sessions archived (")
    assert say("archive", "run")[1] == f"✓ 0 sessions archived, {ALL} unchanged\n"


def test_the_json_of_a_run(say: Say, home: Path) -> None:
    found = document(say, "archive", "run")
    assert (found["unchanged"], found["failed"]) == (0, [])
    assert found["folder"] == str(home / ".local" / "share" / "sessionary" / "archive")
    assert {one["id"] for one in found["pushed"]} == {one for some in IDS.values() for one in some}
    [claude] = [one for one in found["pushed"] if one["id"] == CLAUDE]
    assert (claude["kind"], claude["title"], claude["versions"]) == (
        "claude_code",
        "Fix the build of claude",
        1,
    )
    assert claude["home"] == str(home / ".claude")


def test_a_tree_names_a_sub_agent_once(say: Say) -> None:
    assert [line.split()[:3] for line in say("tree")[1].splitlines() if "zebra" in line] == [
        ["└", "x1", "Look"]
    ]


def test_the_list_says_where_the_source_is_gone(say: Say, home: Path) -> None:
    say("archive", "run")
    shutil.rmtree(home / ".claude")
    rows = {one["id"]: one["source"] for one in document(say, "archive", "list")}
    assert (rows.pop(CLAUDE), set(rows.values())) == ("gone", {"present"})
    assert [one["id"] for one in document(say, "archive", "list", "--gone")] == [CLAUDE]
    assert "Fix the build" in say("archive", "list", "--gone")[1]
    shown = [line.split()[0] for line in say("archive", "list")[1].splitlines()[1:]]
    assert len(set(shown)) == len(shown) == len(rows) + 1
    rows = {one["id"]: one["archived"] for one in document(say, "list")}
    assert (rows[CLAUDE], rows["agent-x1"], rows[OPENCODE]) == (True, True, False)
    _, out, err = say("list")
    assert "(archived)" in out
    assert "1 session is only in the archive" in err
    assert "Fix the build of claude" in say("show", CLAUDE)[1]
    code, out, err = say("open", CLAUDE)
    assert (code, out) == (18, "")
    assert f"`sessionary archive restore {CLAUDE}` puts it back" in err


def test_versions_are_listed_and_restored(say: Say, home: Path, tmp_path: Path) -> None:
    say("archive", "run")
    path = home / ".claude" / "projects" / "-home-u-app" / f"{CLAUDE}.jsonl"
    before = path.read_bytes()
    path.write_bytes(before[:20])
    say("archive", "run")
    versions = document(say, "archive", "list", CLAUDE)["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    assert versions[1]["size"] - versions[0]["size"] == len(before) - 20
    assert "longest" in say("archive", "list", CLAUDE)[1].splitlines()[2]
    done = document(say, "archive", "restore", CLAUDE, "--to", str(tmp_path / "1"), "--version", "1")
    assert done["listed"] is None
    assert [Path(one).read_bytes() for one in done["paths"] if one.endswith(f"{CLAUDE}.jsonl")] == [before]
    code, out, err = say("archive", "restore", CLAUDE, "--to", str(tmp_path / "3"), "--version", "3")
    assert (code, out) == (10, "")
    assert "its versions are 1, 2" in err


def test_restored_in_place_it_is_listed_again(say: Say, home: Path) -> None:
    say("archive", "run")
    shutil.rmtree(home / ".claude" / "projects")
    code, out, err = say("archive", "restore", CLAUDE)
    assert (code, err) == (0, "Claude Code lists it in the folder of its project.\n")
    assert out.startswith(f"✓ {CLAUDE} restored: 3 files\n")
    assert document(say, "archive", "list", "--gone") == []
    code, _, err = say("archive", "restore", CLAUDE)
    assert code == AlreadyExists.exit_code
    assert "already exists" in err


def test_verify_ends_with_13_where_something_is_damaged(say: Say) -> None:
    folder = Path(document(say, "archive", "run")["folder"])
    assert say("archive", "verify")[0] == 0
    assert document(say, "archive", "verify", CLAUDE)["sessions"] == 1
    head = sorted((folder / "heads").glob("[0-9a-f]*"))[0]
    shutil.rmtree(folder / "blocks" / head.name)
    code, out, err = say("archive", "verify")
    assert code == 13
    assert "✗" in out
    assert "archive rm ID" in err
    code, out, _ = say("archive", "verify", "--json")
    assert (code, json.loads(out)["ok"], len(json.loads(out)["damaged"])) == (13, False, 1)


def test_a_number_is_a_row_of_the_last_list(say: Say, tmp_path: Path) -> None:
    assert say("archive", "run")[0] == 0
    (pi,) = (one.ref for one in Workspace().list() if one.ref.kind == "pi")
    last_list.remember([pi])
    restored = document(say, "archive", "restore", "1", "--to", str(tmp_path / "out"))
    assert restored["id"] == agent_stores.PI
    assert document(say, "archive", "verify", "1")["sessions"] == 1
    assert document(say, "archive", "rm", "1", "--yes")["removed"] == [agent_stores.PI]
    code, _, err = say("archive", "restore", "1")
    assert (code, "no archived session is called 1" in err) == (10, True)


def test_rm_asks_first(say: Say) -> None:
    say("archive", "run")
    code, _, err = say("archive", "rm", CLAUDE)
    assert code == 2
    assert "add --yes" in err
    assert document(say, "archive", "rm", CLAUDE, "--yes") == {"removed": [CLAUDE]}
    assert CLAUDE not in [one["id"] for one in document(say, "archive", "list")]
    code, _, err = say("archive", "rm", CLAUDE, "--yes")
    assert code == 10
    assert "no archived session" in err


def test_add_chooses_kinds_projects_and_the_folder(say: Say, tmp_path: Path) -> None:
    found = document(
        say, "archive", "add", "--kind", "pi", "--project", "/home/u", "--folder", str(tmp_path / "a")
    )
    assert found == {"kinds": ["pi"], "projects": ["/home/u"], "folder": str(tmp_path / "a")}
    assert [one["kind"] for one in document(say, "archive", "run")["pushed"]] == ["pi"]
    assert (tmp_path / "a" / "index").exists()
    assert document(say, "archive", "add", "--replace")["kinds"] == [one.name for one in registry.AGENTS]
    code, _, err = say("archive", "add", "--kind", "work")
    assert code == 18
    assert "cannot be archived" in err


def test_doctor_and_the_archive_agree_on_what_will_be_lost(say: Say) -> None:
    before = {one["kind"]: one["leaving_unarchived"] for one in document(say, "doctor")["agents"]}
    assert before["claude_code"] == 1
    assert "1 of them not archived: `sessionary archive run`" in say("doctor")[1]
    say("archive", "run")
    after = {one["kind"]: one["leaving_unarchived"] for one in document(say, "doctor")["agents"]}
    assert set(after.values()) == {0}


def test_the_remedy_for_damaged_settings_works(say: Say, home: Path) -> None:
    path = home / ".config" / "sessionary" / "archive.json"
    path.parent.mkdir()
    path.write_text("x")
    code, _, err = say("archive", "run")
    assert code == 12
    assert "`sessionary archive add --replace`" in err
    assert say("archive", "add", "--replace")[0] == 0
    assert say("archive", "run")[0] == 0


def test_a_file_in_the_place_of_the_folder_is_reported(say: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = say("archive", "run", "--folder", str(tmp_path / "file"))
    assert (code, out) == (16, "")
    assert "a file is in the place of a folder" in err


def test_a_shell_completes_the_ids_in_the_archive(say: Say) -> None:
    say("archive", "run")
    shell = ShellComplete(cli, {}, "sessionary", "_SESSIONARY_COMPLETE")
    for command in ("list", "restore", "rm", "verify"):
        offered = {item.value for item in shell.get_completions(["archive", command], CLAUDE[:4])}
        assert CLAUDE in offered
        assert not [one for one in offered if not one.startswith(CLAUDE[:4])]


@pytest.mark.parametrize("command", ["add", "run"])
def test_an_id_is_refused_with_what_chooses_sessions(say: Say, command: str) -> None:
    code, _, err = say("archive", command, CLAUDE)
    assert code == 2
    assert f"unexpected extra argument ({CLAUDE})" in err
    assert "`sessionary archive run` archives all sessions that are chosen" in err
    assert "`sessionary archive add --kind KIND --project DIR` chooses them" in err


@pytest.mark.parametrize("kind", IDS)
def test_what_is_restored_into_a_folder_is_read_there(say: Say, tmp_path: Path, kind: str) -> None:
    document(say, "archive", "run")
    for number, name in enumerate(IDS[kind]):
        home = tmp_path / f"restored {number}"
        document(say, "archive", "restore", name, "--to", str(home))
        rows = {one["id"]: one for one in document(say, "list", "--home", str(home))}
        assert rows[name]["kind"] == kind
        assert (
            document(say, "show", name, "--home", str(home))["messages"]
            == document(say, "show", name)["messages"]
        )


def test_a_chosen_folder_that_is_missing_is_reported(say: Say, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    assert say("archive", "add", "--folder", str(disk))[0] == 0
    assert str(disk) not in say("list")[2], "nothing is archived yet, so nothing is missing"
    assert say("archive", "run")[0] == 0
    assert str(disk) not in say("list")[2]
    shutil.rmtree(disk)
    for words in (["list"], ["tree"], ["stats"], ["search", "Fix"], ["sql", "SELECT 1"]):
        first, second = say(*words)[2].splitlines()[:2]
        assert first == f"The folder of the archive, {disk}, does not exist: its sessions are missing."
        assert len(second) <= 80
    assert say("archive", "add", "--folder", str(disk))[0] == 0, "as the second line says"
    assert "does not exist" not in say("list")[2]
    disk.rmdir()
    assert say("archive", "add", "--replace")[0] == 0
    assert "does not exist" not in say("list")[2]


def test_a_folder_that_cannot_be_created_is_not_chosen(say: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = say("archive", "add", "--folder", str(tmp_path / "file" / "archive"))
    assert code == 16
    assert str(tmp_path / "file") in err
    assert document(say, "archive", "run")["folder"] != str(tmp_path / "file" / "archive")


def test_long_ids_are_cut_before_columns_are_left_out(
    say: Say, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = next((home / ".claude").rglob(f"{CLAUDE}.jsonl"))
    new = "a-name-of-a-session-that-is-longer-than-others"
    old.with_name(f"{new}.jsonl").write_text(old.read_text().replace(CLAUDE, new))
    assert say("archive", "run")[0] == 0
    monkeypatch.setenv("COLUMNS", "80")
    heads, *rows = say("archive", "list")[1].splitlines()
    assert "SIZE" in heads
    [row] = [row for row in rows if row.startswith("a-name")]
    assert "…" in row.split()[0]
    assert document(say, "archive", "list", row.split()[0])["id"] == new
