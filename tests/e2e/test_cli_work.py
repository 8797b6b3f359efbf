"""Work sessions on the command line: every command, its JSON, its exit codes, and what it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox
from sessionary.cli import main
from sessionary.cli.maestro import main as maestro
from sessionary.cli.text import cells
from sessionary.disk.fs import OS_FS
from sessionary.layouts import ledger_owner
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.names import LOG
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from tests.e2e.driving import COMMAND, Result, Run

HOSTILE = "R\x1b[2J\x1b]0;t\x07\x9b31m\u202eabc\u200b 日本"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]")
ROOT_ID, CHILD_ID, GRANDCHILD_ID, OTHER_ID = (
    f"{letter * 8}-0000-4000-8000-000000000001" for letter in "abcd"
)


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command below `work` in this process, with the sessions in docs/sessions of the current folder."""

    def run(*arguments: str) -> Result:
        code = main(["work", *arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def store(tmp_path: Path) -> WorkStore:
    """Four sessions, one minute apart: a, b below a, c below b, and d."""
    moments = (datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(minutes=number) for number in range(1000))
    ids = iter([ROOT_ID, CHILD_ID, GRANDCHILD_ID, OTHER_ID])
    store = WorkStore.with_fs(
        OS_FS, tmp_path / "project" / "docs" / "sessions", now=lambda: next(moments), new_id=lambda: next(ids)
    )
    store.create("work_track", purpose="Rewrite", related_entity={"name": "Checkout", "track_id": "t1"})
    store.create("work_task", ROOT_ID, purpose="Receipt", related_entity={"task_id": "T-1"})
    store.create("work_issue", CHILD_ID, purpose="Loop", context={"kind": "file", "ref": "a.py"})
    store.create("fix")
    store.pause(OTHER_ID)
    return store


def leave(
    store: WorkStore,
    session: str,
    minute: int,
    prompt: str = "Do it",
    *,
    model: str = "opus",
    tokens: tuple[int, int] = (100, 20),
    cost: float | None = 0.5,
    error: str | None = None,
    depth: int = 0,
    response: str = "Done",
) -> Breadcrumb:
    crumb = create_breadcrumb(
        prompt=prompt,
        response=response,
        tools_called=[{"tool": "bash"}],
        files_modified=[],
        parent_session_id=None,
        depth_level=depth,
        model_used=model,
        token_count={"input": tokens[0], "output": tokens[1]},
        cost=cost,
        error=error,
    )
    crumb.timestamp = f"20260301_1000{minute:02}_000000"
    store.write_breadcrumb(crumb, session)
    return crumb


def ids(result: Result) -> list[str]:
    return [row["session_id"] for row in result.json]


def log(store: WorkStore, session: str = ROOT_ID, name: str = LOG) -> list[dict[str, Any]]:
    path = Path(store.folder(session)) / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# list


def test_a_list_has_the_columns_of_the_other_lists_and_the_newest_first(store: WorkStore, run: Run) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    header, *rows = out.splitlines()
    assert header.split() == ["ID", "TYPE", "STATUS", "WHEN", "ENTITY"]
    assert [row.split()[0] for row in rows] == [
        each[:12] for each in (OTHER_ID, CHILD_ID, GRANDCHILD_ID, ROOT_ID)
    ]
    first = run("list", "--sort-by", "created", "--reverse").out.splitlines()[1]
    assert re.fullmatch(r"\S+  work_track  +▶ running  +Mar  1( 2026)? +Checkout", first)
    assert rows[0].split()[2:4] == ["·", "paused"]


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], "dbca"),
        (["--sort-by", "created"], "dcba"),
        (["--sort-by", "created", "--reverse"], "abcd"),
        (["--status", "paused"], "d"),
        (["--type", "work_task"], "b"),
        (["--entity", "T-1"], "b"),
        (["--since", "2026-03-01T09:04:00+00:00"], "d"),
        (["--sort-by", "type"], "dcba"),
        (["--sort-by", "status"], "dabc"),
        (["--sort-by", "modified"], "dbca"),
        (["--reverse"], "acbd"),
    ],
)
def test_flags_of_a_list(store: WorkStore, run: Run, flags: list[str], wanted: str) -> None:
    assert "".join(each[0] for each in ids(run("list", *flags, "--json"))) == wanted


def test_a_list_as_json_has_every_key_of_the_document_and_where_it_is(store: WorkStore, run: Run) -> None:
    row = run("list", "--json", "--type", "work_task").json[0]
    document = json.loads((Path(store.folder(CHILD_ID)) / "session.json").read_text())
    assert row == document | {"path": store.folder(CHILD_ID)}


def test_lists_support_json_lines(store: WorkStore, run: Run) -> None:
    for words in (["list"], ["tree"], ["breadcrumbs", ROOT_ID], ["subwork", "list", ROOT_ID]):
        assert run(*words, "--jsonl").out.splitlines() == [
            json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in run(*words, "--json").json
        ]
        assert run(*words, "--json", "--jsonl").code == 2


def test_no_sessions_are_not_an_error(run: Run) -> None:
    code, out, err = run("list")
    assert (code, out) == (0, "")
    assert err.startswith("No work sessions found in ")
    assert run("list", "--json").json == []
    assert run("tree").err.startswith("No work sessions found")
    assert run("stats").err.startswith("No work sessions found")


def test_a_bad_file_is_reported_and_hides_no_other(store: WorkStore, run: Run) -> None:
    Path(store.folder(OTHER_ID), "session.json").write_text("[1")
    code, out, err = run("list")
    assert code == 0
    assert len(out.splitlines()) == 4
    assert err.startswith(f"bad_session: {OTHER_ID}/session.json")


def test_of_many_problems_of_one_kind_some_are_reported(tmp_path: Path, run: Run) -> None:
    for number in range(8):
        folder = tmp_path / "project" / "docs" / "sessions" / f"older-{number}"
        folder.mkdir(parents=True)
        (folder / "session.json").write_text('{"id": "x", "root_task": "x", "subtasks": [], "status": "new"}')
    lines = run("list").err.splitlines()
    assert sum(line.startswith("legacy_session: older-") for line in lines) == 5
    assert lines[-1] == "legacy_session: 3 more"


def test_a_folder_that_cannot_be_looked_into_is_3(store: WorkStore, run: Run) -> None:
    path = Path(store.folder(OTHER_ID), "session.json")
    path.unlink()
    path.mkdir()
    code, _, err = run("list")
    assert (code, "unreadable_file" in err) == (3, True)


def test_root_names_another_place(store: WorkStore, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert len(ids(run("list", "--json", "--root", str(store.root)))) == 4


# tree


def test_a_tree_shows_who_began_whom(store: WorkStore, run: Run) -> None:
    assert run("tree").out.splitlines() == [
        "Work Sessions",
        "│",
        f"├─ ▶ {ROOT_ID} (work_track: Rewrite) [running]",
        f"│  └─ ▶ {CHILD_ID} (work_task: Receipt) [running]",
        f"│     └─ ▶ {GRANDCHILD_ID} (work_issue: Loop) [file:a.py] [running]",
        f"└─ · {OTHER_ID} (fix: unnamed) [paused]",
    ]


def test_depth_0_shows_the_tops(store: WorkStore, run: Run) -> None:
    assert ids(run("tree", "--depth", "0", "--json")) == [ROOT_ID, OTHER_ID]
    assert ids(run("tree", "--depth", "1", "--json")) == [ROOT_ID, CHILD_ID, OTHER_ID]


def test_a_filtered_tree_keeps_the_ancestors_of_a_match(store: WorkStore, run: Run) -> None:
    store.pause(GRANDCHILD_ID)
    rows = run("tree", "--status", "paused", "--json").json
    assert [(row["session_id"], row["depth"]) for row in rows] == [
        (ROOT_ID, 0),
        (CHILD_ID, 1),
        (GRANDCHILD_ID, 2),
        (OTHER_ID, 0),
    ]
    assert run("tree", "--status", "failed").err == "No failed work sessions (4 in total).\n"


def test_orphans_and_rings_are_shown_with_a_flag(store: WorkStore, run: Run) -> None:
    for session, parent in ((OTHER_ID, "gone-gone"), (ROOT_ID, GRANDCHILD_ID)):
        path = Path(store.folder(session)) / "session.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps(document | {"parent_session_id": parent, "parent_wsession_id": parent}))
    flags = {row["session_id"]: row["flag"] for row in run("tree", "--json").json}
    assert flags == {OTHER_ID: "orphan", ROOT_ID: "cycle", CHILD_ID: None, GRANDCHILD_ID: None}
    assert "(parent gone-gon is missing)" in run("tree").out
    assert "(is its own ancestor)" in run("tree").out


def test_a_tree_counts_breadcrumbs(store: WorkStore, run: Run) -> None:
    leave(store, CHILD_ID, 1)
    leave(store, CHILD_ID, 2)
    rows = run("tree", "--show-breadcrumbs", "--json").json
    assert [row["breadcrumbs"] for row in rows] == [0, 2, 0, 0]
    assert [row["breadcrumbs"] for row in run("tree", "--json").json] == [None] * 4
    assert f"    {CHILD_ID}: 2 breadcrumbs" in run("tree", "--show-breadcrumbs").out.splitlines()


def test_a_tree_of_many_levels_is_drawn(tmp_path: Path, run: Run) -> None:
    store = WorkStore(tmp_path / "project" / "docs" / "sessions")
    parent = None
    for number in range(15):
        parent = store.create("fix", parent, purpose=f"Level {number}").session_id
    drawn = in_terminal("tree", columns=60).splitlines()
    assert len(drawn) == 17
    assert max(map(cells, drawn)) <= 60
    assert all(line.endswith("[running]") for line in drawn[2:])


# show, and exports


def test_a_page_says_everything_about_a_session(store: WorkStore, run: Run) -> None:
    for minute in range(5):
        leave(store, CHILD_ID, minute)
    code, out, err = run("show", CHILD_ID)
    assert (code, err) == (0, "")
    for line in (
        f"Session: {CHILD_ID}",
        "  Type:           work_task",
        "  Status:         running",
        f"  Cookie:         {CHILD_ID}",
        "  Duration:       0:03:00",
        "  Task Id: T-1",
        f"  ID:             {ROOT_ID}",
        f"  - ▶ {GRANDCHILD_ID} (work_issue: Loop) [running]",
        "  Total: 5",
        "    - 20260301 10:00:04 - opus (120 tokens)",
        "  Total tokens:          600 (input: 500, output: 100)",
        "  Estimated cost:        $2.50",
    ):
        assert line in out.splitlines(), line


@pytest.mark.parametrize(
    ("flags", "count"), [([], 3), (["--all"], 5), (["--tail", "2"], 2), (["--tail", "0"], 0)]
)
def test_the_newest_breadcrumbs_come_first(store: WorkStore, run: Run, flags: list[str], count: int) -> None:
    for minute in range(5):
        leave(store, ROOT_ID, minute)
    times = re.findall(r"    - 20260301 10:00:0(\d)", run("show", ROOT_ID, *flags).out)
    assert times == [str(4 - number) for number in range(count)]


def test_a_session_is_named_by_a_beginning_or_as_the_latest(store: WorkStore, run: Run) -> None:
    assert run("show", ROOT_ID[:4], "--json").json["session_id"] == ROOT_ID
    assert run("show", "latest", "--json").json["session_id"] == OTHER_ID


def test_a_missing_session_exits_with_10(store: WorkStore, run: Run) -> None:
    result = run("show", "nowhere", "--json")
    assert (result.code, result.out, result.error["error"]) == (10, "", "NotFound")
    assert run("show", "aaa").code == 10  # three characters are too few
    assert (
        run("close", "nowhere").code == run("consume", "nowhere").code == run("stats", "nowhere").code == 10
    )


def test_a_beginning_of_several_names_them(tmp_path: Path, run: Run) -> None:
    names = iter(["same-1", "same-2"])
    store = WorkStore.with_fs(OS_FS, tmp_path / "project" / "docs" / "sessions", new_id=lambda: next(names))
    store.create("fix")
    store.create("fix")
    code, out, err = run("show", "same")
    assert (code, out) == (12, "")
    assert "same-1" in err
    assert "same-2" in err


def test_a_session_of_the_older_kind_is_refused_by_name(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "project" / "docs" / "sessions" / "older"
    folder.mkdir(parents=True)
    (folder / "session.json").write_text('{"id": "older", "root_task": "x", "subtasks": [], "status": "new"}')
    code, out, err = run("show", "older")
    assert (code, out) == (12, "")
    assert "older format" in err
    assert "\nlegacy_session: older/session.json" in run("list").err


def test_show_as_json_is_the_export_with_place_and_problems(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    whole = run("show", ROOT_ID, "--json", "--export-json", "out.json")
    assert "Session exported to out.json\n" in whole.err
    document = whole.json
    assert (document.pop("path"), document.pop("problems")) == (store.folder(ROOT_ID), [])
    (work,) = document.pop("consumers")
    assert (work["consumer"], work["pending"], work["dead"]) == ("work", 1, [])
    assert json.loads(Path("out.json").read_text()) == document
    assert [child["session_id"] for child in document["child_sessions"]] == [CHILD_ID]
    assert document["statistics"]["total_breadcrumbs"] == len(document["breadcrumbs"]) == 1


def test_a_report_in_markdown_cannot_be_broken_out_of(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, "```\n# Not a heading", response="x" * 300)
    assert run("show", ROOT_ID, "--export-md", "out.md").code == 0
    report = Path("out.md").read_text()
    assert report.startswith(f"# Session Report: {ROOT_ID}\n")
    assert "````\n```\n# Not a heading\n````\n" in report
    assert "x" * 200 + "…" in report


@pytest.mark.parametrize("flag", ["--export-json", "--export-md"])
def test_an_export_overwrites_nothing(store: WorkStore, run: Run, flag: str) -> None:
    Path("mine").write_text("mine")
    assert run("show", ROOT_ID, flag, "mine").code == 11
    assert Path("mine").read_text() == "mine"
    assert run("show", ROOT_ID, flag, "no/such/folder").code in (10, 16)


# breadcrumbs, timeline, stats


def test_breadcrumbs_are_listed_with_the_lines_of_the_original(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, "p" * 60, cost=0.25)
    assert run("breadcrumbs", ROOT_ID).out.splitlines() == [
        f"Breadcrumbs for Session: {ROOT_ID}",
        "Found 1 breadcrumb(s)",
        "─" * 80,
        "1. [20260301_100001_000000] - opus",
        f"   Prompt: {'p' * 50}…",
        "   Response: Done",
        "   Tools Called: 1",
        "   Files Modified: 0",
        "   Depth: 0",
        "   Tokens: Input: 100, Output: 20",
        "   Cost: $0.250000",
        "",
    ]


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], [1, 2, 3, 4]),
        (["--limit", "2"], [1, 2]),
        (["--tail", "2"], [3, 4]),
        (["--depth", "1"], [4]),
        (["--include-children"], [1, 2, 3, 4, 5, 6]),
        (["--include-children", "--tail", "1"], [6]),
    ],
)
def test_flags_of_breadcrumbs(store: WorkStore, run: Run, flags: list[str], wanted: list[int]) -> None:
    for minute in (1, 2, 3):
        leave(store, ROOT_ID, minute)
    leave(store, ROOT_ID, 4, depth=1)
    leave(store, CHILD_ID, 5)
    leave(store, GRANDCHILD_ID, 6)
    leave(store, OTHER_ID, 7)
    rows = run("breadcrumbs", ROOT_ID, *flags, "--json").json
    assert [int(row["timestamp"][13:15]) for row in rows] == wanted


def test_breadcrumbs_of_children_say_whose_they_are(store: WorkStore, run: Run) -> None:
    leave(store, GRANDCHILD_ID, 1)
    assert f"   Session: {GRANDCHILD_ID}" in run("breadcrumbs", ROOT_ID, "--include-children").out
    assert run("timeline", ROOT_ID, "--include-children", "--json").json["events"][0]["session_id"] == (
        GRANDCHILD_ID
    )


def test_a_summary_says_how_many_costs_are_unknown(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    leave(store, ROOT_ID, 3, cost=None)
    out = run("breadcrumbs", ROOT_ID, "--summary").out
    assert "Total Cost: $0.500000 (without 1 of 2, whose cost is unknown)" in out
    assert "Duration: 2.00 seconds" in out
    assert run("breadcrumbs", ROOT_ID, "--summary", "--json").json["breadcrumbs_without_cost"] == 1


def test_a_damaged_breadcrumb_is_reported_and_hides_no_other(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    path = Path(store.folder(ROOT_ID)) / "breadcrumbs" / "0" / "20260301_100000_000000.json"
    path.write_text('{"timestamp": ')
    os.utime(path, (0, 0))
    for command in ("breadcrumbs", "timeline", "stats", "show"):
        result = run(command, ROOT_ID)
        assert result.code == 13
        assert "bad_breadcrumb: 0/20260301_100000_000000.json" in result.err, command


def test_a_timeline_reports_how_long_after_the_one_before(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    leave(store, ROOT_ID, 31, error="it broke")
    lines = run("timeline", ROOT_ID).out.splitlines()
    assert lines[:2] == [f"Timeline for Session: {ROOT_ID}", "Total Events: 2"]
    assert lines[2] == "●" + "─" * 73 + "● 30 s"
    assert lines[3] == "1. [20260301_100001_000000] Depth: 0, Model: opus"
    assert lines[10].startswith("2. [20260301_100031_000000] Depth: 0, Model: opus")
    assert lines[10].endswith(" +30 s")
    assert cells(lines[10]) == 80
    assert "   Error: it broke" in lines
    events = run("timeline", ROOT_ID, "--json").json["events"]
    assert [event["seconds_later"] for event in events] == [None, 30.0]
    assert events[0]["time"] == "2026-03-01T10:00:01Z"


def test_a_timeline_can_be_cut_at_either_end(store: WorkStore, run: Run) -> None:
    for minute in range(4):
        leave(store, ROOT_ID, minute, str(minute))
    for flag, wanted in (("--limit", ["0"]), ("--tail", ["3"])):
        events = run("timeline", ROOT_ID, flag, "1", "--json").json["events"]
        assert [event["prompt"] for event in events] == wanted


def test_stats_draw_a_bar_of_tokens_and_one_of_cost_for_each_model(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, model="opus", tokens=(100, 0), cost=1.0)
    leave(store, ROOT_ID, 2, model="sonnet", tokens=(200, 0), cost=0.5)
    leave(store, ROOT_ID, 3, model="mystery", tokens=(50, 0), cost=None, error="no")
    out = run("stats", ROOT_ID).out
    for line in (
        "  Total Breadcrumbs: 3",
        "  Tokens (Input/Output): 350 / 0",
        "  Estimated Cost: $1.50 (without 1 of 3, whose cost is unknown)",
        "  Tools Called: 3",
        "  Duration (seconds): 2",
        "  Success Rate: 66.7%",
    ):
        assert line in out.splitlines(), line
    bars = {line.split()[0]: [len(bar) for bar in re.findall("█+", line)] for line in out.splitlines()[9:]}
    assert bars["sonnet"][0] == bars["opus"][1] == 2 * bars["opus"][0] == 2 * bars["sonnet"][1]
    assert len(bars["mystery"]) == 1
    assert re.search(r"mystery .* unknown$", out, re.MULTILINE)


def test_a_cost_that_is_partly_unknown_says_so(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, cost=1.0)
    leave(store, ROOT_ID, 2, cost=None)
    assert "$1.000000+?" in run("stats", ROOT_ID).out
    (model,) = run("stats", ROOT_ID, "--json").json["models"]
    assert (model["cost"], model["breadcrumbs"], model["breadcrumbs_without_cost"]) == (1.0, 2, 1)


def test_the_cost_of_a_model_is_rounded_once(store: WorkStore, run: Run) -> None:
    for number in range(1, 4):
        leave(store, ROOT_ID, number, cost=0.0000004)
    sums = run("stats", ROOT_ID, "--json").json
    assert sums["models"][0]["cost"] == sums["estimated_cost"] == 0.000001


def test_an_unknown_cost_is_not_zero(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, cost=None)
    assert "  Estimated Cost: unknown" in run("stats", ROOT_ID).out.splitlines()
    assert run("stats", ROOT_ID, "--json").json["models"][0]["cost"] is None
    leave(store, OTHER_ID, 1, cost=0.0)
    assert "  Estimated Cost: $0.00" in run("stats", OTHER_ID).out.splitlines()


@pytest.mark.parametrize("flag", ["--tree", "--include-children"])
def test_stats_of_a_tree_count_all_levels(store: WorkStore, run: Run, flag: str) -> None:
    for session in (ROOT_ID, CHILD_ID, GRANDCHILD_ID, OTHER_ID):
        leave(store, session, 1)
    assert run("stats", ROOT_ID, "--json").json["total_breadcrumbs"] == 1
    below = run("stats", ROOT_ID, flag, "--json").json
    assert (below["session_id"], below["sessions"], below["total_breadcrumbs"]) == (ROOT_ID, 3, 3)
    whole = run("stats", "--json").json
    assert (whole["session_id"], whole["sessions"], whole["total_breadcrumbs"]) == (None, 4, 4)


# breadcrumb add, close


def test_a_breadcrumb_is_left_and_its_id_printed(store: WorkStore, run: Run) -> None:
    code, out, _ = run(
        "breadcrumb", "add", "--cookie", CHILD_ID, "--prompt", "Hear", "--response", "Yes", "--tag", "a"
    )
    assert code == 0
    (crumb,) = store.list_breadcrumbs(CHILD_ID)
    assert out == f"{crumb.breadcrumb_id}\n"
    assert (crumb.prompt, crumb.response, crumb.model_used, crumb.tags) == ("Hear", "Yes", "manual", ["a"])
    assert (crumb.depth_level, crumb.parent_session_id, crumb.cost) == (1, ROOT_ID, None)
    assert crumb.token_count == {"input": 0, "output": 0}


def test_a_breadcrumb_as_json_says_where_it_is(store: WorkStore, run: Run) -> None:
    made = run("breadcrumb", "add", "--cookie", ROOT_ID, "--prompt", "x", "--depth", "3", "--json").json
    assert json.loads(Path(made["path"]).read_text())["breadcrumb_id"] == made["breadcrumb_id"]
    assert (made["session_id"], made["depth_level"]) == (ROOT_ID, 3)


def test_a_breadcrumb_needs_the_whole_cookie_of_an_open_session(store: WorkStore, run: Run) -> None:
    assert run("breadcrumb", "add", "--prompt", "x").code == 2
    for cookie in (ROOT_ID[:8], "latest", "unknown"):
        result = run("breadcrumb", "add", "--cookie", cookie, "--prompt", "x")
        assert (result.code, result.out) == (10, "")
        assert "the cookie is the whole id" in result.err
    store.close(OTHER_ID)
    result = run("breadcrumb", "add", "--cookie", OTHER_ID, "--prompt", "x")
    assert result.code == 12
    assert "closed" in result.err
    assert sorted(os.listdir(store.root)) == sorted([ROOT_ID, OTHER_ID])
    assert store.list_breadcrumbs(OTHER_ID) == []


def test_a_session_is_closed_once_and_not_before_its_children(store: WorkStore, run: Run) -> None:
    refused = run("close", ROOT_ID, "--json")
    assert (refused.code, refused.error["details"]["open"]) == (12, [CHILD_ID])
    assert run("close", GRANDCHILD_ID).out == f"✓ {GRANDCHILD_ID} is completed\n"
    assert run("close", CHILD_ID, "--json").json["state"] == "closed"
    assert run("close", "aaaa").code == 0
    assert store.load(ROOT_ID).status == "completed"
    again = run("close", ROOT_ID)
    assert (again.code, "already closed" in again.err) == (12, True)


# sub-work


def test_sub_work_from_start_to_end(store: WorkStore, run: Run) -> None:
    store.new_id = iter(["sub-work-1"]).__next__
    code, out, err = run("subwork", "start", OTHER_ID, "--purpose", "Look", "--context", "file:x:y.py")
    child = out.strip()
    assert code == 0
    assert "paused" in err
    made = store.load(child)
    assert (made.session_type, made.purpose, made.context) == (
        "work_subwork",
        "Look",
        {"kind": "file", "ref": "x:y.py"},
    )
    listed = run("subwork", "list", OTHER_ID)
    assert listed.out.splitlines()[1].split() == [child[:12], "▶", "running", "file:x:y.py", "Look"]
    assert ids(run("subwork", "list", OTHER_ID, "--json")) == [child]
    closed = run("subwork", "close", child, "--summary", "Found it", "--json").json
    assert (closed["status"], closed["parent_status"]) == ("completed", "running")
    assert (closed["handed_over"], closed["parent_resumed"], closed["still_open"]) == (True, True, [])
    (result,) = store.list_breadcrumbs(OTHER_ID)
    assert (result.breadcrumb_id, result.kind, result.response) == (
        closed["breadcrumb_id"],
        "result",
        "Found it",
    )
    again = run("subwork", "close", child, "--summary", "Found it")
    assert (again.code, "already" in again.out) == (0, True)
    assert len(store.list_breadcrumbs(OTHER_ID)) == 1
    shown = run("subwork", "show", child)
    assert "  Summary:        Found it" in shown.out.splitlines()
    assert run("subwork", "show", child, "--json").json["metadata"]["result_status"] == "ok"


@pytest.mark.parametrize(("word", "status"), [("failed", "failed"), ("partial", "interrupted")])
def test_sub_work_that_did_not_end_well(store: WorkStore, run: Run, word: str, status: str) -> None:
    assert run("subwork", "close", GRANDCHILD_ID, "--summary", "x", "--status", word).code == 0
    assert store.load(GRANDCHILD_ID).status == status


def test_a_parent_can_be_left_running_or_paused(store: WorkStore, run: Run) -> None:
    child = run("subwork", "start", ROOT_ID, "--purpose", "x", "--no-pause-parent").out.strip()
    assert store.load(ROOT_ID).status == "running"
    store.pause(ROOT_ID)
    for each in (GRANDCHILD_ID, CHILD_ID, child):
        assert run("subwork", "close", each, "--summary", "x", "--no-resume-parent").code == 0
    assert store.load(ROOT_ID).status == "paused"
    assert run("subwork", "resume-parent", child, "--json").json["session_id"] == ROOT_ID
    assert store.load(ROOT_ID).status == "running"


def test_a_parent_is_not_resumed_while_something_below_it_is_open(store: WorkStore, run: Run) -> None:
    store.pause(ROOT_ID)
    assert run("subwork", "resume-parent", CHILD_ID).code == 12
    assert store.load(ROOT_ID).status == "paused"


def test_what_sub_work_refuses(store: WorkStore, run: Run) -> None:
    assert run("subwork", "start", ROOT_ID).code == 2
    assert run("subwork", "start", ROOT_ID, "--purpose", "x", "--context", "nothing").code == 2
    assert run("subwork", "close", CHILD_ID).code == 2
    assert run("subwork", "close", CHILD_ID, "--summary", "x", "--status", "fine").code == 2
    assert run("subwork", "close", OTHER_ID, "--summary", "x").code == 12  # it was not started
    assert store.load(OTHER_ID).status == "paused"
    assert run("subwork", "resume-parent", OTHER_ID).code == 12
    store.close(OTHER_ID)
    assert run("subwork", "start", OTHER_ID, "--purpose", "x").code == 12
    assert run("subwork", "list", GRANDCHILD_ID).err == f"No sub-work below {GRANDCHILD_ID}.\n"


# consume


def test_messages_are_printed_and_acknowledged_once(store: WorkStore, run: Run) -> None:
    crumbs = [leave(store, ROOT_ID, minute, f"Message {minute}\nof two lines") for minute in (1, 2)]
    code, out, err = run("consume", ROOT_ID)
    assert (code, err) == (0, "2 messages applied\n")
    assert out.splitlines()[:4] == [
        "[20260301_100001_000000] Depth: 0, Model: opus",
        f"   Id: {crumbs[0].breadcrumb_id}",
        "   Prompt: Message 1",
        "   of two lines",
    ]
    assert [line["breadcrumb_id"] for line in log(store)] == [crumb.breadcrumb_id for crumb in crumbs]
    assert run("consume", ROOT_ID) == (0, "", "0 messages applied\n")


def test_a_mailbox_of_another_device_is_left_to_it_until_it_is_taken_over(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1, "hello")
    ledger_owner.name_owner(f"{store.folder(ROOT_ID)}/log.jsonl", "laptop", here=False)
    refused = run("consume", ROOT_ID)
    assert refused.code == 15
    assert "another device (laptop)" in refused.err
    assert "--take-over" in refused.err
    assert run("consume", ROOT_ID, "--take-over", "--json").json["applied"] == 1
    leave(store, ROOT_ID, 2, "hello again")
    assert run("consume", ROOT_ID, "--json").json["applied"] == 1


def test_consume_as_json_is_one_document(store: WorkStore, run: Run) -> None:
    crumb = leave(store, ROOT_ID, 1)
    leave(store, ROOT_ID, 2)
    report = run("consume", ROOT_ID, "--limit", "1", "--json").json
    assert [message["breadcrumb_id"] for message in report.pop("messages")] == [crumb.breadcrumb_id]
    assert report == {
        "session_id": ROOT_ID,
        "consumer": "work",
        "applied": 1,
        "pending": 1,
        "unwritten": 0,
        "bad": [],
        "damaged": 0,
        "failures": [],
        "problems": [],
    }


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words",
    [["consume"], ["consume", "--json"], ["watch", "--json"], ["consume", "--exec", "echo done"]],
    ids=" ".join,
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_message_that_cannot_be_printed_is_neither_applied_nor_held_against(
    words: list[str], unbuffered: str, store: WorkStore
) -> None:
    leave(store, ROOT_ID, 1)
    command, *more = words
    line = [*COMMAND, "work", command, ROOT_ID, "--root", str(store.root), "--max-attempts", "1", *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            line,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 16
    assert "The result cannot be printed: " in done.stderr
    status = Mailbox(store.folder(ROOT_ID)).status()
    assert (status.applied, status.pending, status.failing, status.dead) == (0, 1, {}, [])


def test_each_consumer_sees_every_message(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    assert run("consume", ROOT_ID, "--json").json["applied"] == 1
    assert run("consume", ROOT_ID, "--consumer", "audit", "--shared", "--json").json["applied"] == 1
    assert len(log(store, name="log.audit.jsonl")) == 1


def test_a_command_gets_the_message_and_its_id(store: WorkStore, run: Run) -> None:
    crumb = leave(store, ROOT_ID, 1, "Ünïcode\n'quoted' $HOME")
    script = 'cat > got.json; printf %s "$SESSIONARY_BREADCRUMB_ID $SESSIONARY_SESSION_ID" > got.txt'
    report = run("consume", ROOT_ID, "--exec", script, "--json").json
    assert (report["applied"], report["messages"]) == (1, None)
    assert json.loads(Path("got.json").read_text())["prompt"] == crumb.prompt
    assert Path("got.txt").read_text() == f"{crumb.breadcrumb_id} {ROOT_ID}"
    assert log(store)[0]["result"] is None


def test_an_object_that_a_command_prints_is_the_result_and_the_rest_is_passed_on(
    store: WorkStore, run: Run
) -> None:
    leave(store, ROOT_ID, 1)
    assert run("consume", ROOT_ID, "--exec", """echo '{"n": 1}'""").out == ""
    leave(store, ROOT_ID, 2)
    assert run("consume", ROOT_ID, "--exec", r"printf 'hi\033[2J'").out == "hi\\x1b[2J\n"
    leave(store, ROOT_ID, 3)
    result = run("consume", ROOT_ID, "--exec", "echo hi", "--json")
    assert (result.json["applied"], result.err) == (1, "hi\n")
    assert [line["result"] for line in log(store)] == [{"n": 1}, None, None]


def test_a_command_that_fails_leaves_the_message_and_is_3(store: WorkStore, run: Run) -> None:
    crumb = leave(store, ROOT_ID, 1)
    leave(store, ROOT_ID, 2)
    script = "echo '{\"n\": 1}'; ! grep -q 100001"
    result = run("consume", ROOT_ID, "--exec", script, "--max-attempts", "2", "--json")
    assert (result.code, result.json["applied"], result.json["pending"]) == (3, 1, 1)
    (failure,) = result.json["failures"]
    assert failure == {
        "breadcrumb_id": crumb.breadcrumb_id,
        "file": "0/20260301_100001_000000.json",
        "attempt": 1,
        "error": "the command ended with exit code 1",
    }
    again = run("consume", ROOT_ID, "--exec", "exit 7", "--max-attempts", "2")
    assert again.code == 3
    assert "dead_letter" in again.err
    assert run("consume", ROOT_ID).err == "0 messages applied\n"
    assert len(log(store)) == 1


def test_at_most_once_gives_a_failed_message_up(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    result = run("consume", ROOT_ID, "--exec", "exit 1", "--at-most-once")
    assert (result.code, "dead_letter" in result.err) == (3, True)
    assert log(store) == []


def test_a_consumer_at_work_is_waited_for_and_then_14(store: WorkStore, run: Run) -> None:
    leave(store, ROOT_ID, 1)
    codes: list[int] = []

    def meanwhile(_: Breadcrumb) -> None:
        codes.append(subprocess.run(
            [*COMMAND, "work", "consume", ROOT_ID, "--timeout", "0.1"], capture_output=True, check=False
        ).returncode)  # fmt: skip

    Mailbox(store.folder(ROOT_ID)).consume(meanwhile)
    assert codes == [14]


def test_a_closed_pipe_leaves_the_rest_pending(store: WorkStore) -> None:
    for minute in range(30):
        leave(store, ROOT_ID, minute, "x" * 10_000)
    process = subprocess.Popen(
        [*COMMAND, "work", "consume", ROOT_ID], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=30)
    assert err == b""
    assert process.returncode == -signal.SIGPIPE
    waiting = Mailbox(store.folder(ROOT_ID)).pending()
    assert 0 < len(waiting) < 31
    assert len(log(store)) + len(waiting) == 30
    assert Mailbox(store.folder(ROOT_ID)).status().failing == {}


# watch


@pytest.fixture
def watching(store: WorkStore) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*COMMAND, "work", "watch", ROOT_ID, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_watch_prints_what_comes_until_it_is_stopped(
    store: WorkStore, watching: Callable[..., "subprocess.Popen[str]"]
) -> None:
    leave(store, ROOT_ID, 1, "before")
    process = watching("--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["prompt"] == "before"
    leave(store, ROOT_ID, 2, "after")
    assert json.loads(process.stdout.readline())["prompt"] == "after"
    wait_for(lambda: len(log(store)) == 2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (out, err.strip()) == ("", "interrupted")
    assert process.returncode == 130


def test_watch_tries_again_what_failed(
    store: WorkStore, watching: Callable[..., "subprocess.Popen[str]"]
) -> None:
    leave(store, ROOT_ID, 1)
    process = watching("--interval", "0.1", "--exec", 'test -e ready && echo "{\\"ok\\": true}"')
    assert process.stderr is not None
    assert "handler_failed" in process.stderr.readline()
    Path("ready").touch()
    wait_for(lambda: log(store) != [])
    assert log(store)[0]["result"] == {"ok": True}


def test_watch_gives_up_after_the_given_limit(
    store: WorkStore, watching: Callable[..., "subprocess.Popen[str]"]
) -> None:
    leave(store, ROOT_ID, 1)
    process = watching("--max-attempts", "1", "--exec", "exit 1")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("dead_letter: 0/20260301_100001_000000.json")


def test_ending_a_watch_ends_the_command_that_runs(
    store: WorkStore, watching: Callable[..., "subprocess.Popen[str]"]
) -> None:
    leave(store, ROOT_ID, 1)
    process = watching("--exec", "echo $$ > pid; exec sleep 60")
    wait_for(lambda: Path("pid").exists() and Path("pid").read_text().endswith("\n"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    wait_for(lambda: not is_alive(int(Path("pid").read_text())))
    assert log(store) == []
    assert len(Mailbox(store.folder(ROOT_ID)).pending()) == 1


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Misuse, names, terminals


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["show"],
        ["list", "--status", "fine"],
        ["list", "--since", "whenever"],
        ["list", "--sort-by", "size"],
        ["tree", "--depth", "-1"],
        ["breadcrumbs", "latest", "--limit", "1", "--tail", "1"],
        ["breadcrumbs", "latest", "--limit", "0"],
        ["timeline", "latest", "--limit", "1", "--tail", "1"],
        ["show", "latest", "--all", "--tail", "1"],
        ["stats", "--tree"],
        ["consume"],
        ["consume", "latest", "--limit", "0"],
        ["watch", "latest", "--interval", "0"],
    ],
)
def test_what_makes_no_sense_is_2(store: WorkStore, run: Run, words: list[str]) -> None:
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: ")


def test_usage_as_json(run: Run) -> None:
    result = run("stats", "--tree", "--json")
    assert (result.code, result.error["error"]) == (2, "Usage")


def test_a_consumer_that_cannot_be_one_is_12(store: WorkStore, run: Run) -> None:
    assert run("consume", ROOT_ID, "--consumer", "../x").code == 12


COMMANDS = [
    ["list"],
    ["show"],
    ["tree"],
    ["breadcrumbs"],
    ["breadcrumb", "add"],
    ["breadcrumb", "move"],
    ["timeline"],
    ["stats"],
    ["start"],
    ["pause"],
    ["resume"],
    ["interrupt"],
    ["fail"],
    ["close"],
    ["pending"],
    ["status"],
    ["consume"],
    ["watch"],
    ["revive"],
    ["quarantine"],
    ["ledger", "restore"],
    ["ledger", "accept"],
    ["subwork", "start"],
    ["subwork", "list"],
    ["subwork", "show"],
    ["subwork", "close"],
    ["subwork", "resume-parent"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_has_an_example_and_fits(
    words: list[str], run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*words, "-h")
    assert code == 0
    assert f"  sessionary work {' '.join(words)}" in out.partition("Example")[2]
    assert max(map(cells, out.splitlines())) <= 80
    above = ["work"] if words[0] == "subwork" else ["wsession"]
    assert maestro([*above, *words, "-h"]) == 0
    example = capsys.readouterr().out.partition("Example")[2]
    assert f"  maestro {above[0]} {' '.join(words)}" in example
    assert "sessionary" not in example


def test_maestro_has_the_same_commands(
    store: WorkStore, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(store, ROOT_ID, 1)
    for words in (
        ["list"],
        ["tree"],
        ["show", ROOT_ID],
        ["stats"],
        ["timeline", ROOT_ID],
        ["list", "--json"],
    ):
        ours = run(*words)
        for name in ("wsession", "ws"):
            assert maestro([name, *words]) == 0
            assert capsys.readouterr() == (ours.out, ours.err)
    assert maestro(["ws", "ls"]) == maestro(["ws", "sh", ROOT_ID]) == maestro(["ws", "tr"]) == 0
    capsys.readouterr()
    assert maestro(["work", "subwork", "list", ROOT_ID, "--json"]) == 0
    assert [row["session_id"] for row in json.loads(capsys.readouterr().out)] == [CHILD_ID]


def test_maestro_uses_its_own_name_in_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert maestro(["--version"]) == 0
    assert capsys.readouterr().out.startswith("maestro (sessionary ")
    assert maestro(["wsession", "show"]) == 2
    assert capsys.readouterr().err.startswith("Usage: maestro wsession show ")
    assert maestro(["nothing"]) == 2


def test_nothing_that_was_stored_acts_on_a_terminal(tmp_path: Path, run: Run) -> None:
    store = WorkStore(tmp_path / "project" / "docs" / "sessions")
    session = store.create(
        HOSTILE,
        purpose=HOSTILE,
        related_entity={HOSTILE: HOSTILE, "name": HOSTILE},
        context={"kind": HOSTILE, "ref": HOSTILE},
    ).session_id
    store.create("fix", session, purpose=HOSTILE)
    leave(store, session, 1, HOSTILE, model=HOSTILE, error=HOSTILE, response=HOSTILE)
    for words in (
        ["list"],
        ["tree", "--show-breadcrumbs"],
        ["show", session],
        ["breadcrumbs", session],
        ["timeline", session, "--include-children"],
        ["stats"],
        ["subwork", "list", session],
        ["show", session, "--export-md", "out.md"],
        ["consume", session],
        ["consume", session, "--consumer", "b", "--exec", "cat >&2; exit 1"],
        ["list", "--json"],
        ["show", session, "--json"],
        ["breadcrumbs", session, "--json"],
    ):
        code, out, err = run(*words)
        assert code in (0, 3), words
        assert ACTS.search(out + err) is None, words
        assert out or "consumer" not in " ".join(words) or err, words
    assert ACTS.search(Path("out.md").read_text()) is None


def in_terminal(*words: str, columns: int = 80, **environment: str) -> str:
    """What a command prints to a terminal of that width."""
    import pty

    above, below = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "work", *words],
        stdin=subprocess.DEVNULL,
        stdout=below,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {"COLUMNS": str(columns), "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1"}
        | environment,
    )
    os.close(below)
    read = b""
    while True:
        try:
            data = os.read(above, 1 << 16)
        except OSError:
            break
        if not data:
            break
        read += data
    os.close(above)
    assert process.wait(timeout=30) in (0, 3)
    return read.decode(environment.get("PYTHONIOENCODING", "utf-8")).replace("\r\n", "\n")


WIDE = ["list", "tree", "show", "breadcrumbs", "timeline", "stats", "subwork list"]


def long_session(store: WorkStore) -> None:
    store.update(ROOT_ID, lambda session: setattr(session, "purpose", "日本 " * 60))
    store.update(ROOT_ID, lambda session: session.related_entity.update({"name": "long " * 60}))
    leave(
        store, ROOT_ID, 1, "prompt 日本 " * 60, model="a-model-with-a-very-long-name " * 4, response="y" * 400
    )
    leave(store, ROOT_ID, 9, error="e" * 400)


@pytest.mark.parametrize("columns", [50, 80, 200])
@pytest.mark.parametrize("command", WIDE)
def test_nothing_is_wider_than_the_terminal(store: WorkStore, command: str, columns: int) -> None:
    long_session(store)
    words = command.split() + ([] if command in ("list", "tree", "stats") else [ROOT_ID])
    printed = in_terminal(*words, columns=columns).splitlines()
    assert len(printed) > 1
    assert [line for line in printed if cells(line) > columns] == []


def test_a_terminal_without_unicode_gets_plain_characters(store: WorkStore) -> None:
    leave(store, ROOT_ID, 1)
    leave(store, ROOT_ID, 5)
    for words in (["list"], ["tree"], ["stats"], ["timeline", ROOT_ID], ["show", ROOT_ID]):
        printed = in_terminal(*words, PYTHONIOENCODING="ascii")
        assert "\\u" not in printed, words
    assert "`- > " in in_terminal("tree", PYTHONIOENCODING="ascii")
    assert "####" in in_terminal("stats", PYTHONIOENCODING="ascii")


def test_colours_only_where_they_are_wanted(store: WorkStore) -> None:
    assert "\x1b[" not in in_terminal("tree")
    assert "\x1b[32m▶" in in_terminal("tree", NO_COLOR="")


def test_the_commands_are_loaded_only_when_they_are_called() -> None:
    program = (
        "import sys; from sessionary.cli import main\n"
        "main(sys.argv[1:])\n"
        "bad = [n for n in sys.modules if n.startswith(('sessionary.cli.work', 'sessionary.mailbox'))]\n"
        "assert not bad, bad"
    )
    for words in (["--version"], ["list", "--home", "nowhere"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    program = program.replace("('sessionary.cli.work', 'sessionary.mailbox')", "'sessionary.mailbox'")
    done = subprocess.run(
        [sys.executable, "-c", program, "work", "list"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
