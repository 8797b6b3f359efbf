"""Text that tries to act, hide or reorder wherever a page shows it, in every kind of session."""

import json
from pathlib import Path
from typing import Any

from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore

EVIL = (
    "<img src=http://evil.example/x onerror='window.owned=1'><svg onload='window.owned=2'></svg>"
    "<script>window.owned=3</script><iframe src=//evil.example></iframe><a href='javascript:window.owned=4'>x</a>"
    "<style>*{display:none}</style><base href=//evil.example> [l](javascript:window.owned=5) \x1b]0;t\x07 \u202ebidi"
)


def hostile_home(home: Path) -> None:
    """A session, a feature, a brainstorm and a work session of hostile text, and one session without."""
    call = {"id": "c", "tool": EVIL, "arguments": {"command": EVIL, EVIL: EVIL}}
    time = "2026-11-01T10:00:00Z"
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": EVIL, "timestamp": time},
        {"role": "assistant", "content": EVIL, "tool_calls": [call], "timestamp": time},
        {"role": "tool", "tool_call_id": "c", "content": EVIL, "timestamp": time},
        {"role": EVIL, "content": EVIL, "timestamp": time},
    ]
    _write(home, "evil", f"TALK {EVIL}", messages, tail=b"<img src=x onerror='window.owned=6'>\n")
    _write(home, "well", "Well", [{"role": "user", "content": "hi"}])
    features = FeatureStore(home)
    feature = features.create("board-2025-01-09", name=f"BOARD {EVIL}", description=EVIL)
    task = {"task_id": "T", "description": EVIL, "agent": EVIL, "artifacts": [EVIL]}
    features.save_plan(feature, [{"phase_id": "p", "name": EVIL, "tasks": [task]}])
    features.append(feature, {"command": EVIL, "status": "failure", "error": EVIL, "agent": EVIL})
    brainstorms = BrainstormStore(home)
    brainstorms.create("storm")
    brainstorms.answer("storm", [EVIL])
    brainstorms.continue_("storm", questions=[f"STORM {EVIL}"], ems=50)
    WorkStore(home / "docs" / "sessions").create("work_task", purpose=f"LABOUR {EVIL}")


def _write(home: Path, session: str, title: str, messages: list[dict[str, Any]], tail: bytes = b"") -> None:
    folder = home / "projects" / "-app" / "sessions" / session
    folder.mkdir(parents=True)
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    (folder / "transcript.jsonl").write_bytes(lines + tail)
    (folder / "metadata.json").write_text(json.dumps({"session_id": session, "name": title}))
