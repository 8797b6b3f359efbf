"""What the catalogue keeps of a long session of any agent is small, and enough to read only what is added."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts import registry
from sessionary.layouts.agents import logs
from sessionary.layouts.summary import summarize
from sessionary.testing.layout_suite import CountingFs
from sessionary.transcript.fold import LARGEST_STATE
from tests.support.agent_files import append, as_bytes, write_lines
from tests.unit.layouts.agents import test_claude_code as claude
from tests.unit.layouts.agents import test_codex as codex
from tests.unit.layouts.agents import test_copilot_cli as copilot
from tests.unit.layouts.agents import test_gemini as gemini
from tests.unit.layouts.agents import test_pi as pi
from tests.unit.layouts.agents import test_qwen as qwen

Records = Iterator[dict[str, Any]]
ROUNDS = 500


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def call_id(number: int) -> str:
    return f"toolu_{number:024x}"


def renamed(records: Records, *keys: str) -> Records:
    """The records with ids of the usual length."""
    for one in records:
        yield {**one, **{key: uuid(int(one[key][1:])) for key in keys if one.get(key)}}


def of_claude(first: int) -> Records:
    before = first - 1 if first > 1 else None
    yield claude.record("user", first, before, "x" * 300)
    made = {"id": f"msg_{first:024x}", "model": "claude-sonnet-4-5-20250929", "usage": {"output_tokens": 3}}
    yield claude.record("assistant", first + 1, first, [claude.use(call_id(first))], message=made)
    yield claude.record("user", first + 2, first + 1, [claude.result(call_id(first), "y")])


def of_codex(first: int) -> Records:
    ordinal = 2 * first
    records = [
        codex.asked(f"{first} " + "x" * 300),
        codex.item("function_call", 3, name="shell", arguments="{}", call_id=call_id(first)),
        codex.item("function_call_output", 4, call_id=call_id(first), output="y"),
        codex.says("assistant", f"done {first}"),
        codex.event("agent_message", message=f"done {first}"),
        codex.tokens((first, 0, first, 2 * first)),
    ]
    return iter(codex.ordinals(records, ordinal))


def of_copilot(first: int) -> Records:
    asks = [copilot.asks(call_id(first))]
    yield copilot.event("user.message", first + 1, content="x" * 300)
    yield copilot.event("assistant.message", first + 2, messageId=uuid(first), content="a", toolRequests=asks)
    yield copilot.event("tool.execution_complete", first + 3, toolCallId=call_id(first), success=True)


def of_gemini(first: int) -> Records:
    yield gemini.said(first, "user", "x" * 300)
    yield gemini.said(
        first + 1, "gemini", "a", toolCalls=[gemini.call(call_id(first), "y")], model="gemini-3"
    )


def of_pi(first: int) -> Records:
    used = {"type": "toolCall", "id": call_id(first), "name": "bash", "arguments": {}}
    yield pi.says(first, "user", "x" * 300, None if first == 1 else first - 1)
    yield pi.says(first + 1, "assistant", [used], first, model="opus")
    yield pi.says(
        first + 2, "toolResult", [{"type": "text", "text": "y"}], first + 1, toolCallId=call_id(first)
    )


def of_qwen(first: int) -> Records:
    used = {"functionCall": {"id": call_id(first), "name": "sh", "args": {}}}
    answer = {"functionResponse": {"id": call_id(first), "name": "sh", "response": {"output": "y"}}}
    yield qwen.record("user", first, [{"text": "x" * 300}], None if first == 1 else first - 1)
    yield qwen.record("assistant", first + 1, [used], first, model="qwen3")
    yield qwen.record("tool_result", first + 2, [answer], first + 1)


META = {"sessionId": "3f0c81d2-1", "kind": "main"}
KINDS: dict[str, tuple[str, list[dict[str, Any]], Callable[[int], Records], tuple[str, ...]]] = {
    "claude_code": (f"projects/-w/{claude.ID}.jsonl", [], of_claude, ("uuid", "parentUuid")),
    "codex": (
        f"sessions/2026/03/01/rollout-2026-03-01T09-00-00-{codex.ID}.jsonl",
        [{**codex.meta(), "ordinal": 1}],
        of_codex,
        (),
    ),
    "copilot_cli": (
        f"session-state/{copilot.ID}/events.jsonl",
        [copilot.START],
        of_copilot,
        (),
    ),
    "gemini": ("tmp/a/chats/session-2026-03-01T09-00-3f0c81d2.jsonl", [META], of_gemini, ("id",)),
    "pi": (
        f"sessions/--w--/2026-03-01T09-00-00-000Z_{pi.ID}.jsonl",
        [{"type": "session", "version": 3, "id": pi.ID, "cwd": "/w"}],
        of_pi,
        ("id", "parentId"),
    ),
    "qwen": (f"projects/-w/chats/{qwen.ID}.jsonl", [], of_qwen, ("uuid", "parentUuid")),
}
LAYOUTS = {one.name: one for one in registry.LAYOUTS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_session_keeps_little_and_costs_what_is_added(tmp_path: Path, kind: str) -> None:
    name, head, talk, keys = KINDS[kind]
    path, count = tmp_path / name, len(list(talk(1)))
    starts = [1 + count * number for number in range(ROUNDS)]
    rounds = [list(renamed(talk(start), *keys)) for start in starts]
    if kind == "codex":
        flat = codex.ordinals((one for some in rounds for one in some), 2)
        rounds = [flat[at : at + count] for at in range(0, len(flat), count)]
    write_lines(path, *head, *(one for some in rounds[:-1] for one in some))
    fs = CountingFs()
    layout = LAYOUTS[kind](tmp_path, fs)
    ref = layout.ref_for_path(path)
    assert ref is not None
    summary, progress = summarize(layout, ref)
    assert [one.code for one in summary.problems] == []
    assert progress is not None
    assert len(progress.state) + len(progress.cursor.state) <= LARGEST_STATE == 4096
    size, fs.bytes_read = path.stat().st_size, 0
    append(ref, *rounds[-1])
    later, progress = summarize(layout, ref, progress)
    assert progress is not None
    added = path.stat().st_size - size
    assert fs.bytes_read <= 3 * added + 65536 < size, "it reads what was added, and little more"
    again, _ = summarize(LAYOUTS[kind](tmp_path), ref)
    assert (later.messages, later.turns, later.usage) == (again.messages, again.turns, again.usage)


@pytest.mark.parametrize("kind", ["claude_code", "pi", "qwen"])
def test_a_parent_that_is_not_kept_makes_the_file_be_read_again(tmp_path: Path, kind: str) -> None:
    name, head, talk, keys = KINDS[kind]
    path, count = tmp_path / name, len(list(talk(1)))
    rounds = [one for number in range(100) for one in renamed(talk(1 + count * number), *keys)]
    write_lines(path, *head, *rounds)
    fs = CountingFs()
    layout = LAYOUTS[kind](tmp_path, fs)
    ref = layout.ref_for_path(path)
    assert ref is not None
    _, progress = summarize(layout, ref)
    assert progress is not None
    (branch,) = list(renamed(iter([next(talk(1000 * count + 1))]), *keys))
    size, fs.bytes_read = path.stat().st_size, 0
    append(ref, {**branch, keys[1]: uuid(3)})
    later, _ = summarize(layout, ref, progress)
    assert fs.bytes_read > size, "the count of bytes says so"
    assert later.messages == 4, "the three first messages and the new one"
    assert [one.code for one in later.problems] == ["not_shown"]


class GrowingFs(CountingFs):
    """Each time that a file is opened, another of these rounds has been added to it."""

    def __init__(self, path: Path, rounds: list[list[dict[str, Any]]]) -> None:
        super().__init__()
        self.left = list(rounds)
        self.file = path

    def open(self, path: str, *arguments: Any) -> int:
        if path == str(self.file) and self.left:
            with self.file.open("ab") as file:
                file.write(as_bytes(*self.left.pop(0)))
        return super().open(path, *arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_while_a_session_is_read_is_counted_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "KEPT", 0)
    name, head, talk, keys = KINDS[kind]
    path, count = tmp_path / name, len(list(talk(1)))
    rounds = [list(renamed(talk(1 + count * number), *keys)) for number in range(9)]
    if kind == "codex":
        flat = codex.ordinals((one for some in rounds for one in some), 2)
        rounds = [flat[at : at + count] for at in range(0, len(flat), count)]
    write_lines(path, *head, *rounds[0])
    fs = GrowingFs(path, rounds[1:])
    layout = LAYOUTS[kind](tmp_path, fs)
    ref = LAYOUTS[kind](tmp_path).ref_for_path(path)
    assert ref is not None
    summary, progress = summarize(layout, ref)
    while fs.left:
        assert progress is not None
        summary, progress = summarize(layout, ref, progress)
    summary, _ = summarize(layout, ref, progress)
    whole, _ = summarize(LAYOUTS[kind](tmp_path), ref)
    assert (summary.messages, summary.turns, summary.usage) == (whole.messages, whole.turns, whole.usage)
    assert whole.turns == len(rounds)
