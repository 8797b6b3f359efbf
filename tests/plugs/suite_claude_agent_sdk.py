"""The plug of the Claude Agent SDK: its own contracts, ours, and its client with a scripted transport."""

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    InMemorySessionStore,
    ResultMessage,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.testing import run_session_store_conformance

from sessionary import Workspace
from sessionary.errors import Invalid
from sessionary.plugs.claude_agent_sdk import DurableSessionStore
from tests.plugs.mirroring import ID, Scripted

PINS = Path(__file__).parent / "constraints" / "claude-agent-sdk.txt"
KEY = {"project_key": "-home-u-app", "session_id": ID}
SUB = {**KEY, "subpath": "subagents/agent-1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "claude-agent-sdk"


def entry(number: int, text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {
        "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": ID, "cwd": "/home/u/app", "timestamp": f"2026-03-01T09:00:{number:02}.000Z",
        "message": {"role": role, "content": text}, **fields,
    }  # fmt: skip


def append(store: DurableSessionStore, *entries: Any, key: Any = KEY) -> None:
    asyncio.run(store.append(key, list(entries)))


def load(store: DurableSessionStore, key: Any = KEY) -> list[Any] | None:
    return asyncio.run(store.load(key))


def test_the_version_is_the_pinned_one() -> None:
    assert f"claude-agent-sdk=={version('claude-agent-sdk')}\n" in PINS.read_text("utf-8")


def test_the_contracts_of_the_sdk(tmp_path: Path) -> None:
    made = iter(range(1000))
    asyncio.run(run_session_store_conformance(lambda: DurableSessionStore(tmp_path / str(next(made)))))
    asyncio.run(run_session_store_conformance(InMemorySessionStore))  # as docs/frameworks.md says of it


def test_an_entry_is_stored_once_by_its_uuid(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, other = DurableSessionStore(folder), DurableSessionStore(folder)
    append(store, entry(1, "a"), entry(2, "b"))
    size = next(folder.glob("*.records")).stat().st_size
    append(other, entry(1, "a"), entry(2, "b"))
    assert next(folder.glob("*.records")).stat().st_size == size
    append(other, entry(2, "b"), entry(3, "c"), entry(3, "c"))
    assert load(store) == [entry(1, "a"), entry(2, "b"), entry(3, "c")]
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        append(store, entry(2, "another"))
    assert "u2" in caplog.text
    assert load(other) == [entry(1, "a"), entry(2, "b"), entry(3, "c")]


def test_entries_without_uuid_are_never_merged(folder: Path) -> None:
    store = DurableSessionStore(folder)
    mark = {"type": "mode", "mode": "plan"}
    append(store, mark, mark)
    append(store, mark)
    assert load(store) == [mark, mark, mark]


@pytest.mark.parametrize(
    "text",
    ["nul \0", "half \ud800", "x" * 5_000_000, "\u2028 中文 \U0001f600"],
    ids=["nul", "surrogate", "5MB", "unicode"],
)
def test_any_entry_comes_back_as_it_was(folder: Path, text: str) -> None:
    append(DurableSessionStore(folder), entry(1, text))
    assert load(DurableSessionStore(folder)) == [entry(1, text)]


def test_what_is_not_json_is_refused_as_a_whole(folder: Path) -> None:
    store = DurableSessionStore(folder)
    with pytest.raises(Invalid):
        append(store, entry(1, "a"), entry(2, "b", extra={1, 2}))
    assert load(store) is None


@pytest.mark.parametrize("name", ["../../x", "a/b", "é,", "A" * 300, "."])
def test_any_key_is_listed_as_it_was(folder: Path, name: str) -> None:
    store = DurableSessionStore(folder)
    key = {"project_key": name, "session_id": f"s{name}"}
    append(store, entry(1, "a"), key=key)
    append(store, entry(2, "b"), key={**key, "subpath": f"p{name}"})
    again = DurableSessionStore(folder)
    assert [one["session_id"] for one in asyncio.run(again.list_sessions(name))] == [f"s{name}"]
    assert asyncio.run(again.list_subkeys(key)) == [f"p{name}"]
    assert len(asyncio.run(again.list_session_summaries(name))) == 1
    asyncio.run(again.delete(key))
    assert list(folder.iterdir()) == []


def test_ten_thousand_entries(folder: Path) -> None:
    store = DurableSessionStore(folder, durability="batch")
    entries = [
        entry(number, f"text {number}", timestamp="2026-03-01T09:00:00.000Z") for number in range(10_000)
    ]
    for start in range(0, len(entries), 500):
        append(store, *entries[start : start + 500])
    assert load(DurableSessionStore(folder)) == entries


def test_what_the_helpers_of_the_sdk_read(folder: Path, tmp_path: Path) -> None:
    key = {"project_key": project_key_for_directory(str(tmp_path)), "session_id": ID}
    store = DurableSessionStore(folder)
    append(store, entry(0, "Fix the login race"), key=key)
    append(
        store,
        entry(1, "Done.", "assistant"),
        {"type": "custom-title", "customTitle": "Login", "sessionId": ID},
        key=key,
    )
    (session,) = asyncio.run(list_sessions_from_store(store, directory=str(tmp_path)))
    assert (session.session_id, session.custom_title, session.first_prompt) == (
        ID,
        "Login",
        "Fix the login race",
    )
    messages = asyncio.run(get_session_messages_from_store(store, ID, directory=str(tmp_path)))
    assert [one.message["content"] for one in messages] == ["Fix the login race", "Done."]


def test_the_commands_read_sessions_and_sub_agents(folder: Path) -> None:
    store = DurableSessionStore(folder)
    append(store, entry(0, "Fix the login race"), entry(1, "Done.", "assistant"))
    append(store, entry(2, "Look at the tests", isSidechain=True), key=SUB)
    workspace = Workspace(folder.parent)
    found = {one.ref.session_id: one for one in workspace.list()}
    assert found[ID].title == "Fix the login race"
    assert (found[ID].cwd, found[ID].nested, found[ID].ref.project) == (
        "/home/u/app",
        False,
        "claude-agent-sdk/-home-u-app",
    )
    nested = found["subagents/agent-1"]
    assert (nested.nested, nested.parent, nested.ref.project) == (True, ID, "claude-agent-sdk/-home-u-app")
    assert [hit.ref.session_id for hit in workspace.search("tests")] == ["subagents/agent-1"]


def test_a_damaged_record_hides_nothing_else(folder: Path) -> None:
    for number in range(4):
        append(DurableSessionStore(folder), entry(number, f"text {number}"))
    (path,) = folder.glob("*.records")
    path.write_bytes(path.read_bytes().replace(b'"content":"text 3"', b'"content":"text 3'))
    store = DurableSessionStore(folder)
    assert load(store) == [entry(number, f"text {number}") for number in range(3)]
    (summary,) = asyncio.run(store.list_session_summaries("-home-u-app"))
    assert summary["session_id"] == ID
    append(store, entry(3, "text 3"))
    assert load(store) == [entry(number, f"text {number}") for number in range(4)]


def test_a_query_mirrors_its_transcript(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))

    async def ask(text: str, first: int) -> list[Any]:
        options = ClaudeAgentOptions(session_store=DurableSessionStore(folder))
        place = tmp_path / "projects" / "-home-u-app" / f"{ID}.jsonl"
        transport = Scripted(str(place), first, text, lambda: None)
        return [one async for one in query(prompt=text, options=options, transport=transport)]

    (result,) = anyio.run(ask, "My name is Ada.", 0)
    assert isinstance(result, ResultMessage)
    anyio.run(ask, "Who am I?", 2)
    assert [one["message"]["content"] for one in load(DurableSessionStore(folder)) or []] == [
        "My name is Ada.",
        "Ready.",
        "Who am I?",
        "Ready.",
    ]
    assert Workspace(folder.parent).summary(Workspace(folder.parent).find(ID)).turns == 2


def _child(folder: Path, number: int) -> subprocess.Popen[str]:
    code = f"""
        import asyncio
        from sessionary.plugs.claude_agent_sdk import DurableSessionStore
        async def main():
            store = DurableSessionStore({str(folder)!r})
            for step in range(10_000):
                uuids = [f"{number}-{{step}}-{{i}}" for i in range(3)]
                said = {{"role": "user", "content": "x" * 2000}}
                entries = [{{"type": "user", "uuid": uuid, "message": said}} for uuid in uuids]
                await store.append({KEY!r}, entries)
                print(step, flush=True)
        asyncio.run(main())
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("count", [3, 20])
def test_what_was_acknowledged_survives_a_kill(folder: Path, count: int) -> None:
    children = [_child(folder, number) for number in range(2)]
    acknowledged: list[tuple[int, int]] = []
    for number, child in enumerate(children):
        assert child.stdout is not None
        acknowledged += [(number, int(child.stdout.readline())) for _ in range(count)]
    for number, child in enumerate(children):
        assert child.stdout is not None
        os.kill(child.pid, signal.SIGKILL)
        acknowledged += [(number, int(line)) for line in child.stdout.read().split()]
        child.wait()
    store = DurableSessionStore(folder)
    stored = [one["uuid"] for one in load(store) or []]
    assert len(set(stored)) == len(stored)
    assert {f"{number}-{step}-{i}" for number, step in acknowledged for i in range(3)} <= set(stored)
    for number in range(2):
        mine = [one for one in stored if one.startswith(f"{number}-")]
        assert mine == [f"{number}-{step}-{i}" for step in range(len(mine) // 3) for i in range(3)]
    append(store, entry(1, "after"))
    assert (load(store) or [])[-1] == entry(1, "after")


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "frameworks" / "claude-agent-sdk.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == "9a4e6b10-0000-4000-8000-000000000001 My name is Ada.\n1 message\n"
