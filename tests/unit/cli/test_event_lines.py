"""The one-line text of an event."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sessionary.cli.events_cmd import DETAIL, EventLines, detail, duration
from sessionary.layouts.amplifier.event_heads import EventHead

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def head(**fields: Any) -> EventHead:
    known = {"line": 1, "byte": 0, "length": 300, "ts": NOON, "lvl": "INFO", "event": "tool:pre"}
    return EventHead(**{**dict.fromkeys(EventHead._fields), **known, **fields})


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999.4, "999 ms"),
        (1000, "1.0 s"),
        (99_900, "99.9 s"),
        (150_000, "2.5 min"),
        (6e6, "1.7 h"),
    ],
)
def test_a_duration(milliseconds: float, words: str) -> None:
    assert duration(milliseconds) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"error": {"type": "ToolError", "msg": "no such file"}}, "ToolError: no such file"),
        ({"data.error": "boom"}, "boom"),
        ({"data.tool_name": "bash", "data.tool_input": {"command": "ls"}}, "bash  ls"),
        (
            {
                "data.model": "m",
                "data.usage": {"input_tokens": 1200, "output_tokens": 80, "cost_usd": "0.01"},
            },
            "1,200 in 80 out $0.01  m",
        ),
        ({"data.prompt": "Hi\nthere"}, "Hi there"),
        ({"data.message_count": 1}, "1 message"),
        ({"data.model": 5, "data.usage": "x", "data.prompt": None, "data.message_count": True}, ""),
        ({"error": {}}, ""),
    ],
)
def test_the_significant_detail(fields: dict[str, Any], words: str) -> None:
    assert detail(head(), fields) == words


def test_a_status_counts_if_it_is_not_good() -> None:
    assert detail(head(status="ok"), {}) == ""
    assert detail(head(status="cancelled"), {}) == "cancelled"


def test_no_detail_is_long() -> None:
    assert len(detail(head(), {"data.prompt": "word " * 100_000})) <= DETAIL


def test_a_line_for_each_day_and_each_event() -> None:
    draw = EventLines(None, now=NOON)
    first = list(draw.lines(head(duration_ms=12), {}))
    assert first[0].startswith("── Mar 4 ──")
    assert first[1].split() == [f"{NOON.astimezone():%H:%M:%S}", "tool:pre", "12", "ms", "300", "B"]
    (second,) = draw.lines(head(lvl="error", event=None), {})
    assert second.split()[1:4] == ["✗", "(no", "name)"]
    assert next(draw.lines(head(ts=None), {})).startswith("--:--:--")
