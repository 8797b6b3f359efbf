"""Counts of sessions, beside those of hypabolic-trajectory and claude-code-log: every difference has its reason."""

import json
import random
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.agents.cursor import CursorLayout
from sessionary.layouts.agents.pi import PiLayout
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.summary import summary_of
from sessionary.model import PERSON, Usage
from tests.lanes import REPO, peers_python, shared_folder
from tests.support.agent_files import messages, write_lines

PLACES: dict[str, tuple[type[AgentLayout], str]] = {
    "claude-code": (ClaudeCodeLayout, "projects/p/{}"),
    "codex": (CodexLayout, "sessions/2026/01/01/rollout-2026-01-01T00-00-00-{}"),
    "pi": (PiLayout, "sessions/p/{}"),
    "cursor": (CursorLayout, "projects/p/agent-transcripts/x/{}"),
}
Counts = dict[str, int]

EXPLAINED: dict[str, tuple[Counts, str]] = {
    "claude/claude-code-log_dag_compact_after_rewind.jsonl": (
        {"prompts": 2, "answers": 1},
        "it counts the branch that a rewind left, and the summary of a compaction as a prompt",
    ),
    "claude/claude-code-log_dag_compact_after_rewind_preserved.jsonl": (
        {"prompts": 1},
        "it counts the summary of a compaction as a prompt",
    ),
    "claude/agent-sessions/large.jsonl": (
        {"results": -1},
        "it leaves out a result of a shape that it does not know",
    ),
    "codex/traex_rollout_subagent.jsonl": (
        {"input": -600, "output": -180},
        "it counts no usage of Codex",
    ),
    "cursor/agent-sessions/schema_drift.jsonl": (
        {"calls": -1, "results": -1},
        "it leaves out blocks of the types `tool_call` and `tool-result`",
    ),
}
"""By sample: what hypabolic-trajectory counts more than we do, and why."""


def ours(source: str, path: Path, home: Path) -> Counts:
    """What is counted here."""
    layout, place = PLACES[source]
    copy = home / place.format(path.name)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    found = layout(home, OS_FS)
    (ref,) = found.discover()
    read, usage = messages(found, ref), summary_of(found, ref).total_usage() or Usage()
    return {
        "prompts": sum(one.origin == PERSON for one in read),
        "answers": sum(one.role == "assistant" and bool(one.text) for one in read),
        "calls": sum(len(one.calls) for one in read),
        "results": sum(len(one.results) for one in read),
        "input": usage.input,
        "output": usage.output,
    }


def theirs(*words: str) -> dict[str, Counts | None]:
    """What another program counts, by file."""
    command = [peers_python(), str(REPO / "tests/support/peer_counts.py"), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    found: dict[str, Counts | None] = json.loads(done.stdout)
    return found


def claude_session(choose: random.Random) -> list[dict[str, Any]]:
    """A session as Claude Code writes it: each block of a response in a record, with the usage so far."""
    time, parent, records = datetime(2026, 3, 1, tzinfo=UTC), None, list[dict[str, Any]]()

    def add(kind: str, message: dict[str, Any], **more: Any) -> None:
        nonlocal time, parent
        time += timedelta(seconds=choose.randint(1, 90))
        uuid = f"00000000-0000-4000-8000-{len(records):012d}"
        records.append(
            {
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/w", "type": kind,
                "sessionId": "11111111-0000-4000-8000-000000000001", "version": "2.1.9", "gitBranch": "main",
                "message": message, "uuid": uuid, "timestamp": time.isoformat().replace("+00:00", "Z"), **more,
            }
        )  # fmt: skip
        parent = uuid

    for turn in range(choose.randint(1, 5)):
        add("user", {"role": "user", "content": f"Prompt {turn}"})
        for step in range(choose.randint(1, 3)):
            blocks: list[dict[str, Any]] = [{"type": "text", "text": f"Answer {turn} {step}"}]
            blocks += [
                {
                    "type": "tool_use",
                    "id": f"c{turn}-{step}-{number}",
                    "name": "Bash",
                    "input": {"command": "ls"},
                }
                for number in range(choose.randint(0, 2))
            ]
            spent = choose.randint(1, 900)
            for number, block in enumerate(blocks):
                usage = {
                    "input_tokens": spent, "output_tokens": spent + number,
                    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                }  # fmt: skip
                message = {
                    "id": f"msg_{turn}_{step}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                    "content": [block], "stop_reason": None, "stop_sequence": None, "usage": usage,
                }  # fmt: skip
                add("assistant", message, requestId=f"req_{turn}_{step}")
            for block in blocks[1:]:
                answer = {
                    "tool_use_id": block["id"],
                    "type": "tool_result",
                    "content": "a.txt",
                    "is_error": False,
                }
                add(
                    "user",
                    {"role": "user", "content": [answer]},
                    toolUseResult={"stdout": "a.txt", "stderr": ""},
                )
    return records


@pytest.mark.lane("peers")
def test_generated_sessions_of_claude_code(tmp_path: Path) -> None:
    mine, usages = dict[str, Counts](), dict[str, list[tuple[str, int, int]]]()
    for seed in range(12):
        path, records = tmp_path / f"{seed}.jsonl", claude_session(random.Random(seed))
        write_lines(path, *records)
        mine[str(path)] = ours("claude-code", path, tmp_path / f"home-{seed}")
        usages[str(path)] = [
            (
                one["requestId"],
                one["message"]["usage"]["input_tokens"],
                one["message"]["usage"]["output_tokens"],
            )
            for one in records
            if one["type"] == "assistant"
        ]
    assert max(one["calls"] for one in mine.values()) > 3
    trajectory, log = theirs("trajectory", "claude-code", *mine), theirs("claude-code-log", *mine)
    for name, counts in mine.items():
        last = {request: (given, made) for request, given, made in usages[name]}
        first = {request: made for request, _, made in reversed(usages[name])}
        assert (counts["input"], counts["output"]) == tuple(map(sum, zip(*last.values(), strict=True)))
        # A response stands in several records, each with the usage so far. We count the last of them; the one peer
        # adds them all up, the other counts the first.
        summed = {"input": sum(one[1] for one in usages[name]), "output": sum(one[2] for one in usages[name])}
        assert trajectory[name] == {**counts, **summed}
        assert log[name] == {**counts, "output": sum(first.values())}


@pytest.mark.lane("peers")
@pytest.mark.lane("samples")
@pytest.mark.parametrize("source", PLACES)
def test_public_samples(tmp_path: Path, source: str) -> None:
    samples = shared_folder() / "samples"
    folder = samples / source.removesuffix("-code")
    paths = [*folder.glob("*.jsonl"), *folder.glob("agent-sessions/*.jsonl")]
    read = theirs("trajectory", source, *map(str, paths))
    compared = 0
    for number, path in enumerate(paths):
        peer, mine = read[str(path)], ours(source, path, tmp_path / str(number))
        if peer is None:
            continue  # it refuses a session without prompts, without answers, or with several ids
        compared += 1
        more = {key: peer[key] - mine[key] for key in mine if peer[key] != mine[key]}
        assert more == EXPLAINED.get(str(path.relative_to(samples)), ({}, ""))[0], path.name
    assert compared
