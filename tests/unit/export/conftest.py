"""A workspace with one session of Claude Code, of records that a test gives, and a sub-agent below it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary import Workspace

ID = "3f0c81d2-0000-4000-8000-000000000001"
Talk = Callable[..., Workspace]


def record(number: int, kind: str, content: Any, parent: int | None = None) -> dict[str, Any]:
    """A record of the conversation; its parent is the one before it."""
    before = number - 1 if parent is None else parent
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{before}" if before else None, "sessionId": ID,
        "timestamp": f"2026-03-01T09:{number:02}:00Z", "cwd": "/home/zoe/app", "gitBranch": "main",
        "message": {"role": kind, "content": content, **({"id": f"m{number}"} if kind == "assistant" else {})},
    }  # fmt: skip


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Writes the session, and returns a workspace over it."""
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(*records: dict[str, Any] | bytes, agent: tuple[dict[str, Any], ...] = ()) -> Workspace:
        path = tmp_path / ".claude" / "projects" / "-home-zoe-app" / f"{ID}.jsonl"
        for place, lines in ((path, records), (path.with_suffix("") / "subagents" / "agent-a1.jsonl", agent)):
            if lines:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(
                    b"".join(
                        one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines
                    )
                )
        return Workspace(cache=str(tmp_path / "cache"))

    return write
