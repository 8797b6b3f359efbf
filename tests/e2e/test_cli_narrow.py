"""Every list of every kind in a narrow terminal, and where the locale has ASCII only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sessionary import SessionStore
from sessionary.cli.text import cells
from tests.e2e.every_command import RunText, running

LISTS = [
    "list", "tree", "stats", "search it", "events {agent}", "trash {fork} ; trash --list",
    "rewind {agent} 1 ; undo --list", "work list", "work subwork list {work}", "work status {work}", "brainstorm list",
    "brainstorm finish {slug} ; brainstorm start {slug} --new ; brainstorm list --archived",
    "feature list", "feature history {feature}", "feature status {feature}", "brainstorm status {slug}",
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunText:
    return running(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("call", LISTS)
def test_no_line_of_a_list_is_wider_than_the_terminal(
    run: RunText, monkeypatch: pytest.MonkeyPatch, call: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = run(call)
    assert done.code == 0, done.err
    assert done.out.strip()
    assert [line for line in done.out.splitlines() if cells(line) > width] == []


def test_a_long_id_leaves_room_for_the_titles(
    run: RunText, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    title = "Why does the build take ten minutes?"
    store = SessionStore(tmp_path / "agents" / "projects" / "-demo" / "sessions")
    store.append("session-of-the-nightly-build-and-its-many-questions", [{"role": "user", "content": title}])
    listed = run(f"list --home {tmp_path / 'agents'}").out
    assert title[:24] in listed
    short = listed.splitlines()[1].split()[0]
    assert short == "session-of-th…stions"
    assert title in run(f"show {short} --home {tmp_path / 'agents'}").out


def test_a_locale_of_ascii_gets_ascii(run: RunText) -> None:
    commands = [call.partition(" {")[0] for call in LISTS if ";" not in call]
    program = "import sys; from sessionary.cli import main\nfor line in sys.argv[1:]: main(line.split())"
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    lines = [
        *commands,
        "show latest",
        "check --notes",
        "list --json",
        "work show latest",
        "brainstorm status latest",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *lines], capture_output=True, env=environment, check=True
    )
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    assert b"bug in Sessionary" not in done.stderr


HEADS = [
    "list",
    "work list",
    "brainstorm list",
    "feature list",
    "stats",
    "tree",
    "trash {fork} ; trash --list",
]


@pytest.mark.parametrize("call", [*HEADS, "rewind {agent} 1 ; undo --list"])
def test_every_list_has_one_header_word_and_one_form_for_a_time(run: RunText, call: str) -> None:
    head = next(line for line in run(call).out.splitlines() if "WHEN" in line or "PROJECT" in line)
    assert "WHEN" in head.split()
    assert not {"AGE", "DATE", "CREATED", "UPDATED", "MODIFIED", "TIME", "CHANGED"} & set(head.split())
