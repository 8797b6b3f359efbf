"""Sessions of every agent, as each builds them with sub-agents, exported and imported again without a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore, FeatureStore, SessionStore, WorkStore
from sessionary.disk.fs import OS_FS
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.model import Message, SessionRef
from sessionary.workspace import KINDS, Workspace
from sessionary.workspace.bundling import bundle
from tests.unit.search.test_planted_words import BUILD, Planted

TALK = [
    {"role": "user", "content": "Fix the login race", "timestamp": "2026-03-01T09:00:00+00:00"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}],
     "tool_calls": [{"id": "c1", "tool": "bash", "arguments": {"command": "ls \0"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "half \ud83d"},
]  # fmt: skip


def aider_(home: Path) -> None:
    place = home / ".aider.chat.history.md"
    place.parent.mkdir(parents=True)
    chat = "\n# aider chat started at 2026-03-0{0} 09:00:00\n\n#### Fix the race  \n\nDone.\n\n> Tokens: 1 sent  \n"
    place.write_text(chat.format(1) + chat.format(2))


def amplifier_(home: Path) -> None:
    store = SessionStore(home / "projects" / "-p" / "sessions")
    store.save("one", TALK, {"session_id": "one"})
    store.save(
        "one-0000000000000000_agent", TALK, {"session_id": "one-0000000000000000_agent", "parent_id": "one"}
    )


def records_(home: Path) -> None:
    items: dict[str, list[Any]] = {
        "openai-agents": [
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "half \ud83d"},
        ],
        "google-adk": [{"author": "user", "timestamp": 100.5, "content": {"parts": [{"text": "Hi \0"}]}}],
        "langgraph": [
            {"type": "ai", "content": "Hi", "tool_calls": [{"id": "c", "name": "f", "args": {"x": 1.5}}]}
        ],
        "pydantic-ai": [
            {
                "kind": "request",
                "parts": [{"part_kind": "user-prompt", "content": ["Hi", {"kind": "image-url"}]}],
            }
        ],
        "claude-agent-sdk": [{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Hi"}}],
    }
    for framework, added in items.items():
        scope = {"google-adk": ["app", "ada"], "claude-agent-sdk": ["-p"]}.get(framework, [])
        one = RecordJournal(home / framework, framework, f"s-{framework}", scope, durability="none")
        one.change(lambda _, added=added: Change(add=added))  # type: ignore[misc]


def projects_(home: Path) -> None:
    home.mkdir(parents=True)
    BrainstormStore(home).create("sign-in", questions=["Which kind of sign-in?"])
    FeatureStore(home).create("login-2026-01-02", name="Login", description="Let people in")
    WorkStore(home / "docs" / "sessions").create("pm")


def _planted(kind: str, home: Path) -> None:
    BUILD[kind](home, Planted(kind))


PLACES: dict[str, Callable[[Path], None]] = {
    **{kind: partial(_planted, kind) for kind in BUILD},
    "aider": aider_,
    "amplifier": amplifier_,
    "records": records_,
    "projects": projects_,
}
"""What makes the sessions of an agent below its home, or those that a project has in its folder."""


@pytest.fixture(params=sorted(PLACES))
def built(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Workspace, list[SessionRef]]:
    kind = request.param
    PLACES[kind](tmp_path / kind)
    homes = {one: tmp_path / one for one in PLACES if one != "projects"}
    workspace = Workspace(homes, root=tmp_path / "projects", cache=str(tmp_path / "cache"))
    refs = [one.ref for one in workspace.list() if not one.nested]
    assert {one.kind for one in refs} == ({"brainstorm", "feature", "work"} if kind == "projects" else {kind})
    return workspace, refs


def test_every_kind_is_here() -> None:
    assert set(KINDS) == {*PLACES, "brainstorm", "feature", "work"} - {"projects"}


def said(workspace: Workspace, ref: SessionRef) -> list[tuple[str | None, str, Any]]:
    """What a session says, wherever it is stored."""
    messages = [one for one in workspace.read(ref) if isinstance(one, Message)]
    return [(one.role, one.origin, one.parts) for one in messages]


@pytest.mark.parametrize("form", ["atif", "sts"])
def test_what_is_imported_is_exported_as_it_came(
    built: tuple[Workspace, list[SessionRef]], tmp_path: Path, form: str
) -> None:
    workspace, refs = built
    assert refs
    for number, ref in enumerate(refs):
        home = tmp_path / f"imported-{number}"
        home.mkdir()
        first, second = home / f"first.{form}", home / f"second.{form}"
        workspace.export(ref, form, branches=True).save(first)
        other = Workspace(home, cache=str(home / "cache"))
        done = other.import_file(first)
        assert (done.problems, done.format, done.sessions[0].state) == ([], form, "added")
        (top,) = [one.ref for one in other.list() if not one.nested]
        again = other.export(top, form, branches=True)
        again.save(second)
        assert second.read_bytes() == first.read_bytes()
        assert again.report.losses == []
        assert said(other, top) == said(workspace, ref)


def test_every_line_of_spans_is_json(built: tuple[Workspace, list[SessionRef]]) -> None:
    workspace, refs = built
    for ref in refs:
        for line in workspace.export(ref, "otel"):
            assert json.loads(line)["resourceSpans"]


def test_a_bundle_has_the_files_of_every_agent(
    built: tuple[Workspace, list[SessionRef]], tmp_path: Path
) -> None:
    workspace, refs = built
    out = tmp_path / "out"
    report = bundle(workspace, refs, str(out), OS_FS)
    document = json.loads((out / "manifest.json").read_bytes())
    assert report.sessions == len(workspace.list())
    assert len(document["sessions"]) == report.sessions
    files = [file for one in document["sessions"] for file in one["files"]]
    assert files
    for file in files:
        data = (out / file["path"]).read_bytes()
        assert sha256(data).hexdigest() == file["sha256"]
        data.decode()
    originals = {
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and out not in path.parents
    }
    rows = [file for file in files if file["path"].endswith("rows.jsonl")]
    packed = list(tmp_path.rglob("*.zst"))
    copied = {(out / file["path"]).read_bytes() for file in files if file not in rows}
    assert len(copied - originals) <= len(packed)
    for file in rows:
        for line in (out / file["path"]).read_bytes().splitlines():
            json.loads(line)
