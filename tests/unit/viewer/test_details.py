"""What the drawer of a session shows, over HTTP: damaged places, files, usage, branches, stored records, images."""

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard
from starlette.testclient import TestClient

from sessionary.model import Message, Problem, Severity, Text
from sessionary.transcript.typed import Numbered
from sessionary.viewer import details
from sessionary.viewer.branches import branches_of, document_of
from sessionary.viewer.images import TYPES, Image, images_in
from sessionary.workspace.excerpts import excerpt_of
from tests.unit.layouts.agents.test_opencode import Store
from tests.unit.layouts.agents.test_opencode import text as words
from tests.unit.viewer.test_viewer import MESSAGES, client, items, key, library, write

__all__ = ["client", "library"]  # fixtures

CLAUDE = "0b3c8a52-0000-4000-8000-000000000001"


def png(width: int = 2, height: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x20\x80\xf0" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def block(data: bytes = b"", kind: str = "image/png") -> dict[str, Any]:
    encoded = base64.b64encode(data or png()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}}


def said(uuid: str, parent: str | None, role: str, content: Any, second: int, **more: Any) -> dict[str, Any]:
    """A record of Claude Code."""
    message = {"role": role, "content": content, **more}
    if role == "assistant":
        message |= {"id": f"msg_{uuid}", "model": "claude-sonnet-4-5"}
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": CLAUDE,
        "cwd": "/srv/app",
        "timestamp": f"2026-11-02T10:00:{second:02}.000Z",
        "message": message,
    }


def claude(home: Path, records: list[dict[str, Any]], name: str = CLAUDE) -> Path:
    file = home / "projects" / "-work-app" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    return file


def get(client: TestClient, session: str, what: str) -> Any:
    answer = client.get(f"/api/session/{key(client, session)}/{what}")
    assert answer.status_code == 200, answer.text
    return answer.json()


# -- health


def test_the_bytes_of_a_damaged_place_are_shown_as_they_are_stored(
    client: TestClient, tmp_path: Path
) -> None:
    good = json.dumps(MESSAGES[0]).encode() + b"\n"
    write(tmp_path, "one", MESSAGES[:1], tail=b'{"role": "user", "content": "\xff\xfe"}\n')
    problems = {one["code"]: one for one in get(client, "one", "health")["problems"]}
    seen = problems["bad_utf8"]
    assert (seen["line"], seen["byte"]) == (2, len(good))
    shown, (begin, end) = bytes.fromhex(seen["hex"]["bytes"]), seen["hex"]["mark"]
    stored = (tmp_path / "projects/-p/sessions/one/transcript.jsonl").read_bytes()
    start = seen["hex"]["start"]
    assert shown == stored[start : start + len(shown)]
    assert stored[start + begin : start + end] == b'{"role": "user", "content": "\xff\xfe"}'
    assert "\\xff\\xfe" in "".join(seen["text"])
    assert seen["json"] is None


def test_a_long_damaged_line_is_shown_around_its_place(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES[:1], tail=b'{"role": "user", "content": "' + b"x" * 300_000 + b"\n")
    (seen,) = [one for one in get(client, "one", "health")["problems"] if "hex" in one][:1]
    assert len(seen["hex"]["bytes"]) / 2 <= 2 * details.AROUND + details.LONGEST_SPAN + 16
    assert seen["hex"]["after"] > 60_000
    assert len("".join(seen["text"])) < 1000


def test_a_problem_without_a_place_or_of_a_file_that_shrank_shows_none(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_bytes(b"one\ntwo\n")

    def problem(byte: int | None) -> Problem:
        return Problem("x", Severity.lost_data, str(file), 2, byte, "m", None, 2)

    assert excerpt_of(problem(None)) is None
    assert excerpt_of(problem(99)) is None
    found = excerpt_of(problem(5))
    assert found is not None
    assert (found.start, found.data, found.begin, found.end, found.whole) == (4, b"two", 1, 3, True)


def test_a_place_in_a_compressed_file_is_shown_from_its_text(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl.zst"
    file.write_bytes(zstandard.compress(b"a" * 100_000 + b"\n{broken\nlast\n"))
    found = excerpt_of(Problem("x", Severity.lost_data, str(file), 2, 100_001, "m", None, 7))
    assert found is not None
    assert (found.start, found.data, found.end) == (100_001, b"{broken", 7)


# -- files and usage


def test_files_are_those_that_calls_name_with_the_messages_that_do(
    client: TestClient, tmp_path: Path
) -> None:
    def call(number: int, name: str, path: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": f"t{number}", "name": name, "input": {"file_path": path}}]

    claude(
        tmp_path,
        [
            said("u", None, "user", "hi", 1),
            said("a", "u", "assistant", call(1, "Read", "/srv/app/a.py"), 2),
            said("b", "a", "assistant", call(2, "Edit", "/srv/app/a.py"), 3),
            said("c", "b", "assistant", call(3, "Edit", "/elsewhere/b.py"), 4),
        ],
    )
    found = get(client, CLAUDE, "files")
    assert found["files"] == [
        {"file": "a.py", "calls": 2, "tools": {"Read": 1, "Edit": 1}, "at": [1, 2]},
        {"file": "/elsewhere/b.py", "calls": 1, "tools": {"Edit": 1}, "at": [3]},
    ]
    assert found["tools"] == {"Edit": 2, "Read": 1}


def test_usage_is_by_model_and_includes_sub_agents(client: TestClient, tmp_path: Path) -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    file = claude(
        tmp_path, [said("u", None, "user", "hi", 1), said("a", "u", "assistant", "yes", 2, usage=usage)]
    )
    below = file.with_suffix("") / "subagents" / "agent-1.jsonl"
    below.parent.mkdir(parents=True)
    agent = [
        said("s", None, "user", "look", 3),
        said("t", "s", "assistant", "seen", 4, usage={"input_tokens": 7}),
    ]
    below.write_text("".join(json.dumps(one | {"agentId": "1", "isSidechain": True}) + "\n" for one in agent))
    found = get(client, CLAUDE, "usage")
    (model,) = found["models"]
    assert (model["model"], model["input"], model["output"]) == ("claude-sonnet-4-5", 1_000_000, 100_000)
    assert model["cost"] == found["total"]["cost"] > 0
    assert [day["input"] for day in found["days"]] == [1_000_000]
    assert (found["agents"], found["family"]["input"]) == (1, 1_000_007)
    assert found["states_usage"] is True


# -- branches


TREE = [
    said("u1", None, "user", "begin", 1),
    said("a1", "u1", "assistant", "begun", 2),
    said("u2", "a1", "user", "first way", 3),
    said("a2", "u2", "assistant", "no", 4),
    said("u3", "a2", "user", "deeper", 5),
    said("a3", "u3", "assistant", "no again", 6),
    said("u3b", "a2", "user", "deeper, otherwise", 7),
    said("a3b", "u3b", "assistant", "still no", 8),
    said("u4", "a1", "user", "second way", 9),
    said("a4", "u4", "assistant", "yes", 10),
]


def test_branches_are_a_tree_by_their_parents(client: TestClient, tmp_path: Path) -> None:
    claude(tmp_path, TREE)
    line, first, second = get(client, CLAUDE, "branches")
    assert (line["number"], line["parent"], line["messages"], line["shown"]) == (0, None, 4, [[0, 1], [8, 9]])
    assert (first["title"], first["parent"], first["after"], first["messages"]) == ("first way", 0, 1, 4)
    assert first["shown"] == [[0, 5]]
    assert (second["title"], second["parent"], second["after"]) == ("deeper, otherwise", 1, 3)
    assert second["shown"] == [[0, 3], [6, 7]]
    numbers = [item["at"] for item in items(client, CLAUDE) if "at" in item]
    assert numbers == list(range(10))


def test_a_session_without_branches_has_one(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    (line,) = get(client, "one", "branches")
    assert line["shown"] == [[0, 3]]


def aside(text: str, **more: Any) -> Numbered:
    return Numbered(0, 0, Message("user", "person", (Text(text),), **more), outside=True)


def inside(text: str, **more: Any) -> Numbered:
    return Numbered(0, 0, Message("user", "person", (Text(text),), **more))


def test_a_record_without_a_parent_follows_the_previous_one() -> None:
    shown = document_of(branches_of([inside("a"), aside("b"), aside("c"), inside("d"), aside("e")]))
    assert [(one["number"], one["after"], one["messages"]) for one in shown] == [
        (0, None, 2),
        (1, 0, 2),
        (2, 3, 1),
    ]
    assert shown[1]["shown"] == [(0, 2)]
    assert shown[2]["shown"] == [(0, 0), (3, 4)]


def test_ids_lead_to_the_parent_wherever_it_is_stored() -> None:
    found = [inside("a", id="1"), inside("b", id="2", parent="1"), aside("c", id="3", parent="1")]
    shown = document_of(branches_of([*found, aside("d", id="4", parent="2"), aside("e", parent="3")]))
    assert [(one["after"], one["shown"]) for one in shown[1:]] == [
        (0, [(0, 0), (2, 2), (4, 4)]),
        (1, [(0, 1), (3, 3)]),
    ]


def test_a_branch_may_begin_before_the_conversation() -> None:
    shown = document_of(branches_of([aside("a"), inside("b")]))
    assert (shown[1]["after"], shown[1]["shown"]) == (None, [(0, 0)])


# -- stored records


def numbers(page: Any) -> list[int]:
    return [one["number"] for one in page["records"]]


def test_records_are_paged_as_they_are_stored(client: TestClient, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": f"message {number}"} for number in range(details.RECORDS + 3)]
    folder = write(tmp_path, "one", lines)
    first = get(client, "one", "records")
    assert [json.loads(one["text"]) for one in first["records"]] == lines[: details.RECORDS]
    assert (first["file"], first["unit"], first["first"], first["next"]) == (
        "transcript.jsonl",
        "line",
        1,
        51,
    )
    assert [one["name"] for one in first["files"]] == ["transcript.jsonl", "metadata.json"]
    last = get(client, "one", f"records?from={first['next']}")
    assert (numbers(last), last["next"]) == ([51, 52, 53], None)
    assert last["records"][0]["byte"] == (folder / "transcript.jsonl").read_bytes().index(
        b'{"role": "user", "content": "message 50"'
    )
    assert numbers(get(client, "one", "records?line=53")) == [53]
    assert numbers(get(client, "one", "records?from=999")) == []


def test_records_that_are_not_a_message_and_damaged_ones_are_shown(
    client: TestClient, tmp_path: Path
) -> None:
    file = claude(tmp_path, [said("u", None, "user", "hi", 1)])
    file.write_bytes(b'{"type": "summary", "summary": "a fact"}\n' + file.read_bytes() + b"\0\0\0\n{torn")
    texts = [one["text"] for one in get(client, CLAUDE, "records")["records"]]
    assert json.loads(texts[0])["summary"] == "a fact"
    assert json.loads(texts[1])["uuid"] == "u"
    assert texts[2:] == ["\\x00\\x00\\x00", "{torn"]


def test_a_document_comes_in_pieces_and_a_file_by_its_name(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES, note="\n".join("x" * 99 for _ in range(500)))
    page = get(client, "one", "records?file=metadata.json&line=3")
    assert (page["file"], page["unit"], numbers(page)[0]) == ("metadata.json", "piece", 1)
    stored = tmp_path / "projects" / "-p" / "sessions" / "one" / "metadata.json"
    assert "".join(one["text"] for one in page["records"]) == stored.read_text()


@pytest.mark.parametrize("name", ["../two/transcript.jsonl", "/etc/passwd", "none.jsonl", "..", ".lock"])
def test_only_the_files_of_the_session_are_shown(client: TestClient, tmp_path: Path, name: str) -> None:
    write(tmp_path, "one", MESSAGES)
    write(tmp_path, "two", MESSAGES)
    answer = client.get(f"/api/session/{key(client, 'one')}/records", params={"file": name})
    assert (answer.status_code, answer.json()["message"]) == (404, f"the session has no file {name}")


def test_the_records_of_a_compressed_file_are_those_of_its_text(client: TestClient, tmp_path: Path) -> None:
    session = "0b3c8a52-0000-4000-8000-000000000002"
    file = tmp_path / "sessions" / "2026" / "01" / "01" / f"rollout-2026-01-01T00-00-00-{session}.jsonl.zst"
    file.parent.mkdir(parents=True)
    meta = {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": session, "cwd": "/x"},
    }
    text = json.dumps(meta).encode() + b"\n" + b"x" * 200_000 + b"\n{torn"
    file.write_bytes(zstandard.compress(text))
    page = get(client, session, "records")
    assert [(one["number"], one["byte"], one["size"]) for one in page["records"]] == [
        (1, 0, text.index(b"\n")),
        (2, text.index(b"x" * 200), 200_000),
        (3, len(text) - 5, 5),
    ]
    assert (page["records"][1]["cut"], page["records"][2]["text"]) == (180_000, "{torn")


def test_messages_name_their_file_where_it_changes(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)
    assert [one.get("file") for one in items(client, "one")] == ["transcript.jsonl", None, None, None]


def test_a_session_in_a_database_shows_every_row_of_it(client: TestClient, tmp_path: Path) -> None:
    store = Store(tmp_path / "opencode.db")
    store.session("ses_1")
    store.message("ses_1", "m1", "user", words("hello"))
    store.message("ses_1", "m2", "user", words("again"))
    store.session("ses_2")
    store.message("ses_2", "m3", "user", words("of another session"))
    page = get(client, "ses_1", "records")
    assert ([one["name"] for one in page["files"]], page["unit"]) == (["opencode.db"], "row")
    tables = [one["row"].partition("/")[0] for one in page["records"]]
    assert (tables, numbers(page)) == (["message", "message", "part", "part", "session"], [1, 2, 3, 4, 5])
    rows = [json.loads(one["text"]) for one in page["records"]]
    assert [row["id"] for row in rows[:2]] == ["m1", "m2"]
    assert json.loads(rows[3]["data"])["text"] == "again"
    assert rows[4]["id"] == "ses_1"
    chosen = [one["row"] for one in items(client, "ses_1")]
    assert chosen == ["message/m1", "message/m2"]
    assert numbers(get(client, "ses_1", f"records?row={chosen[1]}")) == [2, 3, 4, 5]
    assert numbers(get(client, "ses_1", f"records?row={chosen[1]}&from=4")) == [4, 5]
    assert numbers(get(client, "ses_1", "records?row=message/gone")) == [1, 2, 3, 4, 5]


def test_rows_are_paged(client: TestClient, tmp_path: Path) -> None:
    store = Store(tmp_path / "opencode.db")
    store.session("ses_1")
    for number in range(60):
        store.message("ses_1", f"m{number:02}", "user", words("hello"))
    page = get(client, "ses_1", "records")
    assert (numbers(page), page["next"]) == (list(range(1, 51)), 51)
    last = get(client, "ses_1", "records?from=101")
    assert (numbers(last), last["next"]) == (list(range(101, 122)), None)


def test_a_huge_record_is_cut_and_control_characters_are_shown(client: TestClient, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", [{"role": "user", "content": "x" * 90_000 + "\u202e"}])
    (record,) = get(client, "one", "records")["records"]
    size = (folder / "transcript.jsonl").stat().st_size - 1
    assert (record["size"], len(record["text"]), record["cut"]) == (size, 20_000, size - 20_000)


# -- images


def test_images_of_a_prompt_and_of_a_result_are_fetched_one_by_one(
    client: TestClient, tmp_path: Path
) -> None:
    two, jpeg = png(3, 1), b"\xff\xd8\xff\xe0 as it is"
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block(jpeg, "image/jpeg"), block(two)]}
    claude(
        tmp_path,
        [
            said("u", None, "user", [{"type": "text", "text": "see"}, block()], 1),
            said("a", "u", "assistant", [{"type": "tool_use", "id": "t", "name": "Shot", "input": {}}], 2),
            said("r", "a", "user", [result], 3),
        ],
    )
    shown = [[part.get("images") for part in item["parts"]] for item in items(client, CLAUDE)]
    assert shown == [[None, [0]], [None], [[0, 1]]]
    base = f"/api/session/{key(client, CLAUDE)}/message"
    for path, kind, data in (
        ("0/image/0", "png", png()),
        ("2/image/0", "jpeg", jpeg),
        ("2/image/1", "png", two),
    ):
        answer = client.get(f"{base}/{path}")
        assert (answer.headers["content-type"], answer.content) == (f"image/{kind}", data)
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get(f"{base}/0/image/1").status_code == 404
    assert client.get(f"{base}/9/image/0").status_code == 404


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/html", "IMAGE/PNG; x"])
def test_a_document_that_calls_itself_an_image_is_not_shown(
    client: TestClient, tmp_path: Path, kind: str
) -> None:
    claude(tmp_path, [said("u", None, "user", [block(b"<svg onload=alert(1)>", kind)], 1)])
    answer = client.get(f"/api/session/{key(client, CLAUDE)}/message/0/image/0")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"


def test_an_image_with_damaged_base64_is_refused(client: TestClient, tmp_path: Path) -> None:
    broken = block()
    broken["source"]["data"] = "%%%"
    claude(tmp_path, [said("u", None, "user", [broken], 1)])
    assert client.get(f"/api/session/{key(client, CLAUDE)}/message/0/image/0").status_code == 404


@pytest.mark.parametrize(
    "value",
    [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="},
        [{"type": "image", "mimeType": "image/png", "data": "AA=="}],
    ],
)
def test_images_are_found_in_the_forms_of_the_agents(value: Any) -> None:
    assert list(images_in(value)) == [Image("image/png", "AA==")]
    assert "image/svg+xml" not in TYPES
