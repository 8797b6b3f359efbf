"""Every command that changes something says how to take it back: in its help, and where there is a way, when it ran."""

import json
import re
from pathlib import Path

import click
import pytest

from sessionary.cli import main
from tests.e2e.driving import ROOT, Result, Run, lines, put
from tests.e2e.every_command import CALLS, UNCHANGING, commands, running

CHANGING = [(name, command) for name, command in commands() if name not in UNCHANGING]
NOTHING_TO_DO = {"feature migrate"}
"""What has nothing to do in a home of the present format."""
_NO_WAY_BACK = re.compile(r"cannot be undone|only undo")


@pytest.mark.parametrize(("name", "command"), [pytest.param(*one, id=one[0]) for one in CHANGING])
def test_the_help_of_what_changes_something_says_how_to_take_it_back(
    name: str, command: click.Command
) -> None:
    assert "undo" in (command.help or "").lower(), name


@pytest.mark.parametrize(
    "call",
    [
        CALLS[name][-1]
        for name, command in CHANGING
        if CALLS.get(name)
        and name not in NOTHING_TO_DO
        and not _NO_WAY_BACK.search(" ".join((command.help or "").split()))
    ],
)
def test_what_has_an_undo_prints_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    done = running(tmp_path, monkeypatch, capsys)(call)
    assert done.code in (0, 3, 13), done.err
    assert re.search(r"^(undo|forward): sessionary ", done.err, re.MULTILINE)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)
    said = [{"role": role, "content": "x"} for role in ("user", "assistant") * 2]
    metadata = {"session_id": ROOT, "name": "Before", "working_dir": "/p"}
    files = {
        "transcript.jsonl": lines(*said) + b'{"role": "us',
        "transcript.jsonl.backup": lines(*said),
        "metadata.json": json.dumps(metadata).encode(),
    }
    put(tmp_path / ".amplifier", ROOT, "-p", files)

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    "words",
    [
        "repair 3f0c",
        "restore-backup 3f0c",
        "rewind 3f0c 1",
        "fork 3f0c",
        "trash 3f0c",
        "rename 3f0c After",
        "mv /p /q",
    ],
)
def test_a_command_prints_the_line_that_takes_it_back(run: Run, words: str) -> None:
    before = run("show", "3f0c", "--json").json, run("list", "--json").json[0]["title"]
    done = run(*words.split())
    assert done.code == 0
    line = next(line for line in done.err.splitlines() if line.startswith("undo: sessionary "))
    assert run(*line.removeprefix("undo: sessionary ").split()).code == 0
    assert (run("show", "3f0c", "--json").json, run("list", "--json").json[0]["title"]) == before


def test_rename_gives_a_session_another_title_and_takes_it_away(run: Run) -> None:
    def title() -> str:
        return str(run("list", "--json").json[0]["title"])

    assert run("rename", "3f0c", "The race").out == f"✓ {ROOT} is now named The race\n"
    assert title() == "The race"
    done = run("rename", "the race", "--clear", "--json").json
    assert (done["before"], done["name"], title()) == ("The race", None, "x")
    assert done["undo"] == f"sessionary rename {ROOT} 'The race'"
    assert run("rename", "3f0c", "Again", "--json").json["undo"] == f"sessionary rename {ROOT} --clear"
    for words in (["3f0c"], ["3f0c", " "], ["3f0c", "x", "--clear"]):
        assert run("rename", *words).code == 2


def test_check_says_what_repair_does_with_bytes_that_are_not_utf8(run: Run) -> None:
    other = f"{ROOT[:-1]}9"
    files = {"transcript.jsonl": b'{"role": "user", "content": "Hi th\xffere"}\n', "metadata.json": b"{}"}
    put(Path.home() / ".amplifier", other, "-q", files)
    reported = run("check", other, "--json").json["problems"]
    [problem] = [one for one in reported if one["code"] == "bad_utf8"]
    assert problem["repair"].endswith("replace the bytes by U+FFFD")
    assert run("repair", other).out.splitlines()[-1] == "  could not be recovered: 1 B of line 1"
    assert run("show", other, "--json").json["messages"][0]["text"] == "Hi th\ufffdere"
    assert "not_recovered" in [one["code"] for one in run("check", other, "--json").json["problems"]]
