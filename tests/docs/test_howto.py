"""Every command in the how-to for agents runs as it is printed."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.cli.app import COMMANDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "session-analyst.md"
ID = "3f0c81d2-0000-4000-8000-000000000001"
NAMED = "The slow build"
SPOKEN = re.compile(r"`(sessionary [a-z][^`]*)`")
MAY_FIND = {0, 13}  # `check` ends with 13 where it has found something


def commands() -> Iterator[str]:
    """Every command of the page, without the filters that its output is piped through."""
    for line in PAGE.read_text("utf-8").splitlines():
        for spoken in SPOKEN.findall(line.replace("\\|", "|")):
            yield spoken.partition(" | ")[0]


FOUND = sorted(set(commands()))


def words_of(command: str, tmp_path: Path) -> list[str]:
    """The command line with its placeholders filled in."""
    filled = {
        "ID": ID,
        "ID:INDEX": f"{ID}:1",
        "3f0c81d2": ID,
        "NAME": "app",
        "WORD": "build",
        "SPAN": "span-1",
        "OLDPATH": "app",
        "NEWPATH": str(tmp_path / "code" / "shop"),
    }
    return [filled.get(word, word) for word in shlex.split(command)[1:]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    home = tmp_path / "home"
    folder = home / "projects" / "-home-u-app" / "sessions" / ID
    folder.mkdir(parents=True)
    (tmp_path / "code" / "shop").mkdir(parents=True)
    talk = [
        message
        for turn in range(1, 13)
        for message in (
            {"role": "user", "content": f"Question {turn} about the build"},
            {"role": "assistant", "content": f"Answer {turn}: we decided"},
        )
    ]
    data = "".join(json.dumps(message) + "\n" for message in talk)
    (folder / "transcript.jsonl").write_text(data)
    (folder / "transcript.jsonl.backup").write_text(data[: data.index("\n") + 1])
    metadata = {"session_id": ID, "name": NAMED, "working_dir": "/home/u/app"}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / "metadata.json.backup").write_text(json.dumps({**metadata, "name": "Old"}))
    event = {"ts": "2026-03-04T14:00:00.000Z", "lvl": "INFO", "event": "tool:post", "span_id": "span-1"}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    return home


def test_the_page_has_a_command_for_every_task() -> None:
    assert len(FOUND) > 35
    used = {command.split()[1] for command in FOUND}
    # These are not about one session of a home, and have pages of their own.
    assert used == set(COMMANDS) - {
        "demo",
        "work",
        "brainstorm",
        "feature",
        "archive",
        "sync",
        "serve",
        "import",
        "mcp",
    }


@pytest.mark.parametrize("command", FOUND)
def test_a_command_of_the_page_runs(
    command: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *words = words_of(command, tmp_path)
    if name == "undo" and "--list" not in words:
        assert main(["rewind", "--home", str(home), ID, "3"]) == 0
    code = main([name, "--home", str(home), *words])
    reported = capsys.readouterr()
    assert code in {"check": MAY_FIND, "search": {0, 1}}.get(name, {0}), reported.err
