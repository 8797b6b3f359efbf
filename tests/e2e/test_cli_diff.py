"""`sessionary diff`: the table in 80 columns, and what is refused."""

from pathlib import Path

import pytest

from sessionary import SessionStore
from sessionary.cli import main
from tests.unit.test_workspace_diff import SHARED, called, rewound


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    rewound(tmp_path)
    return tmp_path


def test_the_table(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "s1", "s1@1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["s1", "s1@1"],
        ["title", "Go", "Go"],
        ["turns", "2", "2"],
        ["equal", "turns", "1", "1"],
        ["messages", "4", "4"],
        ["errors", "0", "0"],
        ["tokens", "44", "26"],
        ["cost", "?", "?"],
        ["models", "m", "m"],
        [],
        ["TOOL", "s1", "s1@1"],
        ["Bash", "0", "1"],
    ]
    assert max(map(len, lines)) <= 80


def test_of_equally_different_tools_the_most_frequent_comes_first(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SessionStore(home / ".amplifier" / "projects" / "-w" / "sessions", durability="none")
    store.save("one", [*SHARED, *called(2, "edit"), *called(3, "bash")], {})
    store.save("two", SHARED, {})
    assert main(["diff", "one", "two"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = lines.index(["TOOL", "one", "two"])
    assert lines[at + 1 : at + 3] == [["edit", "2", "1"], ["bash", "1", "0"]]


def test_long_titles_and_files_fit(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".claude" / "projects" / "-w" / "s1.jsonl"
    text = path.read_text().replace('"Go"', '"' + "Go \\u001b[31m" * 50 + '"')
    path.write_text(text.replace('"input": {}', '"input": {"path": "/' + "x/" * 90 + 'end.py"}'))
    assert main(["diff", "s1", "s1@1"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "end.py  0" in printed, "the end of a path says more than its beginning"
    assert "\x1b[31" not in printed


def test_what_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "s1", "s1@7"]) == 12
    assert "2 branches were left" in capsys.readouterr().err
    assert main(["diff", "s1", "gone"]) == 10
    assert main(["diff", "s1"]) == 2
