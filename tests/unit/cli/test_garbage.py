"""Commands that run until they are interrupted collect garbage; all others do not, for speed."""

import gc
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.model import Message, SessionRef, Summary
from sessionary.workspace import Workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "-p" / "sessions" / "one"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text(json.dumps({"role": "user", "content": "hi"}) + "\n")
    return tmp_path


def noting(found: list[bool]) -> Callable[..., Any]:
    """Replaces what runs for long."""

    def run(*given: object, **__: object) -> tuple[()]:
        found.append(gc.isenabled())
        for one in given:
            if isinstance(one, socket.socket):
                one.close()
        return ()

    return run


def test_a_server_of_pages_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sessionary.viewer import serving

    found: list[bool] = []
    monkeypatch.setattr(serving, "serve", noting(found))
    assert main(["serve", "--no-open", "--home", str(home), "--socket", str(home / "socket")]) == 0
    assert found == [True]


def test_a_server_for_agents_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.server import MCPServer

    found: list[bool] = []
    monkeypatch.setattr(MCPServer, "run", noting(found))
    assert main(["mcp", "--home", str(home)]) == 0
    assert found == [True]


def test_what_follows_a_session_does_and_what_shows_it_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    summary = Workspace.summary

    def noted(workspace: Workspace, ref: SessionRef, *, at_most: int | None = None) -> Summary:
        found.append(gc.isenabled())
        return summary(workspace, ref, at_most=at_most)

    def interrupted(*_: object, **__: object) -> Iterator[Message]:
        found.append(gc.isenabled())
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "summary", noted)
    assert main(["show", "one", "--home", str(home)]) == 0
    assert set(found) == {False}
    monkeypatch.setattr(Workspace, "follow", interrupted)
    main(["show", "one", "--follow", "--home", str(home)])
    assert found[-1] is True
    assert gc.isenabled()
