"""No answer to the page has a character that hides, reorders or controls what is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library, key_of
from sessionary.workspace import Workspace
from tests.hostile import EVIL, hostile_home

HIDDEN = set("\u202e\x1b\x07")
OF_SESSION = ("stream", "health", "resume", "charts", "actions", "message/0", "message/1", "diff/{key}")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    hostile_home(tmp_path)
    return Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])


@pytest.fixture
def client(library: Library) -> TestClient:
    headers = {"authorization": "Bearer t", "host": "localhost:80"}
    return TestClient(viewer_app(library, "t", 80), base_url="http://localhost:80", headers=headers)


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


def answered(client: TestClient, path: str) -> list[str]:
    """Every text of an answer: one document, lines of documents, or events."""
    lines = [line.removeprefix("data: ") for line in client.get(path).text.splitlines() if line]
    return [text for line in lines if line[0] in "{[" for text in texts(json.loads(line))]


@pytest.mark.parametrize("path", ["/api/sessions", "/api/overview", "/api/search?q=bidi"])
def test_of_all_sessions(client: TestClient, path: str) -> None:
    found = answered(client, path)
    assert any("evil.example" in text for text in found)
    assert [text for text in found if HIDDEN & set(text)] == []


@pytest.mark.parametrize("name", OF_SESSION)
def test_of_one_session(client: TestClient, library: Library, name: str) -> None:
    count = 0
    for place, _ in library.known():
        key = key_of(place.ref)
        found = answered(client, f"/api/session/{key}/{name.format(key=key)}")
        count += len(found)
        assert [text for text in found if HIDDEN & set(text)] == []
    assert count > 0


def test_the_text_is_hostile() -> None:
    assert set(EVIL) > HIDDEN


def test_huge_text_is_cut_in_the_first_answer(client: TestClient, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-app" / "sessions" / "huge"
    folder.mkdir()
    huge = [{"role": "user", "content": "x" * 5_000_000}, {"role": "assistant", "content": "y\n" * 1_000_000}]
    (folder / "transcript.jsonl").write_text("".join(json.dumps(one) + "\n" for one in huge))
    client.post("/api/refresh", json={})
    key = next(
        row["key"]
        for line in client.get("/api/sessions").text.splitlines()[1:]
        for row in json.loads(line)
        if row["id"] == "huge"
    )
    assert len(client.get(f"/api/session/{key}/stream").text) < 100_000
    assert len(client.get(f"/api/session/{key}/diff/{key}").text) < 100_000
