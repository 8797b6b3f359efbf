"""The code of docs/workspace.md runs, over sessions of two agents, and the page lists every operation."""

import json
import re
from pathlib import Path

import pytest

from sessionary import SessionStore, Workspace

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "workspace.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    store = SessionStore(tmp_path / ".amplifier" / "projects" / "-p" / "sessions", durability="none")
    call = {"id": "t", "tool": "bash", "arguments": {"command": "make"}}
    messages = [
        {"role": "user", "content": "Fix the race condition", "timestamp": "2026-03-01T09:00:00Z"},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [call],
            "timestamp": "2026-03-01T09:00:01Z",
        },
    ]
    store.save("one", messages, {"name": "The race"})
    claude = tmp_path / ".claude" / "projects" / "-p" / "3f0c81d2-0000-4000-8000-000000000001.jsonl"
    claude.parent.mkdir(parents=True)
    record = {
        "type": "assistant",
        "uuid": "u1",
        "timestamp": "2026-03-02T09:00:00Z",
        "message": {"role": "assistant", "content": "Hi", "model": "opus", "usage": {"input_tokens": 3}},
    }
    claude.write_text(json.dumps(record) + "\n")


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(block, names)
    out = capsys.readouterr().out
    assert "one amplifier The race 2" in out
    assert "claude_code" in out
    assert "one 0 Fix the race condition" in out
    assert "opus 3 0 None 3" in out
    assert "0 1 Fix the race condition\n1 1 Looking.\n" in out
    assert out.endswith("['one']\n2 messages would be removed\n[True]\nrewind is undone\n")


def test_the_page_lists_the_operations() -> None:
    listed = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    methods = {name for name, one in vars(Workspace).items() if callable(one) and not name.startswith("_")}
    # The others of `Sessions` serve the command line.
    methods |= {"find", "summary", "tree", "turns", "stored_files", "stored_records"}
    assert methods == set(listed)
