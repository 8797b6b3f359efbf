"""EventsLog: order of keys, helpers, many writers, sealing, levels."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from sessionary import EventsLog
from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid, InvalidId


def lines(folder: Any) -> Any:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def test_what_distinguishes_lines_comes_first_and_data_last(tmp_path: Any) -> None:
    now = datetime(2025, 1, 31, 12, tzinfo=UTC)
    with EventsLog.with_fs(OS_FS, tmp_path / "s", now=lambda: now) as log:
        log.append({"data": {"x": 1}, "duration_ms": 5, "event": "tool:post", "status": "ok"})
    (text,) = (tmp_path / "s" / "events.jsonl").read_text().splitlines()
    assert text == (
        '{"ts": "2025-01-31T12:00:00.000+00:00", "lvl": "INFO", "event": "tool:post", "session_id": "s", '
        '"duration_ms": 5, "status": "ok", "data": {"x": 1}}'
    )


def test_given_fields_are_kept(tmp_path: Any) -> None:
    event = {"ts": "t", "lvl": "DEBUG", "event": "e", "session_id": "other", "data": None}
    with EventsLog(tmp_path / "s") as log:
        log.append(event)
    assert lines(tmp_path / "s") == [event]


def test_an_event_needs_a_name_and_an_open_log(tmp_path: Any) -> None:
    log = EventsLog(tmp_path / "s")
    with pytest.raises(Invalid, match="name"):
        log.append({"data": 1})
    log.close()
    log.close()
    with pytest.raises(Invalid, match="closed"):
        log.append({"event": "e"})
    assert not (tmp_path / "s").exists()
    with pytest.raises(InvalidId):
        EventsLog(tmp_path / ".hidden").append({"event": "e"})
    with pytest.raises(Invalid):
        EventsLog(tmp_path / "s", durability="often")


def test_the_documented_events(tmp_path: Any) -> None:
    with EventsLog(tmp_path / "s") as log:
        log.session_start(bundle="b")
        log.prompt_submit("hello")
        log.llm_request(model="m")
        log.llm_response(usage={"input_tokens": 3}, duration_ms=7)
        log.tool_pre("bash", input={"command": "ls"})
        log.tool_post("bash", result="a.py", duration_ms=1)
        log.tool_error("bash", ValueError("no"))
        log.error("lost", event="provider:error")
        log.prompt_complete()
        log.session_end()
    events = lines(tmp_path / "s")
    assert [event["event"] for event in events] == [
        "session:start",
        "prompt:submit",
        "llm:request",
        "llm:response",
        "tool:pre",
        "tool:post",
        "tool:error",
        "provider:error",
        "prompt:complete",
        "session:end",
    ]
    assert [event["lvl"] for event in events].count("ERROR") == 2
    assert events[3] == {**events[3], "duration_ms": 7, "data": {"usage": {"input_tokens": 3}}}
    assert events[6]["error"] == {"type": "ValueError", "message": "no"}
    assert "data" not in events[9]


def test_a_torn_line_is_sealed_and_never_cut(tmp_path: Any) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b'{"event": "a"}\n{"event": "tor')
    with EventsLog(folder) as log:
        log.append({"event": "b"})
    first, torn, second = (folder / "events.jsonl").read_bytes().splitlines()
    assert first == b'{"event": "a"}'
    assert torn == b'{"event": "tor'
    assert json.loads(second)["event"] == "b"


def test_values_that_json_has_no_word_for_are_stored_readably(tmp_path: Any) -> None:
    with EventsLog(tmp_path / "s") as log:
        log.append(
            {
                "event": "e",
                "data": {"nan": float("nan"), "at": datetime(2025, 1, 1, tzinfo=UTC), "u": "\u2028"},
            }
        )
    (event,) = lines(tmp_path / "s")
    assert event["data"] == {"nan": "NaN", "at": "2025-01-01T00:00:00+00:00", "u": "\u2028"}


def test_an_event_moves_the_folder_in_lists(tmp_path: Any) -> None:
    folder = tmp_path / "s"
    with EventsLog(folder) as log:
        log.append({"event": "a"})
    os.utime(folder, (1, 1))
    with EventsLog(folder) as log:
        log.append({"event": "b"})
    assert folder.stat().st_mtime > 1e9


def test_two_logs_of_one_session_interleave_whole_lines(tmp_path: Any) -> None:
    code = (
        "import sys; from sessionary import EventsLog\n"
        "with EventsLog(sys.argv[1]) as log:\n"
        "    for n in range(200): log.append({'event': sys.argv[2], 'n': n, 'data': 'x' * (n * 37 % 5000)})"
    )
    folder = tmp_path / "s"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(folder), name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    events = lines(folder)
    for name in "abc":
        assert [event["n"] for event in events if event["event"] == name] == list(range(200))
