"""`sessionary doctor`: the searched folders, the sessions found, and those that will be deleted."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.cli.text import cells
from tests.e2e.driving import documented


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "SESSIONARY_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def talk(home: Path, name: str, age: timedelta, version: str, text: str = "Fix it", end: str = "\n") -> None:
    time = (datetime.now(UTC) - age).isoformat()
    record = {
        "type": "user", "uuid": f"u-{name}", "parentUuid": None, "timestamp": time, "version": version,
        "message": {"role": "user", "content": text},
    }  # fmt: skip
    path = home / ".claude" / "projects" / "-w" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record) + end)


def doctor(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    return main(["doctor", *words]), capsys.readouterr().out


def agent(capsys: pytest.CaptureFixture[str], kind: str) -> dict[str, Any]:
    _, printed = doctor(capsys, "--json")
    (found,) = [one for one in json.loads(printed)["agents"] if one["kind"] == kind]
    return dict(found)


def test_what_an_agent_states_reaches_no_terminal_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    talk(tmp_path, "one", timedelta(days=29), "\x1b[31m\u202e2.1", text="\x1b]0;title\x07")
    main(["doctor"])
    out = capsys.readouterr().out
    assert "version \\x1b[31m\\u202e2.1" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_what_is_found_of_an_agent(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "one", timedelta(days=1), "2.1.9")
    talk(home, "two", timedelta(days=25), "2.1.112", "Old work")
    talk(home, "three", timedelta(days=2), "2.1.9", end="\n{broken\n")
    code, printed = doctor(capsys)
    assert code == 0
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    (first,) = [line for line in lines if line.startswith("claude_code")]
    assert first.startswith("claude_code 3 sessions, ")
    assert first.endswith(", 1 damaged")
    assert "~/.claude" in lines
    assert "versions 2.1.9 to 2.1.112" in lines, "by number, not by letter"
    (leaving,) = [line for line in lines if line.startswith("soon deleted")]
    assert leaving.startswith("soon deleted: Old work (")
    assert max(map(len, printed.splitlines())) <= 80


def test_the_setting_says_when_an_agent_deletes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "one", timedelta(days=25), "2.1.9")
    assert agent(capsys, "claude_code")["retention"] == {"days": 30, "source": "the default of Claude Code"}
    settings = home / ".claude" / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 9999}')
    found = agent(capsys, "claude_code")
    assert found["retention"] == {"days": 9999, "source": f"cleanupPeriodDays in {settings}"}
    assert found["leaving"] == []
    settings.write_text("{broken")
    assert [one["id"] for one in agent(capsys, "claude_code")["leaving"]] == ["one"]


def test_a_long_title_takes_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    talk(home, "one", timedelta(days=25), "2.1.9", "漢" * 9000)
    (line,) = [line for line in doctor(capsys)[1].splitlines() if "soon deleted" in line]
    assert ("漢… (" in line, cells(line) <= 80) == (True, True), line


@pytest.mark.skipif(os.name != "posix", reason="no pipes with names")
def test_a_check_continues_after_a_session_that_is_a_pipe(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(home, "a", timedelta(days=1), "2.1.9")
    talk(home, "z", timedelta(days=1), "2.1.9", end="\n{broken\n")
    folder = next((home / ".claude" / "projects").iterdir())
    os.mkfifo(folder / "m.jsonl")
    assert main(["check", "--json"]) == 13
    report = json.loads(capsys.readouterr().out)
    assert report["checked"] == 3
    assert {(one["session"], one["code"]) for one in report["problems"] if one["severity"] != "note"} == {
        ("m", "unreadable_file"),
        ("z", "bad_json"),
    }


def test_an_agent_that_is_not_installed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = doctor(capsys)
    assert code == 0
    assert "claude_code   not found in ~/.claude" in printed.splitlines()
    assert agent(capsys, "claude_code")["locations"] == [{"path": str(home / ".claude"), "state": "missing"}]


def test_a_database_that_cannot_be_read(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_bytes(b"no database" * 100)
    code, printed = doctor(capsys)
    assert code != 0
    assert "cannot be read" in printed
    assert "not a database" in agent(capsys, "opencode")["error"]


def test_the_catalogue_is_counted_and_nothing_else_changes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(home, "one", timedelta(days=1), "2.1.9")
    before = {path: path.read_bytes() for path in (home / ".claude").rglob("*") if path.is_file()}
    _, printed = doctor(capsys)
    assert printed.splitlines()[-1].startswith("catalogue     ~/cache/sessionary/catalogue.db: ")
    assert printed.splitlines()[-1].endswith(", 1 session")
    assert {path: path.read_bytes() for path in (home / ".claude").rglob("*") if path.is_file()} == before


def test_the_fields_of_json_are_documented(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "one", timedelta(days=25), "2.1.9")
    _, printed = doctor(capsys, "--json")
    whole, of_agent, of_catalogue = documented("sessionary doctor")
    document = json.loads(printed)
    assert set(document) == whole
    assert set(document["agents"][0]) == of_agent
    assert set(document["catalogue"]) == of_catalogue
