"""The year, the plots of a session, the board of a feature, and two sessions side by side."""

import json
import xml.etree.ElementTree as ElementTree
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sessionary.layouts.brainstorm.scores import Score
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.viewer import diffing
from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library
from sessionary.viewer.overview import overview
from sessionary.viewer.plots import Bar, Lane, Point, curve, lanes, year
from sessionary.viewer.timelines import duration, score_curve, tool_timeline
from sessionary.workspace import Workspace
from sessionary.workspace.tool_times import ToolTime
from tests.unit.viewer.test_overview import SVG, parsed

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HOSTILE = '</title><script>alert(1)</script>"\u202e'


@pytest.fixture
def library(tmp_path: Path) -> Library:
    for folder in (".ai-session", ".project-memory/brainstorm-sessions", "docs/sessions"):
        (tmp_path / folder).mkdir(parents=True)
    return Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])


@pytest.fixture
def client(library: Library) -> TestClient:
    headers = {"authorization": "Bearer t", "host": "localhost:80"}
    return TestClient(viewer_app(library, "t", 80), base_url="http://localhost:80", headers=headers)


def write(home: Path, session: str, messages: list[dict[str, Any]]) -> None:
    folder = home / "projects" / "-p" / "sessions" / session
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text("".join(json.dumps(one) + "\n" for one in messages))


def rows(client: TestClient) -> list[dict[str, Any]]:
    _, *groups = map(json.loads, client.get("/api/sessions").text.splitlines())
    return [row for group in groups for row in group]


def keys(client: TestClient) -> dict[str, str]:
    return {row["id"]: row["key"] for row in rows(client)}


def titles(found: ElementTree.Element, kind: str = "rect") -> list[str]:
    return [str(one[0].text) for one in found.iter(f"{SVG}{kind}") if len(one)]


def calls(*spans: tuple[str, float, float | None]) -> list[ToolTime]:
    return [
        ToolTime(name, at, 1, NOON + timedelta(seconds=begun), took, answered=took is not None)
        for at, (name, begun, took) in enumerate(spans)
    ]


# -- plots


def test_a_year_has_a_square_for_each_day_and_no_later_one() -> None:
    last = date(2026, 3, 14)  # a Saturday
    found = parsed(year("Sessions", {"2026-03-14": 8.0, "2026-03-13": 1.0, "2025-03-16": 2.0}, str, last))
    squares = found.findall(f"{SVG}rect")
    assert len(squares) == 52 * 7 + 6
    assert titles(found)[0] == "2025-03-10: 0"
    assert titles(found)[-2:] == ["2026-03-13: 1.0", "2026-03-14: 8.0"]
    assert [one.get("class") for one in squares[-3:]] == ["heat0", "heat1", "heat4"]
    assert found.get("aria-label") == "Sessions: 11.0 in a year, most on 2026-03-14: 8.0"


def test_a_year_without_a_value_is_not_drawn() -> None:
    assert year("T", {"2020-01-01": 5.0}, str, date(2026, 3, 14)) == ""


def test_bars_of_a_lane_are_where_and_as_long_as_they_are() -> None:
    drawn = parsed(
        lanes("T", [Lane("a", [Bar(0.0, 0.5, "", "x"), Bar(0.5, 1.0, "bad", "y")], "f")], ("l", "r"))
    )
    first, second = drawn.findall(f"{SVG}rect")
    width, start = float(first.get("width") or 0), float(first.get("x") or 0)
    assert float(second.get("x") or 0) == pytest.approx(start + width, abs=0.2)
    assert (second.get("class"), titles(drawn)) == ("bar bad", ["x", "y"])
    assert lanes("T", [], ("", "")) == ""


def test_stored_text_cannot_act_in_a_plot() -> None:
    for svg in (
        lanes(HOSTILE, [Lane(HOSTILE, [Bar(0, 1, "", HOSTILE)], HOSTILE)], ("", "")),
        curve(HOSTILE, [[Point(0, 1, HOSTILE, "live")]], {0.5: "50"}),
    ):
        assert [one.tag for one in parsed(svg).iter() if "script" in one.tag] == []


def test_the_timeline_of_tools_has_a_lane_for_each_with_the_slowest_above() -> None:
    svg, words = tool_timeline(calls(("fast", 0, 1), ("slow", 10, 30), ("fast", 50, 3), ("never", 55, None)))
    found = parsed(svg)
    texts = [one.text for one in found.findall(f"{SVG}text")]
    assert texts[:6] == [
        "slow",
        "1× · median 30.0 s, max 30.0 s",
        "fast",
        "2× · median 2.0 s, max 3.0 s",
        "never",
        "1×",
    ]
    assert titles(found)[0].startswith("slow: 30.0 s, message 1,")
    assert titles(found)[-1].startswith("never: no result")
    assert words == ""


def test_a_pause_between_tools_is_shortened_and_said() -> None:
    hour = 3600.0
    svg, words = tool_timeline(calls(("a", 0, 30), ("b", hour, 30)))
    first, second = parsed(svg).findall(f"{SVG}rect")
    assert words == "Pauses longer than a minute are drawn as a minute."
    gap = float(second.get("x") or 0) - float(first.get("x") or 0) - float(first.get("width") or 0)
    assert gap == pytest.approx(2 * float(first.get("width") or 0), abs=0.5)
    assert float(second.get("width") or 0) == pytest.approx(float(first.get("width") or 0), abs=0.2)


def test_calls_without_a_time_are_counted_and_not_drawn() -> None:
    none = ToolTime("a", 0, 1, None)
    assert tool_timeline([none]) == ("", "")
    svg, words = tool_timeline([none, *calls(("b", 0, 0.0))])
    assert len(parsed(svg).findall(f"{SVG}rect")) == 1
    assert words == "1 of 2 calls are not drawn: they bear no time, or are too early."


def test_the_curve_of_a_score_shows_what_a_branch_replaced() -> None:
    scores = [
        Score(1, 25, "divergent", NOON, False, False),
        Score(2, 40, "divergent", NOON, True, False),
        Score(3, 60, None, None, True, False),
        Score(2, 50, "convergent", NOON, False, True),
    ]
    found = parsed(score_curve(scores))
    assert [one.get("class") for one in found.findall(f"{SVG}polyline")] == ["curve replaced", "curve live"]
    heights = [float(one.get("cy") or 0) for one in found.findall(f"{SVG}circle")]
    assert heights == [100.0, 70.0, 122.5, 85.0]
    assert titles(found, "circle")[-1] == "iteration 2: EMS 50, convergent, the session is here"
    assert score_curve([]) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (0.042, "42 ms"), (59.94, "59.9 s"), (90, "1.5 min"), (5400, "1.5 h"), (129600, "1.5 d")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


# -- the pages


def test_the_charts_of_a_session(client: TestClient, tmp_path: Path) -> None:
    call = {"id": "c", "tool": "bash", "arguments": {}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call], "timestamp": "2026-03-14T09:30:00Z"},
        {"role": "tool", "tool_call_id": "c", "content": "ok", "timestamp": "2026-03-14T09:30:02Z"},
    ]
    write(tmp_path, "one", messages)
    write(tmp_path, "none", [{"role": "user", "content": "hi"}])
    found = client.get(f"/api/session/{keys(client)['one']}/charts").json()
    assert ([one["title"] for one in found["plots"]], found["board"]) == (["Time of tools"], None)
    assert client.get(f"/api/session/{keys(client)['none']}/charts").json()["plots"] == []
    assert client.get("/api/session/0/charts").status_code == 404


def project(home: Path) -> None:
    features = FeatureStore(home)
    feature = features.create("hello-2025-01-09", name="Hello \u202e")
    task = {"task_id": "T1", "description": HOSTILE, "agent": "a", "artifacts": ["x.py"]}
    features.save_plan(feature, [{"phase_id": "p1", "name": "First", "tasks": [task]}])
    features.task(feature, "T1", "in_progress")
    BrainstormStore(home).create("auth")
    work = WorkStore(home / "docs" / "sessions")
    top = work.create("work_track", purpose="Sort").session_id
    child = work.create("work_task", top, purpose="Move").session_id
    work.write_breadcrumb(create_breadcrumb("ask", "answer", [], [], None, 0, "m", {}), child)


def test_the_board_of_a_feature(client: TestClient, tmp_path: Path) -> None:
    project(tmp_path)
    found = client.get(f"/api/session/{keys(client)['hello-2025-01-09']}/charts").json()["board"]
    ((task,),) = [phase["tasks"] for phase in found["phases"]]
    assert (task["task_id"], task["status"], task["artifacts"]) == ("T1", "in_progress", ["x.py"])
    assert "\u202e" not in task["description"] + found["name"]
    assert [one["command"] for one in found["history"]] == ["task", "plan"]
    assert (found["status"], found["progress"], found["locks"]) == ("active", 0, [])


def test_a_plan_of_anything_is_shown(client: TestClient, tmp_path: Path) -> None:
    feature = FeatureStore(tmp_path).create("hello-2025-01-09")
    path = tmp_path / ".ai-session" / feature / "implementation-plan.yaml"
    path.write_text(
        "phases:\n  - name: [1]\n    tasks:\n      - task_id: {a: 1}\n        artifacts: {}\n        status: 7\n"
    )
    (phase,) = client.get(f"/api/session/{keys(client)[feature]}/charts").json()["board"]["phases"]
    assert (phase["name"], phase["tasks"][0]["task_id"], phase["tasks"][0]["status"]) == (
        "[1]",
        "{'a': 1}",
        "7",
    )


def test_work_is_drawn_as_its_tree_from_any_session_in_it(client: TestClient, tmp_path: Path) -> None:
    project(tmp_path)
    work = [row for row in rows(client) if row["kind"] == "work"]
    assert len(work) == 2
    for row in work:
        first, *_ = client.get(f"/api/session/{row['key']}/charts").json()["plots"]
        assert first["title"] == "Work over time"
        assert [one.text for one in parsed(first["svg"]).findall(f"{SVG}text")][:3:2] == ["Sort", "Move"]


def test_the_overview_has_what_projects_have(library: Library, tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / ".project-memory" / "brainstorm-sessions" / "bad.yaml").write_text("a: [")
    found = overview(library)
    (feature,), (brainstorm,) = found["features"], found["brainstorms"]
    assert (feature["progress"], feature["status"], feature["locks"]) == (0, "active", 0)
    assert "circle" in brainstorm["svg"]
    assert "1 breadcrumb" in found["work"]
    assert [one["title"] for one in found["year"]] == ["Sessions"]


def test_projects_of_one_name_are_not_taken_for_one(tmp_path: Path) -> None:
    for number, place in enumerate(("/a/app", "/b/app")):
        file = (
            tmp_path
            / "projects"
            / place.replace("/", "-")
            / f"0b3c8a52-0000-4000-8000-00000000000{number}.jsonl"
        )
        file.parent.mkdir(parents=True)
        usage = {"input_tokens": 1000 * (number + 1), "output_tokens": 0}
        content = [{"type": "text", "text": "x"}]
        message = {
            "id": "m",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "usage": usage,
        }
        record: dict[str, Any] = {
            "type": "assistant",
            "uuid": "u",
            "parentUuid": None,
            "sessionId": file.stem,
            "cwd": place,
        }
        record |= {"timestamp": datetime.now(UTC).isoformat(), "message": message}
        file.write_text(json.dumps(record) + "\n")
    found = overview(Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))]))
    svg = next(one["svg"] for one in found["plots"] if one["title"] == "Tokens by project")
    assert [one.text for one in parsed(svg).iter(f"{SVG}text")] == ["/b/app", "2,000", "/a/app", "1,000"]
    assert [one.get("data-name") for one in parsed(svg)] == ["/b/app", "/a/app"]


# -- side by side


def turn(prompt: str, answer: str, tool: str = "bash") -> list[dict[str, Any]]:
    call = {"id": "c", "tool": tool, "arguments": {"file_path": f"/{tool}.py"}}
    return [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": "first", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "assistant", "content": answer},
    ]


def test_two_sessions_side_by_side(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", [*turn("same", "yes"), *turn("then", "left \u202e")])
    write(tmp_path, "two", [*turn("same", "yes"), *turn("then", "right", "edit"), *turn("more", "end")])
    found = keys(client)
    answer = client.get(f"/api/session/{found['one']}/diff/{found['two']}").json()
    assert (answer["equal_turns"], answer["a"]["turns"], answer["b"]["turns"], answer["more"]) == (1, 2, 3, 0)
    assert (answer["a"]["key"], answer["b"]["title"]) == (found["one"], "same")
    left, right = answer["rows"][1]
    assert (left["prompt"], left["index"], left["calls"]) == ("then", 4, 1)
    assert "\u202e" not in left["answer"]
    assert right["answer"] == "right"
    assert answer["rows"][2][0] is None
    assert answer["tools"] == [{"name": "edit", "a": 0, "b": 1}, {"name": "bash", "a": 2, "b": 2}]
    assert client.get(f"/api/session/{found['one']}/diff/0").status_code == 404


def test_sessions_of_two_homes_are_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, name, turn("same", name))
    both = Library([Workspace(tmp_path / name, cache=str(tmp_path / "c")) for name in ("one", "two")])
    places = {place.ref.session_id: place for place, _ in both.known()}
    found = diffing.diff(places["one"], places["two"])
    assert (found["a"]["turns"], found["b"]["turns"], found["equal_turns"]) == (1, 1, 0)


def test_of_a_long_session_the_first_turns_are_shown(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffing, "TURNS", 2)
    write(tmp_path, "one", turn("a", "b") * 5)
    (place,) = [place for place, _ in library.known()]
    found = diffing.diff(place, place)
    assert (len(found["rows"]), found["more"], found["equal_turns"]) == (2, 3, 5)
