"""Finding sessions of other agents: by expressions, by the numbers of the last list, by names and tags of ours."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.workspace import Workspace
from tests.e2e.driving import COMMAND, Result, Run
from tests.support import agent_stores

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
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
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


def listed(run: Run, *words: str) -> list[str]:
    return [row["id"] for row in run("list", "--json", *words).json]


def test_a_number_is_that_of_a_row_of_the_last_list(run: Run) -> None:
    assert "no list was printed yet" in run("show", "9").err
    run("list")
    assert run("show", "2", "--json").json["id"] == CACHE
    assert run("show", "1:0", "--json").json["id"] == LOGIN
    assert run("open", "2").out.rstrip().endswith(CACHE)
    run("list", "--json", "--sort", "title")
    assert run("show", "2", "--json").json["id"] == CACHE, "JSON has no numbers"
    run("list", "--sort", "title")
    assert run("show", "1", "--json").json["id"] == CACHE


def test_a_number_that_the_list_does_not_have(run: Run) -> None:
    run("list")
    failed = run("show", "3")
    assert (failed.code, failed.out) == (10, "")
    assert "the last list has 2 sessions" in failed.err
    assert run("show", "22", "--json").json["id"] == CACHE, "it is the beginning of an id"


def test_a_whole_id_wins_over_a_number(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".amplifier" / "projects" / "-w" / "sessions" / "2"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text('{"role":"user","content":"x"}\n')
    run("list")
    assert run("show", "2", "--json").json["id"] == "2"


def test_an_equal_list_writes_nothing(run: Run, tmp_path: Path) -> None:
    run("list")
    (kept,) = tmp_path.rglob("last-lists.json")
    before = kept.stat().st_mtime_ns, kept.stat().st_ino
    run("list")
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == before


def test_numbers_that_are_damaged_are_none(run: Run, tmp_path: Path) -> None:
    run("list")
    (kept,) = tmp_path.rglob("last-lists.json")
    kept.write_bytes(b"[[1,")
    assert "no list was printed" in run("show", "9").err


def test_a_session_of_another_agent_is_renamed_tagged_and_starred(run: Run, tmp_path: Path) -> None:
    stored = {path: path.read_bytes() for path in (tmp_path / ".claude").rglob("*.jsonl")}
    done = run("rename", CACHE, "The  stale cache", "--json").json
    assert done == {
        "id": CACHE, "path": done["path"], "name": "The  stale cache", "before": None,
        "undo": f"sessionary rename {CACHE} --clear",
    }  # fmt: skip
    assert run("tag", "the stale cache", "bug", "#redis", "--json").json["tags"] == ["bug", "redis"]
    assert run("star", CACHE[:8], "--json").json == {
        "id": CACHE, "path": done["path"], "starred": True, "before": False,
        "undo": f"sessionary star {CACHE} --remove",
    }  # fmt: skip
    (row,) = run("list", "--tag", "BUG", "--json").json
    assert (row["id"], row["title"], row["tags"], row["starred"]) == (
        CACHE,
        "The stale cache",
        ["bug", "redis"],
        True,
    )
    assert listed(run, "--starred") == [CACHE]
    assert listed(run, "--tag", "bug", "--tag", "other") == []
    assert run("list", "--starred").out.splitlines()[1].endswith("★ The stale cache #bug #redis")
    head = run("show", CACHE).out.splitlines()[:2]
    assert head == ["★ The stale cache", "#bug #redis"]
    (hit,) = (one for one in run("search", "stale cache", "--json").json["hits"] if one["part"] == "title")
    assert hit["id"] == CACHE
    assert {path: path.read_bytes() for path in (tmp_path / ".claude").rglob("*.jsonl")} == stored


def test_a_name_tags_and_a_star_are_taken_away(run: Run, tmp_path: Path) -> None:
    for words in (["rename", CACHE, "x"], ["tag", CACHE, "a", "b"], ["star", CACHE]):
        assert run(*words).code == 0
    assert run("tag", CACHE, "--remove", "a", "--json").json["undo"] == f"sessionary tag {CACHE} a"
    assert run("tag", CACHE, "c", "--json").json["undo"] == f"sessionary tag {CACHE} --remove c"
    assert run("tag", CACHE).out == f"✓ {CACHE} has the tags #b #c\n"
    for words in (["rename", CACHE, "--clear"], ["tag", CACHE, "--remove", "b", "--remove", "c"]):
        assert run(*words).code == 0
    assert run("star", CACHE, "--remove").code == 0
    (kept,) = tmp_path.rglob("labels.json")
    assert json.loads(kept.read_bytes()) == {"version": 1, "sessions": []}
    (row,) = (row for row in run("list", "--json").json if row["id"] == CACHE)
    assert (row["title"], row["tags"], row["starred"]) == ("Cache is stale", [], False)


@pytest.mark.parametrize("tag", ["", "a b", "a,b", "#", "a\x1b"])
def test_what_is_not_a_tag(run: Run, tag: str) -> None:
    failed = run("tag", CACHE, tag)
    assert (failed.code, failed.out) == (12, "")


@pytest.mark.parametrize("data", [b"{", b'{"version":2,"sessions":[]}'])
def test_a_damaged_file_of_names_is_named_and_kept(run: Run, tmp_path: Path, data: bytes) -> None:
    run("star", CACHE)
    (kept,) = tmp_path.rglob("labels.json")
    kept.write_bytes(data)
    for words in (["list"], ["star", LOGIN]):
        failed = run(*words)
        assert failed.code == 13
        assert str(kept) in failed.err
    assert kept.read_bytes() == data


def test_raw_prints_the_stored_records(run: Run, tmp_path: Path) -> None:
    stored = (tmp_path / ".claude" / "projects" / "-w-app" / f"{LOGIN}.jsonl").read_text().splitlines()
    assert run("show", LOGIN, "--raw").out.splitlines() == stored
    assert run("show", LOGIN, "--raw", "--tail", "2").out.splitlines() == stored[-2:]
    assert run("show", f"{LOGIN}:1", "--raw", "--around", "0").out.splitlines() == [stored[1]]
    assert run("show", LOGIN, "--raw", "--json").code == 2


def test_a_change_of_nothing_has_no_undo(run: Run) -> None:
    done = run("rename", CACHE, "--clear", "--json")
    assert (done.code, done.json["before"], done.json["undo"]) == (0, None, None)


def test_raw_prints_every_record_of_a_message(run: Run, tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-w-app" / "3f0c81d2-0000-4000-8000-0000000000aa.jsonl"
    said = [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Yes."}]
    written = [
        json.dumps(
            {
                "type": "assistant",
                "uuid": f"u{at}",
                "parentUuid": f"u{at - 1}" if at else None,
                "message": {"id": "m1", "role": "assistant", "content": [part]},
            }
        )
        for at, part in enumerate(said)
    ]
    path.write_text("".join(f"{line}\n" for line in written))
    assert len(run("show", path.stem, "--json").json["messages"]) == 1
    assert run("show", path.stem, "--raw").out.splitlines() == written


@pytest.mark.parametrize("words", [["--json"], ["--branches"], ["--turns", "1"]])
def test_what_follow_excludes(run: Run, words: list[str]) -> None:
    assert run("show", LOGIN, "--follow", *words).code == 2


def test_follow_prints_what_is_added_until_it_is_interrupted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-w-app" / f"{LOGIN}.jsonl"
    more = said(LOGIN, "The login race on résumé upload", "在庫を確認", "And one more")[2]
    command = [*COMMAND, "show", LOGIN, "--follow", "--tail", "1", "--jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["index"] == 5
        with path.open("a") as file:
            file.write(json.dumps(more | {"uuid": "new"}) + "\n")
        added = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert (added["index"], added["turn"], added["text"]) == (6, 3, "And one more")


def test_repair_out_writes_a_mended_copy(run: Run, tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-w-app" / f"{LOGIN}.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]) + b"".join(whole[4:])[:-9])
    assert run("check", LOGIN).code == 13
    refused = run("repair", LOGIN)
    assert refused.code == 18
    assert "--out DIR" in refused.err
    out = tmp_path / "mended"
    done = run("repair", LOGIN, "--out", str(out), "--json")
    assert done.code == 0
    assert {one["code"] for one in done.json["mends"]} == {"torn_tail", "orphaned_call", "missing_parent"}
    assert (done.json["remaining"], done.json["home"]) == ([], str(out))
    assert run("check", LOGIN, "--home", str(out)).code == 0
    assert (
        run("show", LOGIN, "--home", str(out), "--json")
        .json["messages"][0]["text"]
        .startswith("The login race")
    )
    again = run("repair", LOGIN, "--out", str(out))
    assert (again.code, again.out) == (11, "")
    shown = run("repair", LOGIN, "--out", str(tmp_path / "more"))
    assert f"✓ a repaired copy of {LOGIN} is written" in shown.out
    assert f"show it: sessionary show --home {tmp_path}/more {LOGIN}" in shown.err


def test_each_terminal_has_numbers_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("list")
    monkeypatch.setattr("sessionary.cli.last_list._terminal", lambda: 7)
    assert run("show", "1", "--json").json["id"] == LOGIN, "the last list of the user"
    run("list", "--sort", "title")
    assert run("show", "1", "--json").json["id"] == CACHE
    monkeypatch.setattr("sessionary.cli.last_list._terminal", os.getpid)
    assert run("show", "1", "--json").json["id"] == CACHE, "the last list of the user"


def test_a_repaired_fork_has_what_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    (path,) = tmp_path.glob(f".codex/sessions/2026/03/01/*{agent_stores.CODEX_FORK}.jsonl")
    whole = Workspace()
    before = [one.message.text for one in whole.messages(whole.find(agent_stores.CODEX_FORK))]
    path.write_bytes(path.read_bytes() + b'{"torn')
    out = tmp_path / "out"
    assert main(["repair", agent_stores.CODEX_FORK, "--out", str(out)]) == 0
    assert main(["check", agent_stores.CODEX_FORK, "--home", str(out)]) == 0, capsys.readouterr().out
    copy = Workspace(out)
    assert [one.message.text for one in copy.messages(copy.find(agent_stores.CODEX_FORK))] == before
