"""`stats` and the filters of `list` over sessions of several agents."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main

Say = Callable[..., tuple[int, str, str]]
CLAUDE = "3f0c81d2-0000-4000-8000-000000000001"
CODEX = "11111111-2222-4333-8444-555555555555"


def claude_code(home: Path, cwd: str) -> None:
    path = home / ".claude" / "projects" / "-home-u-app" / f"{CLAUDE}.jsonl"
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cache_read_input_tokens": 0}
    answer = {"id": "m1", "role": "assistant", "content": "Hi", "model": "claude-opus-4-1", "usage": usage}
    odd = {
        "id": "m2",
        "role": "assistant",
        "content": "Ho",
        "model": "made-up",
        "usage": {"input_tokens": 900_000},
    }
    frame = {"cwd": cwd, "sessionId": CLAUDE, "gitBranch": "fix"}
    records = [
        {
            "type": "user",
            "uuid": "1",
            "message": {"role": "user", "content": "Go"},
            "timestamp": "2026-03-01T18:14:59Z",
        },
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": answer,
            "timestamp": "2026-03-01T18:14:59Z",
        },
        {
            "type": "assistant",
            "uuid": "3",
            "parentUuid": "2",
            "message": odd,
            "timestamp": "2026-03-01T18:15:00Z",
        },
    ]
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({**frame, **record}) + "\n" for record in records))


def codex(home: Path, cwd: str) -> None:
    path = home / ".codex" / "sessions" / "2026" / "03" / "02" / f"rollout-2026-03-02T09-00-00-{CODEX}.jsonl"
    counts = {
        "input_tokens": 2_000_000,
        "cached_input_tokens": 1_000_000,
        "output_tokens": 10,
        "reasoning_output_tokens": 4,
    }
    say = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on"}]}
    records = [
        ("session_meta", {"id": CODEX, "cwd": cwd, "timestamp": "2026-03-02T09:00:00Z"}),
        ("turn_context", {"cwd": cwd, "model": "gpt-5-codex"}),
        ("response_item", say),
        ("event_msg", {"type": "user_message", "message": "Go on"}),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": counts}}),
    ]
    path.parent.mkdir(parents=True)
    lines = [{"timestamp": "2026-03-02T09:00:00Z", "type": kind, "payload": load} for kind, load in records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command over a session of Claude Code and one of Codex, both in one project."""
    home = tmp_path / "home"
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    claude_code(home, "/home/u/app")
    codex(home, "/home/u/app")

    def say(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        reported = capsys.readouterr()
        return code, reported.out, reported.err

    return say


def usage(say: Say, *words: str) -> dict[str, Any]:
    code, out, _ = say("stats", "--json", *words)
    assert code == 0
    document: dict[str, Any] = json.loads(out)["usage"]
    return document


def test_usage_by_model_day_project_and_agent(say: Say) -> None:
    found = usage(say, "--tz", "UTC")
    assert {one["model"]: (one["input"], one["cost"], one["unpriced"]) for one in found["models"]} == {
        "claude-opus-4-1": (1_000_000, 22.5, 0),
        "gpt-5-codex": (1_000_000, 1.3751, 0),
        "made-up": (900_000, None, 900_000),
    }
    assert [(one["day"], one["cost"]) for one in found["days"]] == [
        ("2026-03-01", 22.5),
        ("2026-03-02", 1.3751),
    ]
    assert [(one["project"], one["input"]) for one in found["projects"]] == [("/home/u/app", 2_900_000)]
    assert [one["agent"] for one in found["agents"]] == ["claude_code", "codex"]
    total = found["total"]
    assert (total["cost"], total["unpriced"], total["stated_cost"]) == (23.8751, 900_000, None)
    assert (total["output"], total["reasoning"], total["cache_read"]) == (100_010, 4, 1_000_000)
    assert (found["sessions"], found["unpriced_sessions"], found["silent_sessions"]) == (2, 1, 0)


def test_an_export_states_the_cost_of_the_statistics(say: Say) -> None:
    lines = say("export", CODEX)[1].splitlines()
    assert "- Cost at list prices: `$1.38`" in lines
    head = json.loads(say("export", CODEX, "--format", "json")[1])["session"]
    assert (head["cost"], head["unpriced"], head["usage"]["cost"]) == (1.3751, 0, None)
    lines = say("export", CLAUDE)[1].splitlines()
    assert "- Cost at list prices: `$22.50+`" in lines


def test_projects_have_the_name_that_usage_gives_them(say: Say) -> None:
    document = json.loads(say("stats", "--json")[1])
    assert {one["project"]: one["path"] for one in document["projects"]} == {
        "-home-u-app": "/home/u/app",
        "/home/u/app": "/home/u/app",
    }
    assert {one["path"] for one in document["projects"]} == {
        one["project"] for one in document["usage"]["projects"]
    }


def test_what_has_no_event_log_says_what_to_use_instead(say: Say) -> None:
    code, _, err = say("events", CODEX)
    assert code == 18
    assert "only sessions of Amplifier have an event log; `sessionary show` prints the messages" in err


def test_days_of_another_zone(say: Say) -> None:
    found = usage(say, "--tz", "Asia/Kathmandu")
    assert [(one["day"], one["input"]) for one in found["days"]] == [
        ("2026-03-01", 1_000_000),
        ("2026-03-02", 1_900_000),
    ]
    since = usage(say, "--tz", "Asia/Kathmandu", "--since", "2026-03-02")
    assert since["total"]["input"] == 1_900_000
    code, _, err = say("stats", "--tz", "Mars/Olympus")
    assert (code, "'Mars/Olympus' is not a known time zone" in err, "Europe/Berlin" in err) == (2, True, True)


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        (("--agent", "codex"), 1_000_000),
        (("--kind", "claude_code"), 1_900_000),
        (("--model", "OPUS"), 1_000_000),
        (("--project", "/home/u/app", "--model", "gpt"), 1_000_000),
        (("--project", "app"), 2_900_000),
        (("--until", "2026-03-01T18:15Z"), 1_000_000),
    ],
)
def test_filters(say: Say, words: tuple[str, ...], tokens: int) -> None:
    assert usage(say, *words)["total"]["input"] == tokens


def test_the_text_says_what_the_cost_leaves_out(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = say("stats", "--tz", "UTC", "--agent", "claude_code")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["2026-03-01"][1:5] == ["1.9M", "0", "100k", "$22.50+"]
    assert rows["made-up"][1:5] == ["900k", "0", "0", "?"]
    assert rows["claude-opus-4-1"][5] == "█" * 24
    assert "2,000,000 tokens, $22.50+\nat the list prices of 2" in out
    assert "No price is known for 900,000 tokens (45%) in 1 session: made-up" in err
    assert "1 session does not match these filters" in err


def test_own_prices_and_a_file_of_them_that_is_not_valid(say: Say, tmp_path: Path) -> None:
    path = tmp_path / "config" / "sessionary" / "prices.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"models": [{"names": ["made-*"], "prices": [{"input": 10, "output": 0}]}]}')
    found = usage(say, "--model", "made-up")
    assert (found["total"]["cost"], found["total"]["unpriced"]) == (9.0, 0)
    path.write_text('{"models": [{"names": ["made-*"], "price": 1}]}')
    code, _, err = say("stats")
    assert (code, str(path) in err, "$.models[0]" in err) == (12, True, True)
    assert say("list")[0] == 0, "what needs no prices does not read them"
    path.unlink()
    assert say("stats")[0] == 0


def test_rows_of_a_list(say: Say) -> None:
    rows = {row["kind"]: row for row in json.loads(say("list", "--json")[1])}
    keys = ("cwd", "branch", "models", "tokens", "cost", "unpriced", "stated_cost")
    assert [rows["claude_code"][key] for key in keys] == [
        "/home/u/app", "fix", ["claude-opus-4-1", "made-up"], 2_000_000, 22.5, 900_000, None,
    ]  # fmt: skip
    assert [rows["codex"][key] for key in keys] == [
        "/home/u/app", None, ["gpt-5-codex"], 2_000_010, 1.3751, 0, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (("--project", "app"), ["codex", "claude_code"]),
        (("--project", "/home/u/app"), ["codex", "claude_code"]),
        (("--agent", "codex"), ["codex"]),
        (("--model", "opus"), ["claude_code"]),
        (("--branch", "fix"), ["claude_code"]),
        (("--branch", "main"), []),
        (("--sort", "date"), ["codex", "claude_code"]),
        (("--sort", "tokens"), ["codex", "claude_code"]),
        (("--sort", "size"), ["claude_code", "codex"]),
    ],
)
def test_filters_and_orders_of_a_list(say: Say, words: tuple[str, ...], kinds: list[str]) -> None:
    code, out, _ = say("list", "--json", *words)
    assert (code, [row["kind"] for row in json.loads(out)]) == (0, kinds)


def test_the_project_of_agents_that_store_no_folder_for_it(say: Say) -> None:
    _, out, err = say("list", "--agent", "codex")
    assert "/home/u/app" in out
    assert "1 session does not match these filters" in err
    assert "/home/u/app" in say("list", "--sort", "tokens")[1]
    assert "2.0M" in say("list", "--sort", "tokens")[1]
    _, out, _ = say("tree")
    assert out.count("/home/u/app") == 0, "one project needs no heading"
    code, out, _ = say("search", "Go", "--project", "app", "--json")
    assert (code, {hit["id"] for hit in json.loads(out)["hits"]}) == (0, {CLAUDE, CODEX})
    code, out, _ = say("search", "Go", "--agent", "codex", "--json")
    assert (code, {hit["id"] for hit in json.loads(out)["hits"]}) == (0, {CODEX})
    code, _, err = say("list", "--project", "nothing")
    assert (code, "no project named nothing" in err, "/home/u/app" in err) == (10, True, True)
