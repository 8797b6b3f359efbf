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
from tests.support.agent_files import copilot_id, write_lines

ID = "00000001-0000-4000-8000-000000000001"


def stored(number: int, kind: str, **data: Any) -> dict[str, Any]:
    parent = copilot_id(number - 1) if number > 1 else None
    return {
        "type": kind,
        "id": copilot_id(number),
        "parentId": parent,
        "timestamp": "2026-03-01T09:00:00.000Z",
        "data": data,
    }


EVENTS: list[dict[str, Any]] = [
    stored(1, "session.start", sessionId=ID),
    stored(2, "user.message", content="hi"),
    stored(3, "session.task_complete"),
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


def install(home: Path, version: str, stated: Any, machine: str = "universal") -> None:
    folder = home / "pkg" / machine / version / "schemas"
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


def test_types_and_fields_that_the_schema_lacks_are_accepted(home: Path) -> None:
    """As by version 1.0.102."""
    narrow = event("user.message") | {"additionalProperties": False}
    install(home, "1", schema(event("session.start"), narrow))
    assert check(home) == []


def test_the_schema_of_a_version_that_is_unpacked_in_the_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Version 1.0.102 is there, and its schema refers to the events by name."""
    cache = tmp_path / "caches"
    stated = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/SessionEvent",
        "definitions": {
            "SessionEvent": {"anyOf": [{"$ref": "#/definitions/Task"}]},
            "Task": event("session.task_complete", "summary"),
        },
    }
    install(home, "1.0.54", schema(event("session.task_complete")))
    install(cache / "copilot", "1.0.102", stated, "linux-x64")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(sys, "platform", "linux")
    (found,) = check(home)
    assert (found.code, found.line) == ("refused_event", 3)
    assert found.message == (
        "an event session.task_complete fails the schema of Copilot CLI 1.0.102:"
        " $.data: 'summary' is a required property"
    )
    monkeypatch.setenv("COPILOT_CACHE_HOME", str(tmp_path / "none"))
    assert check(home) == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"id": "e2"}, "its `id` is not a UUID"),
        ({"id": 3}, "its `id` is not a UUID"),
        ({"id": "0" * 32}, "its `id` is not a UUID"),
        ({"id": "{00000000-0000-4000-8000-000000000002}"}, "its `id` is not a UUID"),
        ({"id": None}, "its `id` is not a UUID"),
        ({"id": "ABCDEF00-0000-0000-0000-00000000000A"}, None),
        ({"parentId": "e1"}, "its `parentId` is neither a UUID nor null"),
        ({"parentId": 1}, "its `parentId` is neither a UUID nor null"),
        ({"parentId": "00000000-0000-4000-8000-000000000009"}, None),
        ({"timestamp": "yesterday"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": 5}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01T09:00:00"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01 09:00:00Z"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01t09:00:00z"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01T09:00:00,5Z"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-13-01T09:00:00Z"}, "its `timestamp` is not a time with a zone"),
        ({"timestamp": "2026-03-01T09:00:00+01:00"}, None),
        ({"timestamp": "2026-03-01T09:00Z"}, None),
        ({"timestamp": "2026-03-01T09:00:00+0100"}, None),
        ({"agentId": 1}, "its `agentId` is not a text"),
        ({"agentId": None}, "its `agentId` is not a text"),
        ({"ephemeral": "x"}, "its `ephemeral` is neither true nor false"),
        ({"ephemeral": True, "more": 1}, None),
        ({"type": "x.y", "id": "e2"}, None),
        ({"type": 4, "id": "e2"}, None),
    ],
)
def test_what_version_1_0_102_refuses_around_the_data_of_an_event(
    home: Path, changed: dict[str, Any], why: str | None
) -> None:
    start, asked, done = EVENTS
    write_lines(home / "session-state" / ID / "events.jsonl", start, asked | changed, done)
    found = [(one.code, one.severity, one.line, one.message) for one in check(home)]
    kind = "Copilot CLI refuses an event user.message: "
    assert found == ([] if why is None else [("bad_event", Severity.stops_resume, 2, kind + why)])


def test_a_parent_must_be_stated_and_a_session_must_start(home: Path) -> None:
    start, asked, done = EVENTS
    path = home / "session-state" / ID / "events.jsonl"
    write_lines(path, start, {key: one for key, one in asked.items() if key != "parentId"})
    assert [one.code for one in check(home)] == ["bad_event"]
    write_lines(path, asked, done)
    assert [one.code for one in check(home)] == ["no_header"]
    write_lines(path, asked, start)
    assert check(home) == []


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
