"""What GitHub Copilot CLI refuses, by the schema that the installed version brings, and the files beside the events."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.model import Problem, Severity

ID = "00000001-0000-4000-8000-000000000001"

EVENTS: list[dict[str, Any]] = [
    {"type": "session.start", "id": "e1", "data": {"sessionId": ID}},
    {"type": "user.message", "id": "e2", "data": {"content": "hi"}},
    {"type": "session.task_complete", "id": "e3", "data": {}},
]


def event(name: str, *required: str) -> dict[str, Any]:
    data = {"type": "object", "required": list(required)}
    return {"type": "object", "required": ["id"], "properties": {"type": {"const": name}, "data": data}}


def schema(*events: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": list(events)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "session-state" / ID
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    return tmp_path


def install(home: Path, version: str, stated: Any) -> None:
    folder = home / "pkg" / "universal" / version / "schemas"
    folder.mkdir(parents=True)
    (folder / "session-events.schema.json").write_text(json.dumps(stated))


def check(home: Path) -> list[Problem]:
    layout = CopilotCliLayout(home)
    (ref,) = layout.discover()
    return list(layout.check(ref))


def test_an_event_that_the_newest_installed_version_refuses_is_reported(home: Path) -> None:
    names = ("session.start", "user.message", "session.task_complete")
    install(home, "1.0.9", schema(*map(event, names)))
    assert check(home) == []
    install(home, "1.0.10", schema(event(names[0]), event(names[1]), event(names[2], "summary")))
    (found,) = check(home)
    assert (found.code, found.severity, found.line) == ("refused_event", Severity.stops_resume, 3)
    assert found.message == (
        "an event session.task_complete fails the schema of Copilot CLI 1.0.10:"
        " $.data: 'summary' is a required property"
    )


def test_an_event_of_a_type_that_the_schema_lacks_is_refused(home: Path) -> None:
    install(home, "1", schema(event("session.start"), event("user.message")))
    assert [one.line for one in check(home)] == [3]


@pytest.mark.parametrize("stated", [[], {"anyOf": [{"$ref": "http://127.0.0.1:9/x.json"}]}, {"anyOf": 3}])
def test_a_schema_that_cannot_be_used_reports_nothing(home: Path, stated: Any) -> None:
    install(home, "1", stated)
    assert check(home) == []


def test_locks_and_documents_beside_the_events(home: Path) -> None:
    folder = home / "session-state" / ID
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (folder / f"inuse.{ended.pid}.lock").write_text(str(ended.pid))
    (folder / f"inuse.{os.getpid()}.lock").write_text("")
    (folder / "vscode.metadata.json").write_text('{"a":')
    assert [(one.code, one.severity, Path(one.path).name) for one in check(home)] == [
        ("stale_lock", Severity.note, f"inuse.{ended.pid}.lock"),
        ("bad_document", Severity.hides_data, "vscode.metadata.json"),
    ]
