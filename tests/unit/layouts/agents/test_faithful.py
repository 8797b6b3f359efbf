"""What holds of the sessions of every agent: sub-agents below their parent, unknown records shown, nothing changed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts import registry
from sessionary.model import Message, Other
from sessionary.workspace import Workspace
from sessionary.workspace.checking import check_place
from tests.support.agent_files import write_lines
from tests.unit.layouts.agents.test_states import KINDS as LOGS
from tests.unit.search.test_planted_words import BUILD, Planted, word

LAYOUTS = {one.name: one for one in registry.LAYOUTS}


def workspace(tmp_path: Path, kind: str) -> Workspace:
    homes = {one: tmp_path / one for one in (*BUILD, "amplifier")}
    return Workspace(homes, root=tmp_path / "none", cache=str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", [one for one in BUILD if one not in ("copilot_cli", "pi", "vscode_chat")])
def test_sub_agents_are_nested_and_not_counted(tmp_path: Path, kind: str) -> None:
    plant = Planted(kind)
    BUILD[kind](tmp_path / kind, plant)
    found = workspace(tmp_path, kind)
    (hit,) = found.search(word(kind, "agent"))
    inner = found.summary(hit.ref)
    assert inner.nested
    assert inner.parent is not None
    parent = found.summary(found.find(inner.parent))
    assert (parent.nested, parent.ref.kind) == (False, kind)
    (state,) = [one for one in found.doctor().agents if one.kind == kind]
    nested = [one for one in found.list() if one.nested]
    assert (state.nested, state.sessions) == (len(nested), len(found.list()) - len(nested))
    assert found.find("latest") not in [one.ref for one in nested]


@pytest.mark.parametrize("kind", BUILD)
def test_doctor_counts_the_sessions_that_it_is_given(tmp_path: Path, kind: str) -> None:
    BUILD[kind](tmp_path / kind, Planted(kind))
    found, now = workspace(tmp_path, kind), datetime.now(UTC) + timedelta(days=400)
    states = found.doctor(now=now).agents
    assert sum(one.sessions for one in states) > 0
    assert found.doctor(now=now, summaries=found.list()).agents == states
    assert not any(one.sessions or one.leaving for one in found.doctor(now=now, summaries=[]).agents)


UNKNOWN: dict[str, dict[str, Any]] = {
    "claude_code": {"type": "hologram", "uuid": "u9", "x": {"y": [1, 2]}},
    "codex": {"timestamp": "2026-03-01T09:00:00Z", "type": "hologram", "payload": {"y": [1, 2]}},
    "copilot_cli": {"type": "hologram", "id": "e9", "data": {"y": [1, 2]}},
    "gemini": {"id": "m9", "type": "hologram", "y": [1, 2]},
    "pi": {"type": "hologram", "id": "e9", "parentId": None, "y": [1, 2]},
    "qwen": {"type": "hologram", "uuid": "u9", "parentUuid": None, "y": [1, 2]},
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_record_is_kept_whole_and_shown_raw(tmp_path: Path, kind: str) -> None:
    name, head, _, _ = LOGS[kind]
    path = tmp_path / name
    write_lines(path, *head, UNKNOWN[kind])
    layout = LAYOUTS[kind](tmp_path)
    ref = layout.ref_for_path(path)
    assert ref is not None
    (message,) = [one for one in layout.read(ref) if isinstance(one, Message)]
    assert message.parts == (Other("record", UNKNOWN[kind]),)
    assert json.loads(layout.raw(ref, message.place)) == UNKNOWN[kind]


@pytest.mark.parametrize("kind", BUILD)
def test_no_command_changes_a_byte_a_name_or_a_time(tmp_path: Path, kind: str) -> None:
    BUILD[kind](tmp_path / kind, Planted(kind))

    def state() -> dict[Path, tuple[bytes, int]]:
        files = [one for one in (tmp_path / kind).rglob("*") if one.is_file()]
        return {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in files}

    before, found = state(), workspace(tmp_path, kind)
    for one in found.list():
        list(found.read(one.ref))
        list(found.check(one.ref))
    list(found.search("planted"))
    check_place(found)
    found.doctor()
    assert state() == before
