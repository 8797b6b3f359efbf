"""`sessionary open`: the command that continues a session, where it is run, and what would be refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from tests.e2e.driving import documented

ID = "3f0c81d2-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "SESSIONARY_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my app").mkdir()
    return tmp_path


def record(home: Path, number: int, kind: str, content: Any) -> dict[str, Any]:
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number > 1 else None,
        "timestamp": f"2026-03-01T09:0{number}:00Z", "cwd": str(home / "my app"),
        "message": {"role": kind, "content": content},
    }  # fmt: skip


def talk(home: Path, *contents: Any, name: str = ID) -> Path:
    path = home / ".claude" / "projects" / "-w" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = ["user", "assistant", "user", "assistant"]
    records = [record(home, at + 1, kinds[at], content) for at, content in enumerate(contents)]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


CALL = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]


def program(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `claude` that writes down where and how it was called, and ends with 7."""
    folder, seen = home / "bin", home / "seen.json"
    folder.mkdir()
    code = (
        f"import json, os, sys; json.dump([os.getcwd(), sys.argv[1:]], open({str(seen)!r}, 'w')); sys.exit(7)"
    )
    (folder / "claude").write_text(f"#!{sys.executable}\n{code}\n")
    (folder / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return seen


@pytest.mark.parametrize("command", ["open", "resume"])
def test_the_printed_line_runs_the_agent_in_its_folder(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    talk(home, "Fix it", "Done.")
    seen = program(home, monkeypatch)
    assert main([command, ID[:8]]) == 0
    printed = capsys.readouterr().out
    assert printed == f"cd '{home}/my app' && claude --resume {ID}\n"
    assert subprocess.run(printed, shell=True, check=False).returncode == 7
    assert json.loads(seen.read_text()) == [str(home / "my app"), ["--resume", ID]]


def test_it_runs_the_agent_itself(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(home, "Fix it", "Done.")
    seen = program(home, monkeypatch)
    assert main(["open", ID, "--run", "--yes"]) == 7
    assert json.loads(seen.read_text()) == [str(home / "my app"), ["--resume", ID]]
    assert main(["open", ID, "--run"]) == 12, "without a terminal it cannot be confirmed"
    assert "give --yes" in capsys.readouterr().err
    (home / "bin" / "claude").unlink()
    assert main(["open", ID, "--run", "--yes"]) == 10
    assert "the program claude is not installed" in capsys.readouterr().err


def test_what_the_agent_may_refuse_is_said_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "Fix it", CALL, "Never mind")
    assert main(["open", ID]) == 13
    printed = capsys.readouterr()
    assert "orphaned_call" in printed.err
    assert printed.out.endswith(f"claude --resume {ID}\n"), "it is printed all the same"


def test_an_agent_that_loses_a_continued_session_is_named_with_what_keeps_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chats = home / ".gemini" / "tmp" / "app" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(home / "my app"))
    said = {"id": "m1", "type": "user", "content": "Fix it"}
    lines = [{"sessionId": ID, "kind": "main"}, said]
    log = chats / f"session-2026-03-01T09-00-{ID[:8]}.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert main(["open", ID[:8]]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"cd '{home}/my app' && gemini --resume {ID}\n"
    assert "deletes a session that was continued" in " ".join(printed.err.split())
    assert "`sessionary archive run` keeps a copy" in printed.err


def test_a_folder_that_is_gone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "Fix it", "Done.")
    (home / "my app").rmdir()
    assert main(["open", ID]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"claude --resume {ID}\n"
    assert "is missing" in printed.err
    assert main(["open", ID, "--run", "--yes"]) == 10


@pytest.mark.parametrize("name", ["--version", "-h"])
def test_an_id_that_looks_like_an_option_is_never_passed(
    home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = talk(home, "Fix it", name=name)
    assert main(["open", "--", str(path)]) == 12
    printed = capsys.readouterr()
    assert printed.out == ""


def test_a_session_that_no_command_continues(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / ".claude" / "projects" / "-w" / ID / "subagents"
    talk(home, "Fix it", "Done.")
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text(json.dumps(record(home, 1, "user", "Help")) + "\n")
    assert main(["open", "agent-1"]) == 18
    assert f"`sessionary open {ID}`" in capsys.readouterr().err


def test_the_fields_of_json_are_documented(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "Fix it", CALL, "Never mind")
    assert main(["open", ID, "--json"]) == 13
    document = json.loads(capsys.readouterr().out)
    assert set(document) == documented("sessionary open")[0]
    assert document["command"] == ["claude", "--resume", ID]
    assert (document["folder"], document["folder_exists"]) == (str(home / "my app"), True)
    assert [one["code"] for one in document["problems"]] == ["orphaned_call"]


def test_what_only_some_versions_refuse_is_printed_and_no_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(
        home,
        "Fix it",
        [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "ok"}],
    )
    assert main(["open", ID, "--json"]) == 0
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["code"], problem["severity"]) == ("empty_thinking", "note")


@pytest.mark.parametrize(
    ("contents", "code"),
    [
        (("Fix it", "Done.", "  "), "empty_text"),
        (("Fix it", "cut \ud83d"), "lone_surrogate"),
        (("Fix it", [{"type": "thinking", "thinking": "Hm."}]), "missing_signature"),
        (("Fix it", CALL, "Go on"), "orphaned_call"),
    ],
)
def test_what_the_provider_refuses_is_reported_with_the_repair(
    home: Path, capsys: pytest.CaptureFixture[str], contents: tuple[Any, ...], code: str
) -> None:
    talk(home, *contents)
    assert main(["open", ID, "--json"]) == 13
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["code"], problem["severity"]) == (code, "stops_resume")
    assert problem["repair"] == f"`sessionary repair {ID} --out DIR` writes a repaired copy"


def test_damage_at_which_a_strict_reader_stops_is_reported(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = talk(home, "Fix it", "Done.")
    path.write_bytes(path.read_bytes() + b"<<<<<<< HEAD\n")
    assert main(["open", ID, "--json"]) == 13
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["code"] == "conflict_marker"


@pytest.mark.parametrize("stated", ["--yolo", "--resume=--yolo", "a\nb", "--a=b"])
def test_an_id_that_a_session_states_is_not_an_option(
    home: Path, capsys: pytest.CaptureFixture[str], stated: str
) -> None:
    chats = home / ".gemini" / "tmp" / "app" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-03-01T09-00-3f0c81d2.jsonl").write_text(json.dumps({"sessionId": stated}) + "\n")
    assert main(["open", "3f0c81d2"]) == 12
    assert "cannot be passed to a program" in capsys.readouterr().err


def test_a_folder_that_is_not_an_absolute_path_counts_as_missing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = talk(home, "Fix it", "Done.")
    path.write_text(path.read_text().replace(json.dumps(str(home / "my app")), '"my app"'))
    assert main(["open", ID]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"claude --resume {ID}\n"
    assert "The folder my app is missing" in printed.err


def test_an_id_that_is_an_option_is_named_with_its_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".copilot" / "session-state" / "--yolo" / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"type": "session.start", "data": {}}\n')
    assert main(["open", "--", "--yolo"]) == 12
    assert f"its name says the id: rename {path}" in capsys.readouterr().err
