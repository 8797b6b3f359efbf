"""The commands that look into sessions: search, events, tree, stats, and a hit opened by its locator."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.cli.text import cells
from tests import lanes
from tests.e2e.driving import (
    COMMAND,
    ROOT,
    SPAWNED,
    Make,
    Result,
    Run,
    lines,
    on_terminal,
    put,
    undated,
)

OTHER = "77aa99bb-0000-4000-8000-000000000002"
FORK = "5e5e5e5e-0000-4000-8000-000000000003"

HELLO = {"role": "user", "content": "Fix the login race", "timestamp": "2026-03-01T09:00:00+00:00"}
CALL = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "A lock?"},
        {"type": "text", "text": "Looking at the race."},
    ],
    "tool_calls": [{"id": "t1", "tool": "bash", "arguments": {"command": "grep -rn race src"}}],
}
RESULT = {
    "role": "tool",
    "tool_call_id": "t1",
    "content": '{"stdout": "src/a.py: # race\\n", "returncode": 0}',
}
DONE = {"role": "assistant", "content": "Done.", "timestamp": "2026-03-01T10:00:00+00:00"}

HOSTILE = "R\x1b[2J\x1b]0;t\x07\x9b31m\u202eabc\u200b needle \ud83d 日本"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def make(home: Path) -> Make:
    def make(
        session_id: str = ROOT,
        *messages: Mapping[str, Any],
        project: str = "-home-u-app",
        age: timedelta = timedelta(0),
        events: Sequence[Mapping[str, Any]] = (),
        **fields: Any,
    ) -> Path:
        mine = {
            "transcript.jsonl": lines(*(messages or (HELLO, CALL, RESULT, DONE))),
            "metadata.json": json.dumps({"session_id": session_id, **fields}).encode(),
        }
        if events:
            mine["events.jsonl"] = lines(*events)
        return put(home, session_id, project, mine, age)

    return make


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, over the test's home."""

    def run(command: str, *arguments: str) -> Result:
        code = main([command, "--home", str(home), *arguments])
        return Result(code, *capsys.readouterr())

    return run


# search


def test_hits_stand_under_their_session_with_locator_and_mark(make: Make, run: Run) -> None:
    make(name="Login")
    result = run("search", "race")
    assert result.out.splitlines() == [
        "Login" + " " * 64 + "-home-u-app",
        "  3f0c81d2:0  You · Mar 1 09:00",
        "    Fix the login »race«",
        "  3f0c81d2:1  Agent · after Mar 1 09:00",
        "    Looking at the »race«.",
        "  3f0c81d2:2  Tool · after Mar 1 09:00",
        "    src/a.py: # »race«",
    ]
    assert result.err.splitlines() == [f"3 hits in 1 of 1 session ({size_of(run)} read)"]
    assert result.code == 0


def test_a_session_without_a_name_is_called_by_what_a_user_said_first(make: Make, run: Run) -> None:
    reminder = {"role": "user", "content": "<system-reminder>be brief</system-reminder>"}
    make(
        ROOT,
        reminder,
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": " Find\nthe race "},
    )
    assert run("search", "race").out.startswith("Find the race  ")
    make(OTHER, {"role": "assistant", "content": "no quarry"})
    assert run("search", "quarry").out.startswith(f"{OTHER}  ")


def size_of(run: Run) -> str:
    total = run("search", "race", "--json").json["bytes"]
    return f"{total} B"


def test_newest_sessions_come_first_and_the_limit_is_said(make: Make, run: Run) -> None:
    make(ROOT, *undated(HELLO, CALL, RESULT, DONE), age=timedelta(hours=2))
    make(OTHER, *undated(HELLO), project="-home-u-web")
    assert [hit["locator"] for hit in run("search", "race", "--jsonl").rows] == [
        f"{OTHER}:0",
        f"{ROOT}:0",
        f"{ROOT}:1",
        f"{ROOT}:2",
    ]
    cut = run("search", "race", "--limit", "2")
    assert cut.out.count("»race«") == 2
    assert cut.err == "Stopped after 2 hits; --limit 0 shows all.\n"
    assert run("search", "race", "--limit", "2", "--json").json["complete"] is False
    whole = run("search", "race", "--limit", "4", "--json").json
    assert (whole["complete"], len(whole["hits"]), whole["sessions"]) == (True, 4, 2)
    assert len(run("search", "race", "--limit", "0", "--json").json["hits"]) == 4


def test_a_hit_as_json(make: Make, run: Run) -> None:
    folder = make()
    (hit,) = run("search", "grep", "--json").json["hits"]
    assert hit == {
        "locator": f"{ROOT}:1",
        "id": ROOT,
        "project": "-home-u-app",
        "index": 1,
        "role": "assistant",
        "person": False,
        "timestamp": None,
        "about": "2026-03-01T09:00:00Z",
        "part": "call",
        "tool": "bash",
        "text": "grep -rn race src",
        "marks": [[0, 4]],
        "cut": [False, False],
        "path": str(folder),
    }


def test_conditions_together(make: Make, run: Run) -> None:
    make()
    make(OTHER, HELLO, project="-home-u-web")
    make(SPAWNED, HELLO, parent_id=ROOT)

    def found(*arguments: str) -> list[str]:
        return [hit["locator"] for hit in run("search", "RACE", *arguments, "--jsonl").rows]

    assert found("--role", "tool") == [f"{ROOT}:2"]
    assert sorted(found("--role", "person", "--project", "app")) == [f"{SPAWNED}:0", f"{ROOT}:0"]
    assert found("--role", "person", "--project", "app", "--top-level") == [f"{ROOT}:0"]
    assert found("--tool", "bash") == [f"{ROOT}:1"]
    assert found("--in", "result") == [f"{ROOT}:2"]
    assert found("--session", "77aa") == [f"{OTHER}:0"]
    assert found("--case") == []
    assert found("--since", "2026-03-02") == []
    assert sorted(found("--until", "2026-03-01", "--role", "person")) == sorted(found("--role", "person"))
    assert [hit["locator"] for hit in run("search", "--tool", "bash", "--jsonl").rows] == [f"{ROOT}:1"]


def test_a_project_by_path_and_by_name_and_an_unknown_one(make: Make, run: Run) -> None:
    make()
    make(OTHER, HELLO, project="-home-u-web-app")
    for name, count in (("/home/u/app", 3), ("-home-u-app", 3), ("web-app", 1), ("APP", 4)):
        assert len(run("search", "race", "--project", name, "--jsonl").rows) == count
    unknown = run("search", "race", "--project", "nope")
    assert unknown.code == 10
    assert unknown.err.splitlines()[:3] == [
        "sessionary: no project named nope",
        "  -home-u-app",
        "  -home-u-web-app",
    ]


def test_a_search_without_a_hit_says_so_and_ends_with_1(make: Make, run: Run) -> None:
    make()
    result = run("search", "role")
    assert (result.code, result.out) == (1, "")
    assert run("search", "role", "--json").code == 1
    assert run("search", "role", "--jsonl").code == 1
    assert result.err.startswith("No hits in 1 session (")


def test_damage_is_reported_and_stops_nothing(make: Make, run: Run, home: Path) -> None:
    folder = make()
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "race\n' + lines(HELLO))
    result = run("search", "race")
    assert "3f0c81d2:4" in result.out
    assert result.err.splitlines()[1:] == [
        f"1 damaged place not searched; run `sessionary check --home {home} {ROOT}` for details"
    ]
    (problem,) = run("search", "race", "--json").json["problems"]
    assert (problem["session"], problem["code"], problem["line"]) == (ROOT, "bad_json", 5)


def test_an_unreadable_transcript_is_part_of_the_work_not_done(make: Make, run: Run) -> None:
    folder = make()
    (folder / "transcript.jsonl").unlink()
    (folder / "transcript.jsonl").mkdir()
    assert run("search", "race").code == 3


def test_what_a_terminal_would_obey_is_shown_not_sent(make: Make, run: Run) -> None:
    make(ROOT, {"role": "user", "content": HOSTILE}, name=HOSTILE)
    for arguments in ([], ["--json"], ["--jsonl"]):
        out = run("search", "needle", *arguments).out
        assert "needle" in out
        assert not set("\x1b\x07\x9b\u202e\u200b") & set(out)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    folder = make(ROOT, {"role": "user", "content": "日本語" * 60 + " needle " + "語" * 99}, name="漢" * 99)
    make(OTHER, {"role": "user", "content": "n" * 500 + "needle" * 60}, project="-p" * 60)
    make(FORK, HELLO, parent_id=ROOT, name="x" * 200)
    monkeypatch.setenv("COLUMNS", str(width))
    for command in (["search", "needle"], ["tree"], ["list"], ["stats"], ["show", f"{ROOT}:0"]):
        out = run(*command).out
        assert out
        wide = [line for line in out.splitlines() if cells(line) > width]
        assert wide == ([str(folder)] if command[0] == "show" else [])  # a path is never cut: it is copied


@pytest.mark.parametrize(
    "arguments", [[], ["race", "--json", "--jsonl"], ["race", "--since", "soon"], ["race", "--in", "keys"]]
)
def test_command_lines_that_make_no_sense(run: Run, arguments: list[str]) -> None:
    assert run("search", *arguments).code == 2


def test_no_word_at_all(make: Make, run: Run) -> None:
    make()
    assert run("search", " ").code == 12


# show ID:INDEX


def test_a_locator_opens_its_message_whole(make: Make, run: Run) -> None:
    long = {
        "role": "tool",
        "tool_call_id": "t1",
        "content": "\n".join(f"line {number}" for number in range(99)),
    }
    make(ROOT, HELLO, CALL, long, DONE)
    out = run("show", "3f0c81d2:2", "--around", "0").out.splitlines()
    assert out[5:9] == ["▶ message 2, line 3", "▸ bash  grep -rn race src", "  │ line 0", "  │ line 1"]
    assert out[-1] == "  │ line 98"
    around = run("show", "3f0c81d2:1", "--around", "1").out
    assert "Fix the login race" in around
    assert "… 87 more lines" in around
    assert "Done." not in around


def test_a_huge_result_is_folded_without_breaking_it_into_lines(make: Make, run: Run) -> None:
    brought = "first\n" + "line of many words\n" * 100_000 + "last"
    make(ROOT, HELLO, CALL, {**RESULT, "content": brought}, DONE)
    out = run("show", ROOT).out.splitlines()
    at = out.index("  │ first")
    assert out[at + 8] == "  │ … of 1,900,010 characters"
    assert out[at + 9 : at + 13] == ["  │ line of many words"] * 3 + ["  │ last"]
    assert out[-1] == "Done."


def test_a_huge_message_beside_the_one_that_is_asked_for_is_cut_and_that_is_reported(
    make: Make, run: Run
) -> None:
    huge = {"role": "user", "content": "word " * 400_000 + "END"}
    make(ROOT, huge, {"role": "assistant", "content": "short"}, huge)
    beside = run("show", f"{ROOT}:1").out
    assert beside.count("1,980,003 more characters") == 2
    assert "END" not in beside
    assert len(beside) < 60_000
    assert "END" in run("show", f"{ROOT}:0", "--around", "0").out


def test_a_locator_as_json(make: Make, run: Run) -> None:
    make()
    assert [message["index"] for message in run("show", f"{ROOT}:3", "--jsonl").rows] == [0, 1, 2, 3]
    document = run("show", f"{ROOT}:3", "--around", "1", "--json").json
    assert [message["index"] for message in document["messages"]] == [2, 3]


def test_every_hit_can_be_opened(make: Make, run: Run) -> None:
    folder = make()
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b"{torn\n" + lines(HELLO, DONE))
    hits = run("search", "race", "--jsonl").rows
    assert len(hits) == 4
    for hit in hits:
        (message,) = run("show", hit["locator"], "--around", "0", "--jsonl").rows
        assert "race" in json.dumps(message)


def test_an_id_that_looks_like_a_locator(make: Make, run: Run) -> None:
    make("build:7", HELLO)
    assert run("show", "build:7", "--json").json["id"] == "build:7"
    assert run("show", "build:7:0", "--json").json["messages"][0]["index"] == 0


def test_locators_that_lead_nowhere(make: Make, run: Run) -> None:
    make()
    late = run("show", "3f0c81d2:4")
    assert (late.code, late.out) == (12, "")
    assert late.err.splitlines()[0] == "sessionary: no message 4: the session has 4 messages"
    assert run("show", "nope:1").code == 10
    assert run("show", "3f0c81d2", "--around", "2").code == 2
    assert run("show", "3f0c81d2:1", "--turns", "1").code == 2


# events


def event(name: str, minute: int, level: str = "INFO", **fields: Any) -> dict[str, Any]:
    data = fields.pop("data", {})
    start = {"ts": f"2026-03-01T09:{minute:02}:00+00:00", "lvl": level, "event": name, "session_id": ROOT}
    return {**start, **fields, "data": data}


def response(minute: int, tokens: int, cost: str, model: str = "model-a", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 10, "cost_usd": cost}
    return event("llm:response", minute, duration_ms=1500, data={"model": model, "usage": usage}, **fields)


EVENTS = (
    event("session:start", 0),
    event("tool:pre", 1, data={"tool_name": "bash", "tool_input": {"command": "ls"}}),
    event("tool:error", 2, "ERROR", error={"type": "ToolError", "msg": "no such file"}, span_id="s1"),
    response(3, 1200, "0.0123"),
    response(4, 300, "0.0007", model="model-b"),
)


def test_events_are_one_line_each(make: Make, run: Run) -> None:
    make(events=EVENTS)
    day, *rows = run("events", "3f0c81d2").out.splitlines()
    assert day == "── Mar 1 ".ljust(80, "─")
    assert [row.split()[:2] for row in rows] == [
        ["09:00:00", "session:start"],
        ["09:01:00", "tool:pre"],
        ["09:02:00", "✗"],
        ["09:03:00", "llm:response"],
        ["09:04:00", "llm:response"],
    ]
    assert rows[1].endswith("B  bash  ls")
    assert rows[2].endswith("B  ToolError: no such file")
    assert " 1.5 s " in rows[3]
    assert rows[3].endswith("B  1,200 in 10 out $0.0123  model-a")


def test_events_that_are_wanted(make: Make, run: Run) -> None:
    make(events=EVENTS)

    def found(*arguments: str) -> list[str]:
        return [row["event"] for row in run("events", ROOT, *arguments, "--jsonl").rows]

    assert found("--event", "tool:*") == ["tool:pre", "tool:error"]
    assert found("--event", "tool:pre", "--event", "session:*") == ["session:start", "tool:pre"]
    assert found("--level", "error") == ["tool:error"]
    assert found("--span", "s1") == ["tool:error"]
    assert found("--since", "2026-03-01T09:03Z") == ["llm:response", "llm:response"]
    assert found("--until", "2026-03-01T09:01Z") == ["session:start"]
    assert found("--tail", "2") == ["llm:response", "llm:response"]
    assert found("--tail", "1", "--event", "tool:*") == ["tool:error"]
    assert found("--event", "nothing") == []
    assert run("events", ROOT, "--event", "nothing").err == "No events match these filters.\n"


def test_an_event_as_json(make: Make, run: Run) -> None:
    make(events=EVENTS)
    (row,) = run("events", ROOT, "--level", "error", "--json").json
    assert row["byte"] == len(lines(*EVENTS[:2]))
    assert row["length"] == len(lines(EVENTS[2])) - 1
    assert {key: row[key] for key in row if key not in ("byte", "length")} == {
        "line": 3,
        "ts": "2026-03-01T09:02:00Z",
        "level": "ERROR",
        "event": "tool:error",
        "session": ROOT,
        "duration_ms": None,
        "status": None,
        "span": "s1",
        "parent_span": None,
        "detail": "ToolError: no such file",
    }


def test_fields_by_path(make: Make, run: Run) -> None:
    make(events=EVENTS)
    result = run(
        "events", ROOT, "--event", "llm:*", "--fields", "data.usage.input_tokens, data.nope,data.usage"
    )
    assert [line.split("\t")[:2] for line in result.out.splitlines()] == [["1200", "-"], ["300", "-"]]
    rows = run("events", ROOT, "--event", "llm:*", "--fields", "data.usage.input_tokens", "--jsonl").rows
    assert [row["fields"] for row in rows] == [
        {"data.usage.input_tokens": 1200},
        {"data.usage.input_tokens": 300},
    ]
    assert run("events", ROOT, "--fields", "a..b").code == 12


def test_an_event_whose_field_is_empty_has_its_line_all_the_same(make: Make, run: Run) -> None:
    make(events=[event("a", number, data={"note": note}) for number, note in enumerate(["one", "", "three"])])
    assert run("events", ROOT, "--fields", "data.note").out == "one\n\nthree\n"


def test_no_huge_line_unless_asked(make: Make, run: Run) -> None:
    huge = event("llm:request:raw", 5, data={"raw": "x" * 3_000_000, "prompt": "y" * 5000})
    make(events=(*EVENTS, huge))
    assert len(run("events", ROOT).out) < 2000
    assert len(run("events", ROOT, "--json").out) < 4000
    (cut,) = run("events", ROOT, "--event", "*:raw", "--fields", "data.raw").out.splitlines()
    assert cut == "x" * 200 + "… (2,999,800 more characters)"
    raw = run("events", ROOT, "--event", "*:raw", "--raw").out
    assert raw.encode() == lines(huge)


def test_raw_lines_are_the_bytes_of_the_file(make: Make) -> None:
    folder = make(events=EVENTS)
    odd = b'{"ts": 1, "event": "odd" , "data": "\x7f\xc2\x9b"}\n'
    (folder / "events.jsonl").write_bytes(lines(*EVENTS) + odd)
    done = subprocess.run([*COMMAND, "events", str(folder), "--raw"], capture_output=True, check=True)
    assert done.stdout == lines(*EVENTS) + odd


def test_a_summary(make: Make, run: Run) -> None:
    make(events=EVENTS)
    out = run("events", ROOT, "--summary").out.splitlines()
    size = len(lines(*EVENTS))
    assert out[0].startswith(f"5 events in {size / 1000:.1f} kB" if size > 999 else f"5 events in {size} B")
    assert out[1] == "from Mar 1 09:00 to Mar 1 09:04"
    assert out[3] == "4 INFO, 1 ERROR"
    assert out[5:] == ["  2  llm:response", "  1  session:start", "  1  tool:error", "  1  tool:pre"]
    document = run("events", ROOT, "--summary", "--level", "error", "--json").json
    assert (document["total"], document["events"], document["levels"]) == (1, {"tool:error": 1}, {"ERROR": 1})


def test_tokens_and_cost(make: Make, run: Run) -> None:
    make(events=(*EVENTS, event("llm:response", 6, data={"model": "model-b"})))
    result = run("events", ROOT, "--cost")
    assert [line.split() for line in result.out.splitlines()] == [
        ["MODEL", "RESPONSES", "TOKENS", "IN", "TOKENS", "OUT", "COST"],
        ["model-a", "1", "1,200", "10", "$0.0123"],
        ["model-b", "2", "300", "10", "$0.0007"],
        ["all", "3", "1,500", "20", "$0.0130"],
    ]
    assert result.err.splitlines() == [
        "1 response without a token count",
        "1 response without a cost; costs are not estimated",
    ]
    total = run("events", ROOT, "--cost", "--json").json["total"]
    assert (total["responses"], total["cost_usd"], total["without_cost"]) == (3, "0.0130", 1)


def test_damaged_events_are_reported(make: Make, run: Run) -> None:
    folder = make(events=EVENTS)
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'{"torn\n' + lines(EVENTS[0]))
    result = run("events", ROOT, "--jsonl")
    assert len(result.rows) == 6
    assert result.err.startswith(f"1 damaged place skipped, the first at byte {len(lines(*EVENTS)):,}:")


def test_a_session_without_events(make: Make, run: Run) -> None:
    make()
    for arguments in ([], ["--summary"], ["--cost"], ["--raw"]):
        assert run("events", ROOT, *arguments).code == 10


@pytest.mark.parametrize(
    "arguments",
    [
        ["--summary", "--cost"],
        ["--cost", "--raw"],
        ["--summary", "--fields", "ts"],
        ["--summary", "--tail", "1"],
        ["--raw", "--json"],
        ["--json", "--jsonl"],
        ["--tail", "0"],
    ],
)
def test_event_options_that_exclude_each_other(make: Make, run: Run, arguments: list[str]) -> None:
    make(events=EVENTS)
    assert run("events", ROOT, *arguments).code == 2


def test_an_event_is_harmless(make: Make, run: Run) -> None:
    make(events=[event("x\x1b[2J", 0, error=HOSTILE, data={"a": HOSTILE})])
    for arguments in ([], ["--fields", "data.a"], ["--summary"], ["--json"], ["--jsonl"]):
        out = run("events", ROOT, *arguments).out
        assert out
        assert not set("\x1b\x07\x9b\u202e\u200b") & set(out)


# tree


def test_the_tree_shows_who_comes_from_whom(make: Make, run: Run) -> None:
    [hello] = undated(HELLO)
    make(ROOT, *undated(HELLO, CALL, RESULT, DONE), age=timedelta(hours=3), name="Login")
    make(SPAWNED, hello, parent_id=ROOT, age=timedelta(hours=2))
    make(FORK, hello, parent_id=ROOT, name="Try a lock", age=timedelta(hours=1))
    make(OTHER, hello, parent_id="ffff0000-gone")
    header, *rows = run("tree").out.splitlines()
    assert header.split() == ["ID", "TITLE", "MSGS", "WHEN", "HEALTH"]
    assert [" ".join(row.split()) for row in rows] == [
        "77aa99bb fork: (parent ffff0000… is gone) Fix the login race 1 0 s ✓ ok".replace(
            "0 s", rows[0].split()[-4] + " s"
        ),
        "3f0c81d2 Login 4 3 h ✓ ok",
        "├ 9c1d2e3f explorer: Fix the login race 1 2 h ✓ ok",
        "└ 5e5e5e5e fork: Try a lock 1 60 min ✓ ok".replace("60 min", "1 h"),
    ]


def test_the_tree_of_one_session_marks_it(make: Make, run: Run) -> None:
    make(ROOT)
    make(FORK, HELLO, parent_id=ROOT)
    make(OTHER, HELLO)
    out = run("tree", "5e5e").out
    assert "└ ▶ 5e5e5e5e" in out
    assert "3f0c81d2" in out
    assert "77aa99bb" not in out


def test_the_tree_in_json(make: Make, run: Run) -> None:
    make(ROOT)
    make(SPAWNED, HELLO, parent_id=ROOT)
    make(OTHER, HELLO, parent_id=OTHER)
    rows = {row["id"]: row for row in run("tree", "--jsonl").rows}
    assert rows == {row["id"]: row for row in run("tree", "--json").json}
    reported = {
        name: [row[key] for key in ("relation", "depth", "orphan", "loop")] for name, row in rows.items()
    }
    assert reported == {
        ROOT: ["root", 0, False, False],
        SPAWNED: ["sub", 1, False, False],
        OTHER: ["fork", 0, False, True],
    }


def test_the_tree_on_a_terminal_that_knows_only_ascii(make: Make, home: Path) -> None:
    make(ROOT)
    make(SPAWNED, HELLO, parent_id=ROOT)
    make(FORK, HELLO, parent_id=ROOT)
    command = [*COMMAND, "tree", "--home", str(home)]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True
    )
    assert sorted(line[:2] for line in done.stdout.decode("ascii").splitlines()[2:]) == ["` ", "| "]


def test_projects_are_distinguished_if_there_are_several(make: Make, run: Run) -> None:
    make(ROOT)
    make(OTHER, HELLO, project="-home-u-web")
    assert {"-home-u-app", "-home-u-web"} < set(run("tree").out.splitlines())
    assert run("tree", "--project", "web").out.count("\n") == 2


def test_no_tree(home: Path, run: Run) -> None:
    (home / "projects").mkdir(parents=True)
    result = run("tree")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("No sessions in ")


# stats


def test_stats_count(make: Make, run: Run) -> None:
    make(ROOT)
    make(SPAWNED, HELLO, parent_id=ROOT)
    make(FORK, *undated(HELLO), parent_id=ROOT, project="-home-u-web")
    out = run("stats").out.splitlines()
    assert out[0] == "3 sessions in 2 projects"
    assert out[1] == "1 begun by users, 1 forked, 1 of sub-agents"
    assert out[2].startswith("6 messages, 3 turns, ")
    assert out[3] == "3 ✓ ok"
    assert [line.split()[:4] for line in out[5:]] == [
        ["PROJECT", "SESSIONS", "MESSAGES", "TURNS"],
        ["-home-u-web", "1", "1", "1"],
        ["-home-u-app", "2", "5", "2"],
    ]
    document = run("stats", "--json").json
    assert (document["sessions"], document["messages"], document["relations"]) == (
        3,
        6,
        {"root": 1, "fork": 1, "sub": 1},
    )
    assert "costs" not in document


def test_stats_with_events_count_what_a_fork_copied_once(make: Make, run: Run) -> None:
    make(ROOT, events=EVENTS)
    copied = [{**line, "session_id": FORK, "parent_session_id": ROOT} for line in EVENTS]
    make(FORK, HELLO, parent_id=ROOT, project="-home-u-web", events=[*copied, response(9, 7, "1.5")])
    result = run("stats", "--events")
    assert "2 responses copied by forks, counted with their parents" in result.err
    costs = run("stats", "--events", "--json").json["costs"]
    assert (costs["total"]["responses"], costs["total"]["cost_usd"]) == (3, "1.5130")
    assert {row["model"]: row["responses"] for row in costs["models"]} == {"model-a": 2, "model-b": 1}
    assert {row["project"]: row["cost_usd"] for row in costs["projects"]} == {
        "-home-u-app": "0.0130",
        "-home-u-web": "1.5",
    }
    assert [row["day"] for row in costs["days"]] == ["2026-03-01"]
    assert (costs["logs"], costs["copied"], costs["problems"]) == (2, 2, 0)


def test_a_copy_counts_if_its_parent_is_gone(make: Make, run: Run) -> None:
    make(FORK, HELLO, events=[response(1, 5, "2", parent_session_id=ROOT)])
    assert run("stats", "--events", "--json").json["costs"]["total"]["cost_usd"] == "2"


def test_stats_of_a_time(make: Make, run: Run) -> None:
    make(ROOT, age=timedelta(days=9), events=EVENTS)
    make(OTHER, *undated(HELLO))
    assert run("stats", "--since", "3d", "--json").json["sessions"] == 1
    document = run(
        "stats", "--events", "--since", "2026-03-01T09:04Z", "--until", "2026-03-02", "--json"
    ).json
    assert document["costs"]["total"]["responses"] == 1


def test_damaged_logs_are_reported(make: Make, run: Run) -> None:
    folder = make(ROOT, events=EVENTS)
    (folder / "events.jsonl").write_bytes(b'{"event": "llm:response", "torn\n' + lines(*EVENTS))
    result = run("stats", "--events")
    assert "1 damaged place in event logs skipped" in result.err


# terminals


def test_a_result_on_a_terminal_goes_through_the_pager_and_the_rest_follows(make: Make, home: Path) -> None:
    make()
    command = (*COMMAND, "search", "race", "--home", str(home))
    screen = on_terminal(*command, PAGER="sed s/^/P/", NO_COLOR="1")
    rows = screen.out.splitlines()
    assert len(rows) == 8
    assert all(row.startswith("P") for row in rows[:-1])
    assert rows[-1].startswith("3 hits in 1 of 1 session")
    assert screen.code == 0


def test_leaving_the_pager_ends_the_command(make: Make, home: Path) -> None:
    make(ROOT, *[HELLO] * 20_000)
    command = (*COMMAND, "search", "race", "--limit", "0", "--home", str(home))
    screen = on_terminal(*command, PAGER="head -2", NO_COLOR="1")
    assert len(screen.out.splitlines()) == 2
    assert screen.code == 0


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager-anywhere"])
def test_no_pager_is_wanted_or_there(make: Make, home: Path, pager: str) -> None:
    make()
    screen = on_terminal(*COMMAND, "tree", "--home", str(home), PAGER=pager)
    assert "Fix the login race" in screen.out
    assert screen.code == 0


def test_raw_events_on_a_terminal_are_harmless(make: Make) -> None:
    folder = make(events=EVENTS)
    (folder / "events.jsonl").write_bytes(b'{"ts": 1, "event": "x", "data": "\x7f\xc2\x9b"}\n')
    screen = on_terminal(*COMMAND, "events", str(folder), "--raw", PAGER="")
    assert screen.out == '{"ts": 1, "event": "x", "data": "\\x7f\\x9b"}\n'


def test_a_bar_is_drawn_after_a_second_and_taken_away() -> None:
    code = """
import sys
from sessionary.cli.progress import Progress
times = iter([0.0, 0.5, 2.0, 2.5])
with Progress("reading", 8, clock=lambda: next(times, 9.0)) as progress:
    progress.advance(2)
    print("quiet", file=sys.stderr, flush=True)
    progress.advance(2)
"""
    shown = on_terminal(sys.executable, "-c", code).out
    before, _, after = shown.partition("quiet")
    assert "reading" not in before
    assert "reading" in after
    assert "50 %" in after
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert quiet.stderr == b"quiet\n"


def test_ctrl_c_while_sessions_are_read_lists_what_is_known(make: Make, home: Path) -> None:
    for name in ("one", "two", "six"):
        make(name)
    code = """
import sys
from sessionary.catalog import Catalog
from sessionary.cli import main, progress
progress.PATIENCE = -1
read, count = Catalog._read, 0
def stopped(self, one):
    global count
    count += 1
    if count == 2:
        raise KeyboardInterrupt
    return read(self, one)
if sys.argv[1] == "stop":
    Catalog._read = stopped
sys.exit(main(["list", *sys.argv[2:]]))
"""
    command = [sys.executable, "-c", code]
    screen = on_terminal(*command, "stop", "--home", str(home), PAGER="", NO_COLOR="1")
    assert "Ctrl-C lists them as they are" in screen.out
    rows = [line for line in screen.out.splitlines() if re.match(r"\d  \w{3}  ", line)]
    assert len(rows) == 3
    assert sum("✓ ok" in row for row in rows) == 1
    assert sum(row.count("…") >= 3 for row in rows) == 2
    assert "2 sessions are not read yet; the next list continues from there" in screen.out
    assert screen.code == 130
    again = on_terminal(*command, "go", "--home", str(home), PAGER="", NO_COLOR="1")
    assert (again.code, again.out.count("✓ ok")) == (0, 3)
    stopped = on_terminal(*command, "stop", "--home", str(home), "--json", PAGER="", XDG_CACHE_HOME=str(home))
    assert stopped.code == 130
    assert "interrupted" in stopped.out
    assert "[" not in re.sub("\x1b\\[", "", stopped.out)


# help, and real sessions


@pytest.mark.parametrize("command", ["search", "events", "tree", "stats"])
def test_help_has_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "-h"]) == 0
    out = capsys.readouterr().out
    assert f"Examples:\n    sessionary {command}" in out


SAMPLES = lanes.shared_folder() / "samples" / "amplifier"


@pytest.mark.lane("samples")
def test_search_in_the_samples_finds_what_their_files_hold(capsys: pytest.CaptureFixture[str]) -> None:
    def found(*arguments: str) -> list[dict[str, Any]]:
        code = main(["search", *arguments, "--home", str(SAMPLES), "--limit", "0", "--json"])
        hits: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["hits"]
        assert code == (0 if hits else 1)
        return hits

    assert {hit["id"][:8] for hit in found("outofstock")} == {"d0ef5818"}
    assert {hit["id"][:8] for hit in found("気象庁")} == {"cbd4bb56"}
    assert {hit["id"][:8] for hit in found("centimes", "--role", "person")} == {"24422850"}
    assert found("returncode", "--in", "result") == []
