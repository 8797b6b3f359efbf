"""Sessions that their agent removes while a command runs end no command."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.layouts.agents.opencode import OpenCodeLayout
from sessionary.model import Problem
from sessionary.workspace import Workspace
from sessionary.workspace.sessions import Sessions
from tests.support import agent_stores


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    return tmp_path


def test_a_session_that_vanishes_after_it_was_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Workspace.check

    def check(self: Workspace, target: object) -> Iterator[Problem]:
        found = list(whole(self, target))  # type: ignore[arg-type]
        if found and getattr(target, "session_id", None) == agent_stores.CLAUDE:
            Path(target.locator).unlink()  # type: ignore[attr-defined]
        return iter(found)

    monkeypatch.setattr(Workspace, "check", check)
    assert main(["check"]) == 13
    shown = capsys.readouterr().out
    assert f"✗ {agent_stores.CLAUDE}\n  lost data  torn_tail" in shown
    assert "✗ 16 sessions checked" in shown


@pytest.mark.parametrize("command", ["list", "search fix", "check", "stats", "archive run"])
def test_a_database_that_vanishes_after_its_name_was_read(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    missing = str(home / ".local" / "share" / "opencode" / "gone.db")
    monkeypatch.setattr(OpenCodeLayout, "_databases", lambda self: iter([missing]))
    assert main([*command.split(), "--json"]) == (13 if command == "check" else 0)
    said = capsys.readouterr()
    assert json.loads(said.out)
    assert missing not in said.err
    assert {one.kind for one in Sessions().refs()} == set(agent_stores.IDS)
