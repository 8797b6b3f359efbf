"""The session with the newest message is searched first; the ends of sessions that the catalogue knows are not read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.catalog import Catalog
from sessionary.disk.fs import Fs
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.search.targets import targets
from sessionary.testing.layout_suite import CountingFs, LongAgoFs
from tests.support.agent_files import copilot_id

IDS = [f"3f0c81d2-0000-4000-8000-00000000000{number}" for number in range(3)]
Say = Callable[[Path, str, int], Path]


def claude_code(home: Path, name: str, minute: int) -> Path:
    """Add a message of this minute to a session of Claude Code; return its file."""
    path = home / "projects" / "-app" / f"{name}.jsonl"
    record = {"type": "user", "uuid": f"u{minute}", "message": {"role": "user", "content": "Hi"}}
    return added(path, record, minute)


def codex(home: Path, name: str, minute: int) -> Path:
    path = home / "sessions" / f"rollout-2026-03-01T09-00-00-{name}.jsonl"
    if not path.exists():
        added(path, {"type": "session_meta", "payload": {"id": name}}, 0)
    payload = {"type": "user_message", "message": "Hi", "images": []}
    return added(path, {"type": "event_msg", "payload": payload}, minute)


def copilot_cli(home: Path, name: str, minute: int) -> Path:
    path = home / "session-state" / name / "events.jsonl"
    if not path.exists():
        added(path, {"type": "session.start", "id": copilot_id(0), "data": {"sessionId": name}}, 0)
    return added(path, {"type": "user.message", "id": copilot_id(minute), "data": {"content": "Hi"}}, minute)


def added(path: Path, record: dict[str, Any], minute: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record | {"timestamp": f"2026-03-01T09:{minute:02}:00.000Z"}) + "\n")
    return path


AGENTS = {ClaudeCodeLayout: claude_code, CodexLayout: codex, CopilotCliLayout: copilot_cli}
agents = pytest.mark.parametrize("agent", AGENTS, ids=lambda one: one.name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(str(tmp_path / "cache"))


def order(agent: type[AgentLayout], home: Path, catalog: Catalog, fs: Fs) -> list[str]:
    layout = agent(home, fs)
    return [one.ref.session_id for one in targets(lambda _: layout, catalog, list(layout.discover()))]


@agents
def test_no_file_of_unchanged_sessions_is_opened(
    agent: type[AgentLayout], home: Path, catalog: Catalog
) -> None:
    say = AGENTS[agent]
    for name, minute in zip(IDS, (20, 40, 30), strict=True):
        say(home, name, minute)
    newest_first = [IDS[1], IDS[2], IDS[0]]
    fs = LongAgoFs()
    assert order(agent, home, Catalog(None), fs) == newest_first
    assert fs.bytes_read
    list(catalog.summaries(agent(home, fs)))
    fs = LongAgoFs()
    assert order(agent, home, catalog, fs) == newest_first
    assert not fs.bytes_read


@agents
def test_the_end_of_a_changed_session_is_read(agent: type[AgentLayout], home: Path, catalog: Catalog) -> None:
    say = AGENTS[agent]
    for name, minute in zip(IDS, (20, 40, 30), strict=True):
        say(home, name, minute)
    list(catalog.summaries(agent(home, LongAgoFs())))
    longer = say(home, IDS[0], 50)
    fs = LongAgoFs()
    assert order(agent, home, catalog, fs) == [IDS[0], IDS[1], IDS[2]]
    assert fs.bytes_read == longer.stat().st_size


@agents
def test_a_session_that_changed_a_moment_ago_is_read(
    agent: type[AgentLayout], home: Path, catalog: Catalog
) -> None:
    """It has no fingerprint, before as after: a further change within one tick of the clock would leave no trace."""
    say = AGENTS[agent]
    for name, minute in zip(IDS, (20, 40, 30), strict=True):
        say(home, name, minute)
    list(catalog.summaries(agent(home, CountingFs())))
    say(home, IDS[0], 50)
    assert order(agent, home, catalog, CountingFs())[0] == IDS[0]


def test_what_is_remembered_orders_the_sessions(home: Path, catalog: Catalog) -> None:
    """Proof that the tests above compare with what is stored: a false time is believed while the file is the same."""
    for name, minute in zip(IDS, (20, 40, 30), strict=True):
        claude_code(home, name, minute)
    layout = ClaudeCodeLayout(home, LongAgoFs())
    list(catalog.summaries(layout))
    known = catalog.known_times(layout)
    place = next(one for one in known if IDS[0] in one)
    ref = layout.ref_for_path(Path(place))
    assert ref is not None
    assert layout.recency(ref, known[place]).newest == known[place].updated == layout.recency(ref).newest
    later = type(known[place])(known[place].fingerprint, known[place].updated + 60)
    assert layout.recency(ref, later).newest == known[place].updated + 60
    claude_code(home, IDS[0], 50)
    assert layout.recency(ref, later).newest == known[place].updated + 30 * 60
