"""Finding sessions of other agents: by expressions, by the numbers of the last list, by names and tags of ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from tests.e2e.driving import Result, Run

LOGIN, CACHE = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000001"


def said(session_id: str, *texts: str, cwd: str = "/w/app", hour: int = 9) -> list[dict[str, Any]]:
    """User messages of Claude Code, and one failed and one good call of a tool behind them."""
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any]) -> None:
        at = len(records)
        records.append({
            "type": kind, "uuid": f"{session_id[:4]}-{at}", "parentUuid": records[-1]["uuid"] if records else None,
            "sessionId": session_id, "cwd": cwd, "timestamp": f"2026-03-01T{hour:02}:00:{at:02}Z",
            "message": message,
        })  # fmt: skip

    for text in texts:
        add("user", {"role": "user", "content": text})
    for at, (text, failed) in enumerate([("timeout of redis", True), ("redis is up", False)]):
        call = {"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": f"ping {at}"}}
        add("assistant", {"role": "assistant", "id": f"m{at}", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": text, "is_error": failed}
        add("user", {"role": "user", "content": [result]})
    return records


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SESSIONARY_HOME", "COLUMNS", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    store(tmp_path, LOGIN, said(LOGIN, "The login race on résumé upload", "在庫を確認"))
    store(tmp_path, CACHE, said(CACHE, "Cache is stale", hour=8))

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


def store(home: Path, session_id: str, records: list[dict[str, Any]]) -> Path:
    path = home / ".claude" / "projects" / "-w-app" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    ("words", "locators"),
    [
        (["race", "OR", "stale"], [f"{LOGIN}:0", f"{CACHE}:0"]),
        (["login race"], [f"{LOGIN}:0"]),
        (["race", "login", "NOT", "upload"], []),
        (['"login race" OR stale'], [f"{LOGIN}:0", f"{CACHE}:0"]),
        (["resume"], []),
        (["resume", "--fold"], [f"{LOGIN}:0"]),
        (["在"], [f"{LOGIN}:1"]),
        (["確認"], [f"{LOGIN}:1"]),
        (["--regex", r"ca\w+ is st"], [f"{CACHE}:0"]),
        (["--regex", "^cache", "--case"], []),
        (["redis", "--errors"], [f"{LOGIN}:3", f"{CACHE}:2"]),
        (["--errors"], [f"{LOGIN}:3", f"{CACHE}:2"]),
        (["redis", "--role", "person"], []),
        (["redis", "--errors", "--project", "/w/app", "--since", "2026-03-01T08:30Z", "--agent", "claude_code"],
         [f"{LOGIN}:3"]),
    ],
)  # fmt: skip
def test_what_a_search_finds(run: Run, words: list[str], locators: list[str]) -> None:
    found = run("search", *words, "--json")
    hits = [hit["locator"] for hit in found.json["hits"] if hit["part"] != "title"]
    assert (found.code, hits) == (0 if locators else 1, locators)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["NOT", "x"], 2, "give words to search for"),
        (["x", "OR"], 12, "OR has no word"),
        (["--regex", "("], 12, "not a regular expression"),
        (["--regex", "x", "--fold"], 2, "exclude each other"),
    ],
)
def test_what_cannot_be_searched_for(run: Run, words: list[str], code: int, why: str) -> None:
    found = run("search", *words)
    assert (found.code, found.out) == (code, "")
    assert why in found.err


def test_a_hit_opens_at_its_message(run: Run) -> None:
    (hit,) = (
        one for one in run("search", "--regex", "ca[c]he", "--json").json["hits"] if one["part"] == "text"
    )
    assert "▶ message 0" in run("show", hit["locator"]).out
