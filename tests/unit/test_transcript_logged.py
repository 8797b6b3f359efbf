"""A line of a history as a message; what is none is left alone."""

from typing import Any

import pytest

from sessionary.transcript.history_messages import as_message

LINE = {
    "timestamp": "2025-01-09T10:00:00Z",
    "command": "implement",
    "arguments": "--task T1",
    "status": "success",
}


def test_a_logged_command_is_a_message() -> None:
    assert as_message(LINE) == {
        "role": "command",
        "content": "implement --task T1",
        "timestamp": "2025-01-09T10:00:00Z",
    }
    failed = {**LINE, "status": "failure", "error": "no tests"}
    assert as_message(failed)["content"] == "implement --task T1\nno tests"
    phase = {"timestamp": LINE["timestamp"], "command": "implement", "phase": "red", "task_id": "T1"}
    assert as_message(phase)["content"] == "implement red"


@pytest.mark.parametrize(
    "record",
    [
        {**LINE, "role": "user"},
        {**LINE, "content": "x"},
        {**LINE, "message": {}},
        {**LINE, "type": "tool_use"},
        {**LINE, "command": ["ls"]},
        {**LINE, "timestamp": 5},
        {"timestamp": "2025-01-09T10:00:00Z", "event": "session_start"},
        {},
    ],
)
def test_any_other_record_stays_what_it_is(record: dict[str, Any]) -> None:
    assert as_message(record) is record
