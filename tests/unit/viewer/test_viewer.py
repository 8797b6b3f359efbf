"""The answers to the page, over HTTP."""

import gzip
import json
import re
import shutil
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.model import SessionRef
from sessionary.viewer import finding, transcript
from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library, Place
from sessionary.workspace import Workspace
from sessionary.workspace.searching import Hits
from sessionary.xdg import data_folder

TOKEN = "t"
EDIT = {"file_path": "/a.py", "old_string": "a\nb\n", "new_string": "a\nc\n"}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "fix the **parser**", "timestamp": "2026-11-01T10:00:00Z"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_call", "id": "c", "name": "edit_file", "input": EDIT},
        ],
        "tool_calls": [{"id": "c", "tool": "edit_file", "arguments": EDIT}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "\n".join(map(str, range(100)))},
    {"role": "assistant", "content": "done"},
]


def write(
    home: Path, session: str, messages: list[dict[str, Any]], tail: bytes = b"", **metadata: Any
) -> Path:
    folder = home / "projects" / "-p" / "sessions" / session
    folder.mkdir(parents=True)
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    (folder / "transcript.jsonl").write_bytes(lines + tail)
    (folder / "metadata.json").write_text(json.dumps({"session_id": session, **metadata}))
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])


@pytest.fixture
def client(library: Library) -> TestClient:
    app = viewer_app(library, TOKEN, 80)
    return TestClient(
        app,
        base_url="http://localhost:80",
        headers={"authorization": f"Bearer {TOKEN}", "host": "localhost:80"},
    )


def events(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.split("\n\n") if block]
    return [(head.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for head, data in blocks]


def asked(path: str, headers: Sequence[tuple[bytes, bytes]] = (), query: bytes = b"") -> dict[str, Any]:
    """A request as the server hands it to the application."""
    own = [(b"host", b"localhost:80"), (b"authorization", f"Bearer {TOKEN}".encode())]
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": [*own, *headers],
        "asgi": {"spec_version": "2.3"},
    }


async def never() -> Any:
    """The browser stays."""
    await anyio.sleep_forever()


def listed(client: TestClient, since: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head of the list, and its rows."""
    head, *groups = map(json.loads, client.get(f"/api/sessions?since={since}").text.splitlines())
    return head, [row for group in groups for row in group]


def key(client: TestClient, session: str) -> str:
    return next(str(row["key"]) for row in listed(client)[1] if row["id"] == session)


def items(client: TestClient, session: str) -> list[Any]:
    found = events(client.get(f"/api/session/{key(client, session)}/stream").text)
    assert found[-1] == ("ready", {})
    return [item for name, data in found for item in data if name == "items"]


def test_the_list_has_every_session_with_its_health(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "a-good-one", MESSAGES, name="Parser")
    write(tmp_path, "b-torn", MESSAGES, tail=b'{"role": "us')
    head, found = listed(client)
    rows = {row["id"]: row for row in found}
    assert (head["total"], head["failures"]) == (2, [])
    assert rows["a-good-one"]["title"] == "Parser"
    assert rows["b-torn"]["health"] == "lost_data"


def test_no_more_rows_than_asked_for_the_newest_first(client: TestClient, tmp_path: Path) -> None:
    for number in range(5):
        said = {"role": "user", "content": "x", "timestamp": f"2026-11-01T10:00:{number:02}Z"}
        write(tmp_path, f"s{number}", [said])
    head, *groups = map(json.loads, client.get("/api/sessions?most=2").text.splitlines())
    assert head["total"] == 5
    assert [row["id"] for group in groups for row in group] == ["s4", "s3"]
    _, *groups = map(json.loads, client.get("/api/sessions").text.splitlines())
    assert sum(map(len, groups)) == 5


def test_a_long_list_is_compressed_and_its_first_rows_do_not_wait_for_the_last() -> None:
    rows = [json.dumps({"id": sha256(b"%d" % number).hexdigest()}).encode() for number in range(10_000)]

    class Long(Library):
        def listed(self, since: int = 0, wanted: Iterable[str] = ()) -> tuple[dict[str, Any], list[bytes]]:
            return {"total": len(rows)}, rows

    sent: list[bytes] = []

    async def take(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope = asked("/api/sessions", [(b"accept-encoding", b"gzip")])
    anyio.run(viewer_app(Long([]), TOKEN, 80), scope, never, take)
    _, *groups = map(json.loads, gzip.decompress(b"".join(sent)).splitlines())
    assert [row for group in groups for row in group] == list(map(json.loads, rows))
    unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16)
    early = b"".join(map(unpacked.decompress, sent[: len(sent) // 10]))
    assert early.count(b"\n") >= 2, "the head and the first group"


def test_events_are_sent_as_they_are(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", [{"role": "user", "content": "x" * 19_000}] * 20)
    stream = client.get(f"/api/session/{key(client, 'one')}/stream", headers={"accept-encoding": "gzip"})
    assert len(stream.content) > 200_000
    assert "content-encoding" not in stream.headers


STATIC = resources.files("sessionary.viewer") / "static"


def imported(*names: str) -> set[str]:
    """Modules of the page, and all that they import."""
    needed, found = list(names), set[str]()
    while needed:
        name = needed.pop()
        found.add(name)
        text = (STATIC / f"{name}.js").read_text("utf-8")
        needed += set(re.findall(r'^(?:import|export) .* from "\./(\w+)\.js";', text, re.MULTILINE)) - found
    return found


def test_the_page_loads_early_what_the_list_needs() -> None:
    page = (STATIC / "index.html").read_text("utf-8")
    found = imported("main")
    assert set(re.findall(r'"modulepreload" href="/static/(\w+)\.js"', page)) == found - {"main", "start"}
    assert re.findall(r'src="/static/(\w+)\.js"', page) == ["start", "main"]
    assert imported("start") == {"start", "api"}, "its request waits for these"
    assert "session" not in found


def test_the_page_asks_for_all_modules_of_a_session_at_once() -> None:
    line = next(
        one for one in (STATIC / "main.js").read_text("utf-8").splitlines() if one.startswith("const SESSION")
    )
    assert set(re.findall(r'"(\w+)"', line)) == imported("session") - imported("main")


def test_the_head_of_the_list_has_the_rows_that_the_address_names(client: TestClient, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path, name, MESSAGES)
    names = {row["id"]: row for row in listed(client)[1]}
    keys = ",".join(["gone", names["two"]["key"], names["one"]["key"]])
    head = json.loads(client.get(f"/api/sessions?first={keys}").text.splitlines()[0])
    assert head["wanted"] == [names["two"], names["one"]]
    assert listed(client)[0]["wanted"] == []


def test_a_key_stays_the_same_and_a_wrong_one_is_answered(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    first = key(client, "one")
    assert client.post("/api/refresh", json={}).json() == {"version": 1}
    assert key(client, "one") == first
    gone = client.get("/api/session/0123/health")
    assert gone.status_code == 404
    assert "reload" in gone.json()["hint"]


def test_a_refresh_says_whether_any_row_changed(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    assert listed(client)[0]["version"] == 1
    write(tmp_path, "two", MESSAGES)
    assert client.post("/api/refresh", json={}).json() == {"version": 2}
    assert listed(client)[0]["total"] == 2


def test_a_later_list_has_only_the_rows_that_changed(client: TestClient, tmp_path: Path) -> None:
    folders = [write(tmp_path, name, MESSAGES) for name in ("one", "two")]
    write(tmp_path, "gone", MESSAGES)
    assert len(listed(client)[1]) == 3
    with (folders[1] / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "more"}\n')
    shutil.rmtree(tmp_path / "projects" / "-p" / "sessions" / "gone")
    client.post("/api/refresh", json={})
    head, rows = listed(client, since=1)
    assert (head["version"], head["total"]) == (2, 2)
    assert [(row["id"], row["messages"]) for row in rows] == [("two", 5)]
    assert listed(client, since=2)[1] == []


def test_a_session_that_changed_since_it_was_open_is_unread(client: TestClient, tmp_path: Path) -> None:
    folders = [write(tmp_path, name, MESSAGES) for name in ("one", "two")]

    def unread(since: int = 0) -> dict[str, bool]:
        client.post("/api/refresh", json={})
        return {row["id"]: row["unread"] for row in listed(client, since)[1]}

    assert unread() == {"one": False, "two": False}
    assert client.post(f"/api/session/{key(client, 'one')}/read", json={}).json() == {"version": 1}
    # A time far ahead of the clock does not count.
    later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    for folder in folders:
        with (folder / "transcript.jsonl").open("ab") as file:
            file.write(json.dumps({"role": "user", "content": "x", "timestamp": later}).encode() + b"\n")
    assert unread() == {"one": True, "two": True}
    version = client.post(f"/api/session/{key(client, 'one')}/read", json={}).json()["version"]
    assert unread(since=version - 1) == {"one": False}
    assert unread() == {"one": False, "two": True}
    assert client.post("/api/session/0123/read", json={}).status_code == 404


def test_all_sessions_can_be_marked_as_read(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    client.post(f"/api/session/{key(client, 'one')}/read", json={})
    time.sleep(0.01)
    new = {"role": "user", "content": "x", "timestamp": datetime.now(UTC).isoformat()}
    write(tmp_path, "two", [new])
    client.post("/api/refresh", json={})
    assert [row["unread"] for row in listed(client)[1]] == [True, False]
    assert client.post("/api/read", json={}).status_code == 200
    assert [row["unread"] for row in listed(client)[1]] == [False, False]


def test_a_damaged_file_of_read_sessions_is_reported_with_the_list(
    client: TestClient, tmp_path: Path
) -> None:
    write(tmp_path, "one", MESSAGES)
    data = Path(data_folder() or "")
    data.mkdir(parents=True)
    (data / "seen.json").write_text("{")
    head, rows = listed(client)
    assert [row["unread"] for row in rows] == [False]
    assert "seen.json is damaged" in head["failures"][0]["message"]


def test_a_read_only_server_keeps_no_read_sessions(library: Library, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    headers = {"authorization": f"Bearer {TOKEN}", "host": "localhost:80"}
    client = TestClient(viewer_app(library, TOKEN, 80, read_only=True), headers=headers)
    assert listed(client)[0]["read_only"] is True
    for path in ("/api/read", f"/api/session/{key(client, 'one')}/read"):
        refused = client.post(path, json={})
        assert (refused.status_code, "--read-only" in refused.json()["hint"]) == (409, True)
    assert not Path(data_folder() or "", "seen.json").exists()


def test_stars_and_tags_are_in_the_rows(client: TestClient, library: Library, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    workspace, ref = library.place(key(client, "one"))
    workspace.tag(ref, ["bug"])
    workspace.star(ref)
    assert client.post("/api/refresh", json={}).json() == {"version": 2}
    (row,) = listed(client, since=1)[1]
    assert (row["tags"], row["starred"]) == (["bug"], True)


def test_every_kind_is_in_one_list(tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    BrainstormStore(tmp_path).create("sign-in", questions=["Which kind of sign-in?"])
    FeatureStore(tmp_path).create("login-2026-01-02", name="Login", description="Let people in")
    WorkStore(tmp_path / "docs" / "sessions").create("pm")
    folder = tmp_path / "projects" / "-p"
    record = {"type": "user", "uuid": "u", "sessionId": "c", "message": {"role": "user", "content": "hi"}}
    (folder / "0b3c8a52-0000-4000-8000-000000000001.jsonl").write_text(json.dumps(record) + "\n")
    records = RecordJournal(tmp_path / "langgraph", "langgraph", "thread", durability="none")
    records.change(lambda _: Change(add=[{"role": "user", "content": "hi"}]))
    workspaces = [Workspace(tmp_path, cache=str(tmp_path / "cache"))]
    rows = [json.loads(row) for row in Library(workspaces).listed()[1]]
    assert {row["kind"] for row in rows} == {
        "amplifier",
        "brainstorm",
        "feature",
        "work",
        "claude_code",
        "records",
    }


def test_folders_that_are_created_while_the_server_runs_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(project)
    library = Library([Workspace({"amplifier": tmp_path / ".amplifier"}, cache=str(tmp_path / "cache"))])
    client = TestClient(
        viewer_app(library, TOKEN, 80), headers={"authorization": f"Bearer {TOKEN}", "host": "localhost:80"}
    )
    assert listed(client)[1] == []
    WorkStore(project / "docs" / "sessions").create("fix")
    BrainstormStore(project).create("idea")
    FeatureStore(project).create(name="Sign in")
    write(tmp_path / ".amplifier", "one", MESSAGES)
    file = tmp_path / ".claude" / "projects" / "-p" / "0b3c8a52-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    record = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": file.stem}
    file.write_text(json.dumps(record | {"message": {"role": "user", "content": "hi"}}) + "\n")
    client.post("/api/refresh", json={})
    kinds = {row["kind"]: row["id"] for row in listed(client)[1]}
    assert {row["cwd"] for row in listed(client)[1] if row["kind"] in ("work", "brainstorm", "feature")} == {
        str(project)
    }
    assert kinds.keys() == {"work", "brainstorm", "feature", "amplifier", "claude_code"}
    assert len(library.workspaces[0].layouts) == len({id(one) for one in library.workspaces[0].layouts})
    assert client.get(f"/api/session/{key(client, kinds['work'])}/health").status_code == 200
    client.post("/api/refresh", json={})
    assert len(listed(client)[1]) == 5


def test_homes_are_listed_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, "same-id", MESSAGES)
    both = Library([Workspace(tmp_path / name, cache=str(tmp_path / "c")) for name in ("one", "two")])
    rows = [json.loads(row) for row in both.listed()[1]]
    assert [row["id"] for row in rows] == ["same-id", "same-id"]
    assert len({row["key"] for row in rows}) == 2


def test_a_transcript_arrives_in_its_order_with_long_results_cut(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    prompt, call, result, answer = items(client, "one")
    assert (prompt["origin"], prompt["turn"], prompt["parts"][0]["text"]) == (
        "person",
        1,
        "fix the **parser**",
    )
    thinking, edit = call["parts"]
    assert thinking == {"kind": "thinking", "text": "hm"}
    assert (edit["name"], edit["telling"], edit["added"], edit["removed"]) == ("edit_file", "/a.py", 1, 1)
    assert edit["text"] == " a\n-b\n+c\n "
    shown = result["parts"][0]
    assert (shown["text"], shown["tail"], shown["hidden"]) == ("0\n1\n2\n3\n4\n5\n6\n7", "96\n97\n98\n99", 88)
    assert answer["index"] == 3


def test_a_record_that_is_not_a_message_is_shown_as_it_is_stored(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", [{"event": "started", "by": "x"}])
    (part,) = next(item["parts"] for item in items(client, "one") if "parts" in item)
    assert (part["kind"], json.loads(part["text"])) == ("other", {"event": "started", "by": "x"})


def test_the_whole_of_a_message_is_one_request_away(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    found = client.get(f"/api/session/{key(client, 'one')}/message/2").json()
    assert found["at"] == 2
    assert found["parts"][0]["text"].split("\n") == [str(number) for number in range(100)]
    assert client.get(f"/api/session/{key(client, 'one')}/message/99").status_code == 404


def test_damage_is_shown_in_place_and_hides_nothing(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES[:1], tail=b'broken\n{"role": "assistant", "content": "after"}\n')
    first, damage, after = items(client, "one")
    assert first["index"] == 0
    assert (damage["problem"], damage["line"]) == ("lost_data", 2)
    assert after["parts"][0]["text"] == "after"
    problems = client.get(f"/api/session/{key(client, 'one')}/health").json()["problems"]
    assert "bad_json" in {problem["code"] for problem in problems}


HOSTILE = (
    '<script>alert(1)</script><img src="http://evil.example/x" onerror=alert(1)><svg onload=alert(1)>'
    "[a](javascript:alert(1)) [b](data:text/html,x) ![i](http://evil.example/y) <a href='vbscript:x'>c</a> "
    '\x1b]0;title\x07\u202eevil\u202c <iframe src="//evil.example"> <style>*{display:none}</style> <form><input>'
)


def test_a_hostile_transcript_is_inert(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", [{"role": "user", "content": HOSTILE}], name=HOSTILE)
    text = items(client, "one")[0]["parts"][0]["text"]
    assert "\x1b" not in text
    assert "\u202e" not in text
    (page,) = client.post("/api/render", json=[HOSTILE]).json()
    assert "\u202e" not in page
    opened = [part.split(">")[0].split()[0] for part in page.split("<")[1:]]
    assert set(opened) <= {"p", "/p", "a", "/a"}
    assert 'href="javascript' not in page
    assert 'href="data' not in page
    row = listed(client)[1][0]
    assert "\u202e" not in row["title"]
    assert "\x1b" not in row["title"]


def test_markdown_and_code_are_drawn(client: TestClient) -> None:
    text = "# T\n\n`x` **b** [l](https://example.com)\n\n```python\nimport os\n```\n\n| a |\n|---|\n| 1 |\n"
    (page,) = client.post("/api/render", json=[text]).json()
    assert "<h1>T</h1>" in page
    assert '<span class="kn">import</span>' in page
    assert "<td>1</td>" in page
    assert 'href="https://example.com"' in page
    assert 'rel="noreferrer noopener nofollow"' in page


def test_huge_and_invalid_bodies_are_refused(client: TestClient) -> None:
    assert client.post("/api/render", json=["x" * 2_000_001]).status_code == 413
    wrong = client.post("/api/render", content="{", headers={"content-type": "application/json"})
    assert wrong.status_code == 400
    assert client.post("/api/render", json=["x" * 500_000]).json()[0].startswith("<pre>")


def test_a_search_is_streamed_and_marks_what_it_found(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    write(tmp_path, "two", [{"role": "user", "content": "something else"}])
    found = events(client.get("/api/search?q=PARSER").text)
    assert [name for name, _ in found] == ["hit", "done"]
    hit = found[0][1]
    assert (hit["key"], hit["index"], hit["person"]) == (key(client, "one"), 0, True)
    assert hit["pieces"] == ["fix the **", "parser", "**"]
    assert found[1][1] | {"bytes": 0} == {
        "hits": 1,
        "sessions": 2,
        "bytes": 0,
        "complete": True,
        "damaged": 0,
    }


def test_more_hits_than_are_shown_are_not_called_complete(client: TestClient, tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path, f"s{number:02}", [{"role": "user", "content": "needle"}] * 10)
    found = events(client.get("/api/search?q=needle").text)
    assert len(found) == finding.MOST + 1
    assert found[-1][1]["complete"] is False


def test_words_that_cannot_be_searched_for_are_answered_with_the_remedy(client: TestClient) -> None:
    ((name, data),) = events(client.get("/api/search?q=NOT").text)
    assert name == "failed"
    assert data["hint"]


def test_a_search_whose_reader_left_stops(library: Library, tmp_path: Path) -> None:
    for number in range(40):
        write(tmp_path, f"s{number:02}", [{"role": "user", "content": "needle " * 10}] * 200)

    async def one_hit() -> tuple[float, int]:
        found = finding.stream(library, "needle")
        await anext(found)
        began = time.monotonic()
        await found.aclose()
        return time.monotonic() - began, threading.active_count()

    took, _ = anyio.run(one_hit)
    assert took < 0.2


def test_the_server_stops_a_search_when_the_page_ends_its_request(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        write(tmp_path, f"s{number:02}", [{"role": "user", "content": "needle " * 10}] * 200)
    begun: list[Hits] = []
    search = Workspace.search

    def noted(*arguments: Any, **options: Any) -> Hits:
        begun.append(search(*arguments, **{**options, "limit": 0}))
        return begun[-1]

    monkeypatch.setattr(Workspace, "search", noted)
    app = viewer_app(library, TOKEN, 80)
    scope = asked("/api/search", query=b"q=needle")

    async def one_hit() -> None:
        seen = anyio.Event()

        async def receive() -> dict[str, Any]:
            await seen.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if b"event: hit" in message.get("body", b""):
                seen.set()

        with anyio.fail_after(10):
            await app(scope, receive, send)

    anyio.run(one_hit)
    (hits,) = begun
    assert not hits.is_complete
    assert 0 < hits.count < 40 * 200


def test_a_superseded_search_ends_within_the_window_that_it_reads(tmp_path: Path) -> None:
    write(tmp_path, "one", [{"role": "user", "content": "x" * 1000}] * 2000)
    hits = Workspace(tmp_path, cache=str(tmp_path / "c")).search("absent")
    hits.stop()
    assert list(hits) == []
    assert hits.stats.sessions == 0
    assert not hits.is_complete


def following(library: Library, session: str) -> Iterator[Any]:
    """Not a fixture: the events of a followed session, one after the other, while a test writes to it."""
    row = next(row for row in map(json.loads, library.listed()[1]) if row["id"] == session)
    place = library.place(row["key"])
    stream = transcript.stream(place, lambda: library.row(place), follow=lambda: True)
    with anyio.from_thread.start_blocking_portal() as portal:
        try:
            while True:
                yield from events(portal.call(stream.__anext__).decode())
        finally:
            portal.call(stream.aclose)


def test_a_line_of_another_process_is_visible_within_300_ms(library: Library, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES)
    stream = following(library, "one")
    assert [name for name, _ in (next(stream), next(stream))] == ["items", "ready"]
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "and')
        file.flush()
        time.sleep(0.25)
        file.write(b' now"}\n')
    began = time.monotonic()
    name, data = next(stream)
    took = time.monotonic() - began
    assert (name, data[0]["index"], data[0]["turn"], data[0]["parts"][0]["text"]) == (
        "items",
        4,
        2,
        "and now",
    )
    assert took < 0.3
    assert next(stream)[1]["messages"] == 5
    stream.close()  # type: ignore[attr-defined]


def test_a_line_that_arrives_with_the_begin_of_the_next_is_sent_once(
    library: Library, tmp_path: Path
) -> None:
    folder = write(tmp_path, "one", MESSAGES)
    stream = following(library, "one")
    assert [name for name, _ in (next(stream), next(stream))] == ["items", "ready"]
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "first"}\n{"role": "us')
        file.flush()
        sent = [next(stream), next(stream)]
        time.sleep(0.5)
        file.write(b'er", "content": "second"}\n')
    sent += [next(stream), next(stream)]
    texts = [[item["parts"][0]["text"] for item in data] for name, data in sent if name == "items"]
    assert texts == [["first"], ["second"]]
    stream.close()  # type: ignore[attr-defined]


def test_a_replaced_transcript_is_sent_again(library: Library, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES)
    stream = following(library, "one")
    assert [name for name, _ in (next(stream), next(stream))] == ["items", "ready"]
    other = folder / "new"
    other.write_bytes(b'{"role": "user", "content": "rewound"}\n')
    other.rename(folder / "transcript.jsonl")
    assert next(stream) == ("reset", {})
    name, data = next(stream)
    assert (name, data[0]["index"], data[0]["parts"][0]["text"]) == ("items", 0, "rewound")
    stream.close()  # type: ignore[attr-defined]


def test_the_command_to_continue_is_refused_with_the_reason(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    found = client.get(f"/api/session/{key(client, 'one')}/resume")
    assert found.status_code == 200
    assert found.json()["command"][-1].endswith("one")


def test_a_problem_goes_when_its_line_is_completed_or_removed(library: Library, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES, tail=b'{"role": "user", "con')
    stream = following(library, "one")
    (_, shown), ready = next(stream), next(stream)
    (torn,) = [item for item in shown if "problem" in item]
    assert (torn["line"], ready[0]) == (5, "ready")
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'tent": "whole now"}\n')
    name, data = next(stream)
    assert (name, data[0]["at"], data[0]["parts"][0]["text"]) == ("items", 4, "whole now")
    assert next(stream) == ("problems", {"gone": [torn], "added": []})
    stream.close()  # type: ignore[attr-defined]


def test_a_permanently_damaged_line_is_reported_while_following(library: Library, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES)
    stream = following(library, "one")
    assert [name for name, _ in (next(stream), next(stream))] == ["items", "ready"]
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'broken\n{"role": "user", "content": "after"}\n')
    name, data = next(stream)
    assert (name, data[0]["parts"][0]["text"]) == ("items", "after")
    name, data = next(stream)
    assert (name, data["gone"], [one["line"] for one in data["added"]]) == ("problems", [], [5])
    assert next(stream)[0] == "row"
    stream.close()  # type: ignore[attr-defined]


class Counted:
    """A workspace whose session never changes; it counts how often that is looked at."""

    reads, settled = 0, True

    def __init__(self) -> None:
        self.polls = 0

    def follower(self, _: SessionRef) -> "Counted":
        return self

    def poll(self) -> Iterator[Any]:
        self.polls += 1
        return iter(())


def test_only_an_open_session_is_looked_at_every_200_ms() -> None:
    counted = Counted()
    place = Place(counted, SessionRef("amplifier", "one", "/none"))  # type: ignore[arg-type]

    async def looks() -> tuple[int, int]:
        stream = transcript.stream(place, dict, follow=lambda: True)
        assert events((await anext(stream)).decode()) == [("ready", {})]
        async with anyio.create_task_group() as group:
            group.start_soon(anext, stream)  # nothing is sent while nothing changes
            await anyio.sleep(1.1)
            group.cancel_scope.cancel()
        before = counted.polls
        await anyio.sleep(0.5)
        return before, counted.polls

    before, after = anyio.run(looks)
    assert 2 <= before <= 1 + 1.1 / transcript.PERIOD
    assert after == before
