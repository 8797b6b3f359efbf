"""The sessions of Codex: which there are, what is said in them, what they add up to, what is damaged."""

import json
import os
import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from sessionary.catalog import Catalog
from sessionary.cli import main
from sessionary.disk.fs import OS_FS
from sessionary.layouts import registry
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.base import Capability
from sessionary.layouts.compressed import compressed_line
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import (
    PERSON,
    Cursor,
    Inherited,
    Message,
    Problem,
    SessionRef,
    Severity,
    Summary,
    Usage,
)
from sessionary.testing.cursors import Reader
from sessionary.testing.layout_suite import CountingFs
from sessionary.transcript.typed import numbered
from sessionary.workspace.mended_copy import mended_copy
from tests.lanes import shared_folder

ID = "0198a000-0000-7000-8000-000000000001"
OTHER = "0198b000-0000-7000-8000-000000000002"
PAGE = "0198c000-0000-7000-8000-000000000003"
LAST = "0198d000-0000-7000-8000-000000000004"
Records = Iterable[dict[str, Any] | bytes]


def record(kind: str, number: int = 1, **payload: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-03-01T09:{number // 60:02}:{number % 60:02}.000Z",
        "type": kind,
        "payload": payload,
    }


def meta(session: str = ID, **more: Any) -> dict[str, Any]:
    given = {"id": session, "cwd": "/home/u/app", "git": {"branch": "main"}, "source": "cli", **more}
    return record("session_meta", 0, **given)


def context(number: int, turn: str | None = None, model: str = "gpt-5") -> dict[str, Any]:
    return record(
        "turn_context", number, cwd="/home/u/app", model=model, **({"turn_id": turn} if turn else {})
    )


def event(kind: str, number: int = 1, **payload: Any) -> dict[str, Any]:
    return record("event_msg", number, type=kind, **payload)


def item(kind: str, number: int = 1, **payload: Any) -> dict[str, Any]:
    return record("response_item", number, type=kind, **payload)


def says(role: str, text: str, number: int = 1) -> dict[str, Any]:
    block = "input_text" if role == "user" else "output_text"
    return item("message", number, role=role, content=[{"type": block, "text": text}])


def done(kind: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return event("item_completed", number, turn_id="t", item={"type": kind, **fields})


def asked(text: str, number: int = 1) -> dict[str, Any]:
    return event("user_message", number, message=text)


def tokens(total: tuple[int, ...], number: int = 1, last: tuple[int, ...] | None = None) -> dict[str, Any]:
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    info = {"total_token_usage": dict(zip(names, total, strict=False))}
    if last:
        info["last_token_usage"] = dict(zip(names, last, strict=False))
    return event("token_count", number, info=info)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "codex"


def encoded(records: Records) -> bytes:
    return b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in records)


def place(home: Path, name: str = ID, hour: int = 9, folder: str = "sessions/2026/03/01") -> Path:
    path = home / folder / f"rollout-2026-03-01T{hour:02}-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(home: Path, *records: dict[str, Any] | bytes, name: str = ID, hour: int = 9) -> SessionRef:
    path = place(home, name, hour)
    path.write_bytes(encoded(records))
    ref = CodexLayout(home).ref_for_path(path)
    assert ref is not None
    return ref


def compress(path: Path) -> Path:
    target = path.with_suffix(".jsonl.zst")
    target.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    path.unlink()
    return target


def read(home: Path, ref: SessionRef) -> list[Message]:
    return [one for one in CodexLayout(home).read(ref) if isinstance(one, Message)]


def texts(home: Path, ref: SessionRef) -> list[str]:
    return [message.text for message in read(home, ref)]


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(CodexLayout(home), ref)


def codes(found: Summary) -> list[str]:
    return [problem.code for problem in found.problems]


def listed(home: Path) -> dict[str, Summary]:
    return {one.ref.session_id: one for one in summaries(CodexLayout(home))}


def turn(
    number: int, question: str, answer: str, total: tuple[int, ...], turn_id: str | None = None
) -> list[Any]:
    """One turn, as recent versions of the legacy mode store it: everything twice."""
    return [
        context(number, turn_id),
        asked(question, number),
        says("user", question, number),
        event("agent_message", number + 1, message=answer),
        says("assistant", answer, number + 1),
        tokens(total, number + 1),
    ]


TALK = (
    meta(),
    says("user", "<environment_context>\n<cwd>/home/u/app</cwd>\n</environment_context>"),
    event("task_started", 1, turn_id="t1"),
    context(1, "t1"),
    says("user", "Fix the login race", 1),
    asked("Fix the login race", 1),
    event("agent_reasoning", 2, text="Hm."),
    item("reasoning", 2, summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="x"),
    item("function_call", 3, name="shell", arguments='{"command": ["make"]}', call_id="c1"),
    tokens((100, 20, 10, 4), 3),
    event("exec_command_end", 4, call_id="c1", command=["make"], aggregated_output="ok", exit_code=0),
    item("function_call_output", 4, call_id="c1", output="ok"),
    event("agent_message", 5, message="Done."),
    says("assistant", "Done.", 5),
    tokens((300, 120, 30, 4), 5),
    tokens((300, 120, 30, 4), 6),
    event("task_complete", 6, turn_id="t1", last_agent_message="Done."),
)


def test_a_conversation(home: Path) -> None:
    ref = write(home, *TALK)
    notice, person, thought, call, answer, last = read(home, ref)
    assert (notice.origin, person.role, person.origin, person.text) == (
        "harness", "user", "person", "Fix the login race",
    )  # fmt: skip
    assert (thought.thoughts, call.calls[0].name, call.model) == (["Hm."], "shell", "gpt-5")
    assert call.calls[0].arguments == {"command": ["make"]}
    assert (answer.origin, [one.text for one in answer.results]) == ("tool", ["ok"])
    assert (last.text, last.place.line, str(last.time)) == ("Done.", 13, "2026-03-01 09:00:05+00:00")
    assert [one.turn for one in numbered(read(home, ref))] == [0, 1, 1, 1, 1, 1]


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (6, 1, "Fix the login race", "ok")
    assert (found.cwd, found.branch, found.agent, found.nested) == ("/home/u/app", "main", "codex", False)
    assert found.usage_by_model() == {"gpt-5": Usage(input=180, output=30, cache_read=120, reasoning=4)}


# -- turns and texts that are stored more than once


def statements(text: str) -> dict[str, dict[str, Any]]:
    return {
        "response": says("user", text, 1),
        "event": asked(text, 1),
        "item": done("UserMessage", 1, id="i", content=[{"type": "text", "text": text}]),
    }


@pytest.mark.parametrize(
    "order",
    [
        ["response"], ["event"], ["item"], ["event", "response"], ["response", "event"], ["item", "response"],
        ["response", "item"], ["event", "item", "response"],
    ],
)  # fmt: skip
def test_a_turn_counts_once_however_it_is_stored(home: Path, order: list[str]) -> None:
    first, second = statements("Go on"), statements("Go on")
    answer = says("assistant", "Yes.", 2)
    ref = write(home, meta(), *(first[one] for one in order), answer, *(second[one] for one in order))
    # The same words again are another turn; only the time of the records distinguishes them from a repeated line.
    lines = place(home).read_bytes().replace(b"09:00:01", b"09:00:07", 1)
    place(home).write_bytes(lines)
    found = summary(home, ref)
    assert (found.turns, texts(home, ref)) == (2, ["Go on", "Yes.", "Go on"])


@pytest.mark.parametrize("order", [["e", "r", "i"], ["r", "e"], ["i", "r"], ["e"], ["i"], ["r"]])
def test_an_answer_and_a_thought_are_shown_once(home: Path, order: list[str]) -> None:
    made = {
        "r": [item("reasoning", 1, summary=[{"text": "A"}, {"text": "B"}]), says("assistant", "Done.", 2)],
        "e": [
            event("agent_reasoning", 1, text="A"),
            event("agent_reasoning_raw_content", 1, text="B"),
            event("agent_message", 2, message="Done."),
        ],
        "i": [
            done("Reasoning", 1, id="r", summary_text=["A"], raw_content=["B"]),
            done("AgentMessage", 2, id="m", content=[{"type": "Text", "text": "Done."}]),
        ],
    }
    ref = write(home, meta(), *(one for kind in order for one in made[kind]))
    assert [text for one in read(home, ref) for text in one.thoughts] == ["A", "B"]
    assert [one.text for one in read(home, ref) if one.text] == ["Done."]


def test_images_are_named_and_their_marks_are_not_words(home: Path) -> None:
    blocks = [
        {"type": "input_text", "text": '<image name="a.png">'},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is this?"},
    ]
    ref = write(
        home,
        meta(),
        item("message", role="user", content=blocks),
        event("user_message", message="What is this?", images=["data:x"]),
    )
    (message,) = read(home, ref)
    assert ([type(part).__name__ for part in message.parts], message.text) == (
        ["Other", "Text"],
        "What is this?",
    )


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>x</environment_context>",
        "# AGENTS.md instructions for /home/u/app\n\nBe brief.",
        "<user_instructions>x</user_instructions>",
        "<turn_aborted>x</turn_aborted>",
        '<hook_prompt hook_run_id="1">x</hook_prompt>',
        "<of_tomorrow>\nx\n</of_tomorrow>",
    ],
)
def test_what_the_program_adds_is_not_a_turn(home: Path, text: str) -> None:
    found = summary(
        home, write(home, meta(), says("user", text), says("developer", "Rules"), asked("Real", 2))
    )
    assert (found.turns, found.title, found.messages) == (1, "Real", 3)


def test_what_the_program_adds_is_shown_once(home: Path) -> None:
    text = "<environment_context>\n<cwd>/home/u/app</cwd>\n</environment_context>"
    added = [says("user", text), asked(text)]
    assert [one.origin for one in read(home, write(home, meta(), *added))] == ["harness"]


def test_words_of_the_user_in_tags_are_a_turn(home: Path) -> None:
    text = "<b>Fix it</b>"
    assert summary(home, write(home, meta(), says("user", text), asked(text))).turns == 1
    assert summary(home, write(home, meta(), says("user", "<b>Fix</b> it"))).turns == 1


def test_an_editor_adds_its_context_before_the_words_of_the_user(home: Path) -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it\n"
    ref = write(home, meta(), asked(text), asked("And test it", 2))
    assert summary(home, ref).title == "Fix it"
    assert texts(home, ref)[0] == text


def test_the_same_line_twice_is_one_record(home: Path) -> None:
    ref = write(home, meta(), asked("Once"), asked("Once"), tokens((10, 0, 1)), tokens((10, 0, 1)))
    found = summary(home, ref)
    assert (found.turns, found.usage_by_model()) == (1, {"(not named)": Usage(input=10, output=1)})


# -- tools


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        (item("function_call", name="shell", arguments='{"a": 1}', call_id="c"), "shell", {"a": 1}),
        (item("function_call", name="shell", arguments="{torn", call_id="c"), "shell", "{torn"),
        (item("function_call", name="find", namespace="mcp__hub__", arguments={}, call_id="c"), "mcp__hub__find", {}),
        (item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c"), "apply_patch", "*** Begin"),
        (item("local_shell_call", action={"command": ["ls"]}, call_id="c"), "local_shell", {"command": ["ls"]}),
        (item("tool_search_call", arguments={"query": "x"}, call_id="c"), "tool_search", {"query": "x"}),
        (item("tool_call", function={"name": "bash"}, arguments={"a": "ls"}, call_id="c"), "bash", {"a": "ls"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "answer",
    [
        item("function_call_output", 2, call_id="c", output="fine"),
        item("custom_tool_call_output", 2, call_id="c", output={"content": "fine", "success": True}),
        item("tool_search_output", 2, call_id="c", tools=[{"type": "text", "text": "fine"}]),
        item("tool_result", 2, call_id="c", result={"stdout": "fine", "exitCode": 0}),
    ],
)
def test_calls_of_all_kinds_and_their_results(
    home: Path, call: dict[str, Any], name: str, arguments: Any, answer: dict[str, Any]
) -> None:
    ref = write(home, meta(), call, answer, asked("Next", 3))
    first, second, _ = read(home, ref)
    assert (first.calls[0].name, first.calls[0].arguments) == (name, arguments)
    assert [(one.text, one.is_error) for one in second.results] == [("fine", False)]
    assert summary(home, ref).health == "ok"


@pytest.mark.parametrize(
    "output",
    [
        "Exit code: 2\nWall time: 0 seconds\nOutput:\nno",
        "Chunk ID: 1\nProcess exited with code 1\nOutput:\n",
        '{"output":"no","metadata":{"exit_code":1}}',
        {"content": "no", "success": False},
        {"stderr": "no", "exitCode": 1},
    ],
)
def test_a_failure_is_an_error(home: Path, output: Any) -> None:
    ref = write(home, meta(), item("function_call_output", call_id="c", output=output))
    assert read(home, ref)[0].results[0].is_error


def test_a_call_without_a_result_is_reported_unless_it_is_the_last(home: Path) -> None:
    call = item("function_call", name="shell", arguments="{}", call_id="c")
    assert summary(home, write(home, meta(), call)).health == "ok"
    assert codes(summary(home, write(home, meta(), call, asked("Go on", 2)))) == ["orphaned_call"]


def test_what_the_server_executes_waits_for_no_result(home: Path) -> None:
    ref = write(
        home,
        meta(),
        item("web_search_call", id="w", action={"type": "search", "query": "x"}),
        event("web_search_end", 2, call_id="w", query="x", results=[{"type": "text", "text": "found"}]),
        item("image_generation_call", 3, id="g", revised_prompt="a cat", result="AAAA" * 100),
        event("image_generation_end", 4, call_id="g", result="AAAA" * 100),
        asked("Next", 5),
    )
    search, answer, image, _ = read(home, ref)
    assert (search.calls[0].name, search.calls[0].arguments["query"]) == ("web_search", "x")
    assert [one.text for one in answer.results] == ["found"]
    assert (image.calls[0].arguments, image.parts[1].kind) == ({"revised_prompt": "a cat"}, "image")  # type: ignore[union-attr]
    assert summary(home, ref).health == "ok"


@pytest.mark.parametrize(
    ("stated", "name", "text", "failed"),
    [
        (event("exec_command_end", call_id="n", command=["ls"], aggregated_output="a", exit_code=1),
         "exec_command", "a", True),
        (done("CommandExecution", id="n", command=["ls"], aggregated_output="a", exit_code=0, status="completed"),
         "CommandExecution", "a", False),
        (event("mcp_tool_call_end", call_id="n", invocation={"server": "s", "tool": "find", "arguments": {}},
               result={"Ok": {"content": [{"type": "text", "text": "a"}]}}), "find", "a", False),
        (event("mcp_tool_call_end", call_id="n", invocation={"server": "s", "tool": "find"}, result={"Err": "no"}),
         "find", "{'Err': 'no'}", True),
        (event("patch_apply_end", call_id="n", changes={"a.txt": {}}, stdout="a", success=False),
         "patch_apply", "a", True),
        (done("McpToolCall", id="n", server="s", tool="find", arguments={}, result={"content": "a"}),
         "find", "a", False),
    ],
)  # fmt: skip
def test_what_a_tool_did_inside_of_another_is_shown(
    home: Path, stated: dict[str, Any], name: str, text: str, failed: bool
) -> None:
    ref = write(home, meta(), stated, asked("Next", 2))
    call, answer, _ = read(home, ref)
    assert (call.calls[0].name, answer.results[0].text, answer.results[0].is_error) == (name, text, failed)
    assert summary(home, ref).health == "ok"
    outer = item("function_call", name="x", arguments="{}", call_id="n")
    result = item("function_call_output", 2, call_id="n", output="ok")
    assert len(read(home, write(home, meta(), outer, stated, result))) == 2, (
        "known from the records of its call"
    )


# -- other records


KNOWN = (
    "account/rateLimits/updated context_compacted guardian_assessment item_started sub_agent_activity task_complete"
    " task_started thread_goal_updated thread_settings_applied turn_aborted turn_started exec_command_begin"
    " agent_message_delta plan_update"
).split()


@pytest.mark.parametrize("kind", KNOWN)
def test_known_events_are_not_messages(home: Path, kind: str) -> None:
    assert summary(home, write(home, meta(), event(kind, turn_id="t"))).messages == 0


@pytest.mark.parametrize("kind", ["world_state", "inter_agent_communication_metadata", "token_usage_record"])
def test_known_records_are_not_messages(home: Path, kind: str) -> None:
    assert summary(home, write(home, meta(), record(kind, usage={"input_tokens": 5}))).messages == 0


@pytest.mark.parametrize("kind", ["ghost_snapshot", "compaction", "additional_tools"])
def test_known_items_are_not_messages(home: Path, kind: str) -> None:
    assert summary(home, write(home, meta(), item(kind, encrypted_content="x"))).messages == 0


@pytest.mark.parametrize(
    "unknown",
    [
        {"type": "of-tomorrow", "timestamp": "2026-03-01T09:00:00Z", "payload": {"words": "x"}},
        {"type": "event_msg", "payload": {"type": "of-tomorrow"}},
        {"type": "response_item", "payload": {"type": "of-tomorrow"}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "OfTomorrow"}}},
        {"type": "response_item", "payload": ["no", "object"]},
        {"type": 5, "payload": {}},
        {"words": "x"},
    ],
)
def test_an_unknown_record_is_shown(home: Path, unknown: dict[str, Any]) -> None:
    (message,) = read(home, write(home, meta(), unknown))
    assert (message.role, message.parts[0].value) == (None, unknown)  # type: ignore[union-attr]


def test_notices_plans_reviews_and_words_of_other_agents(home: Path) -> None:
    ref = write(
        home,
        meta(),
        event("error", message="Rate limit"),
        event("error", 2, error={"kind": "x", "message": "Gone"}),
        event("entered_review_mode", 3, user_facing_hint="changes of main"),
        event("exited_review_mode", 4, review_output={"overall_explanation": "Fine", "findings": []}),
        done("Plan", 5, id="p", text="First this"),
        item("agent_message", 6, author="/root", content=[{"type": "input_text", "text": "Do it"}]),
        record("inter_agent_communication", 7, content="Hello"),
    )  # fmt: skip
    assert [(one.origin, one.text) for one in read(home, ref)] == [
        ("harness", "Rate limit"), ("harness", "Gone"), ("harness", "changes of main"), ("agent", "Fine"),
        ("agent", "First this"), ("agent", "Do it"), ("agent", "Hello"),
    ]  # fmt: skip
    assert summary(home, ref).turns == 0


def test_a_compaction_hides_nothing(home: Path) -> None:
    kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Early"}]}]
    ref = write(
        home,
        meta(),
        asked("Early"),
        record("compacted", 2, message="Summary", replacement_history=kept),
        event("context_compacted", 2),
        record("compacted", 3, message="", replacement_history=kept),
        asked("Late", 4),
    )
    assert [(one.origin, one.text) for one in read(home, ref)] == [
        ("person", "Early"), ("compaction", "Summary"), ("compaction", ""), ("person", "Late"),
    ]  # fmt: skip


def test_records_of_older_versions_have_no_frame(home: Path) -> None:
    ref = write(
        home,
        {"id": ID, "timestamp": "2025-05-01T09:00:00Z", "instructions": None, "git": {"branch": "old"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"created_at": "2025-05-01T09:00:05Z", "role": "assistant", "content": "Yes", "model": "o4"},
        {"created_at": "2025-05-01T09:00:06Z", "role": "user", "message": "Thanks"},
        {"created_at": "2025-05-01T09:00:07Z", "type": "function_result", "name": "x", "result": "42"},
    )
    found = read(home, ref)
    assert [one.role for one in found] == ["user", "assistant", "tool", "assistant", "user", "tool"]
    assert (found[3].model, str(found[3].time), found[5].text) == ("o4", "2025-05-01 09:00:05+00:00", "42")
    assert (summary(home, ref).turns, summary(home, ref).branch) == (2, "old")


# -- tokens


def test_tokens_are_the_growth_of_the_counter(home: Path) -> None:
    ref = write(
        home,
        meta(),
        context(1, model="a"),
        tokens((100, 40, 10, 5), 1, last=(100, 40, 10, 5)),
        event("token_count", 2, info=None, rate_limits={}),
        tokens((100, 40, 10, 5), 3, last=(100, 40, 10, 5)),
        context(4, model="b"),
        tokens((300, 40, 30, 5), 4),
        tokens((50, 0, 5, 0), 5, last=(50, 0, 5, 0)),  # the counter began anew
    )
    assert summary(home, ref).usage_by_model() == {
        "a": Usage(input=60, output=10, cache_read=40, reasoning=5),
        "b": Usage(input=250, output=25),
    }


def test_tokens_written_to_a_cache_are_part_of_the_input(home: Path) -> None:
    total = {
        "input_tokens": 100,
        "cached_input_tokens": 30,
        "cache_write_input_tokens": 20,
        "output_tokens": 1,
    }
    ref = write(home, meta(), event("token_count", info={"total_token_usage": total}))
    assert summary(home, ref).usage_by_model() == {
        "(not named)": Usage(input=50, output=1, cache_read=30, cache_write=20)
    }


def test_older_versions_count_each_turn_by_itself(home: Path) -> None:
    used = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}
    ref = write(
        home,
        meta(),
        event("turn.completed", 1, usage=used),
        event("turn.completed", 2, usage=used),
        event("token_count", 3, info={"prompt": 7, "completion": 1}),
    )
    assert summary(home, ref).usage_by_model() == {"(not named)": Usage(input=19, output=5, cache_read=8)}


@pytest.mark.parametrize("odd", [-5, "7", None, 1.5, True, [], 10**30])
def test_odd_numbers_of_tokens_end_no_reader(home: Path, odd: Any) -> None:
    ref = write(
        home, meta(), event("token_count", info={"total_token_usage": {"input_tokens": odd}}), asked("x", 2)
    )
    assert summary(home, ref).turns == 1


# -- turns that were rolled back


def test_turns_that_were_rolled_back_are_not_shown_and_count(home: Path) -> None:
    ref = write(
        home,
        meta(),
        *turn(1, "Q1", "A1", (10, 0, 1)),
        *turn(3, "Q2", "A2", (20, 0, 2)),
        event("thread_rolled_back", 5, num_turns=1),
        *turn(6, "Q3", "A3", (30, 0, 3)),
    )
    assert texts(home, ref) == ["Q1", "A1", "Q3", "A3"]
    found = summary(home, ref)
    assert (found.turns, found.usage_by_model()) == (2, {"gpt-5": Usage(input=30, output=3)})
    assert [(one.code, one.message) for one in found.problems] == [
        ("not_shown", "2 messages of turns that were rolled back are not shown")
    ]


def test_more_words_within_a_task_belong_to_its_turn(home: Path) -> None:
    ref = write(
        home,
        meta(),
        event("task_started", 1, turn_id="t1"), asked("Q1", 1), event("task_complete", 1, turn_id="t1"),
        event("task_started", 2, turn_id="t2"), says("user", "<environment_context>"), asked("Q2", 2),
        asked("and more", 3), event("task_complete", 3, turn_id="t2"),
        event("thread_rolled_back", 4, num_turns=1),
        asked("Q3", 5),
        event("thread_rolled_back", 6, num_turns=9),
        asked("Q4", 7),
    )  # fmt: skip
    assert texts(home, ref) == ["Q4"]
    at_most_one = place(home).read_bytes().splitlines(keepends=True)[:-2]
    place(home).write_bytes(b"".join(at_most_one))
    assert texts(home, ref) == ["Q1", "Q3"]


def test_a_rollback_of_odd_size_changes_nothing(home: Path) -> None:
    for count in (0, -1, "2", None):
        ref = write(home, meta(), asked("Q1"), event("thread_rolled_back", 2, num_turns=count))
        assert texts(home, ref) == ["Q1"]


# -- files


def test_a_compressed_rollout_is_read_as_a_plain_one(home: Path) -> None:
    ref = write(home, *TALK)
    plain, found = read(home, ref), summary(home, ref)
    target = compress(Path(ref.locator))
    layout = CodexLayout(home)
    (again,) = layout.discover()
    assert again.locator == str(target)
    messages = [one for one in layout.read(again) if isinstance(one, Message)]
    assert [one.parts for one in messages] == [one.parts for one in plain]
    assert summary(home, again).usage == found.usage
    line = encoded(TALK).splitlines()[12]
    assert (messages[-1].place.line, layout.raw(again, messages[-1].place)) == (13, line)
    assert compressed_line(OS_FS, str(target), 0) == encoded(TALK).splitlines()[0]


def test_a_rollout_that_is_compressed_meanwhile_is_found(home: Path) -> None:
    ref = write(home, *TALK)
    layout = CodexLayout(home)
    assert list(layout.discover()) == [ref]
    compress(Path(ref.locator))
    assert "Done." in [one.text for one in layout.read(ref) if isinstance(one, Message)]


def test_the_plain_file_and_the_live_folder_win(home: Path) -> None:
    write(home, meta(), asked("old"))
    compress(place(home))
    place(home, folder="archived_sessions").write_bytes(encoded([meta(), asked("archived")]))
    ref = write(home, meta(), asked("new"))
    found = listed(home)
    assert (list(found), found[ID].title, codes(found[ID])) == ([ID], "new", ["second_copy"] * 2)
    assert found[ID].ref == ref


def test_archived_sessions_are_listed(home: Path) -> None:
    place(home, folder="archived_sessions").write_bytes(encoded(TALK))
    assert listed(home)[ID].turns == 1


def test_large_compressed_rollouts_are_read_in_pieces(home: Path) -> None:
    many = [asked("x" * 5000 + str(number), number) for number in range(1500)]
    ref = write(home, meta(), *many)
    path = Path(ref.locator)
    frames = zstandard.ZstdCompressor()
    data = path.read_bytes()
    target = path.with_suffix(".jsonl.zst")
    target.write_bytes(frames.compress(data[:1_000_001]) + frames.compress(data[1_000_001:]))
    path.unlink()
    (ref,) = CodexLayout(home).discover()
    found = read(home, ref)
    assert [one.text[5000:] for one in found] == [str(number) for number in range(1500)]
    assert [one.place.line for one in found] == list(range(2, 1502))


def test_a_compressed_rollout_that_ends_early_is_read_to_there(home: Path) -> None:
    lines = [asked(f"{random.Random(number).random()} {number}", number) for number in range(20_000)]
    ref = write(home, meta(), *lines)
    target = compress(Path(ref.locator))
    data = target.read_bytes()
    target.write_bytes(data[: len(data) // 2])
    (found,) = listed(home).values()
    assert 5000 < found.turns < 15_000
    assert {"bad_zstd", "torn_tail"} >= set(codes(found)) >= {"bad_zstd"}
    assert found.health == "lost_data"


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfdnot really", b"words", b""])
def test_what_cannot_be_decompressed_is_not_a_session_and_is_reported(home: Path, data: bytes) -> None:
    path = place(home).with_suffix(".jsonl.zst")
    path.write_bytes(data)
    layout = CodexLayout(home)
    (ref,) = layout.discover()
    assert bool(listed(home)) == (data == b"")
    assert [one.code for one in layout.check(ref)] == (["bad_zstd"] if data else [])


def test_a_plain_rollout_with_the_name_of_a_compressed_one_is_read(home: Path) -> None:
    path = place(home).with_suffix(".jsonl.zst")
    path.write_bytes(encoded(TALK))
    assert listed(home)[ID].turns == 1


def test_what_is_not_a_rollout_is_left_out(home: Path) -> None:
    ref = write(home, *TALK)
    for name in ("notes.jsonl", "rollout-x.jsonl", "rollout-2026-03-01T09-00-00-a.json"):
        Path(ref.locator).with_name(name).write_text("{}\n")
    for name in ("auth.json", "history.jsonl", "session_index.jsonl"):
        (home / name).write_text("{}\n")
    assert [one.session_id for one in CodexLayout(home).discover()] == [ID]
    assert CodexLayout(home).ref_for_path(home / "history.jsonl") is None
    assert list(CodexLayout(home / "nothing").discover()) == []


def test_sessions_are_known_by_their_file_and_need_no_header(home: Path) -> None:
    write(home, meta(OTHER))
    write(home, asked("No header"), name=PAGE)
    found = listed(home)
    assert (set(found), found[ID].messages, found[PAGE].title) == ({ID, PAGE}, 0, "No header")


# -- titles


def test_titles_by_rank(home: Path) -> None:
    named = event("thread_name_updated", 8, thread_name="Named")
    ref = write(home, *TALK)
    assert summary(home, ref).title == "Fix the login race"
    rows = [
        {"id": ID, "thread_name": "First"},
        {"id": OTHER, "thread_name": "No"},
        {"id": ID, "thread_name": "Second"},
    ]
    (home / "session_index.jsonl").write_bytes(encoded([*rows[:2], b"{torn\n", rows[2], {"id": 5}]))
    assert summary(home, ref).title == "Second"
    assert summary(home, write(home, *TALK, named)).title == "Named"


def test_a_new_title_beside_the_rollout_is_seen(home: Path) -> None:
    ref = write(home, *TALK)
    os.utime(ref.locator, (1, 1))
    layout = CodexLayout(home, now=lambda: 4e9)
    before = layout.fingerprint(ref)
    (home / "session_index.jsonl").write_bytes(encoded([{"id": ID, "thread_name": "New"}]))
    assert layout.fingerprint(ref) == before, "asked once in a list"
    list(layout.discover())
    assert layout.fingerprint(ref) != before != b""


def state(home: Path, *rows: dict[str, Any], name: str = "state_5.sqlite") -> None:
    """A database as Codex keeps it, with the columns that the rows have."""
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).unlink(missing_ok=True)
    columns = list(rows[0])
    with closing(sqlite3.connect(home / name)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"CREATE TABLE threads ({', '.join(columns)})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO threads VALUES ({marks})", [tuple(row.values()) for row in rows])
        connection.commit()


@pytest.mark.parametrize("folder", ["", "sqlite/"])
def test_the_title_in_the_newest_database_wins(home: Path, folder: str) -> None:
    ref = write(home, *TALK, event("thread_name_updated", 8, thread_name="Named"))
    path = ref.locator
    state(home, {"id": ID, "rollout_path": path, "title": "Old"}, name="state_4.sqlite")
    row = {"id": ID, "rollout_path": path, "title": "Shown", "first_user_message": "Fix the login race"}
    state(home, row, name=f"{folder}state_12.sqlite")
    before = {one: one.read_bytes() for one in home.rglob("*") if one.is_file()}
    assert summary(home, ref).title == "Shown"
    assert list(CodexLayout(home).check(ref)) == []
    assert before == {one: one.read_bytes() for one in home.rglob("*") if one.is_file()}
    state(home, {**row, "name": "Given"}, name=f"{folder}state_12.sqlite")
    assert summary(home, ref).title == "Given"
    state(home, {**row, "title": row["first_user_message"]}, name=f"{folder}state_12.sqlite")
    assert summary(home, ref).title == "Named"


def test_a_session_that_codex_does_not_find_is_reported_by_check(home: Path) -> None:
    ref = write(home, *TALK)
    for row in ({"id": OTHER, "rollout_path": "x"}, {"id": ID, "rollout_path": "/gone.jsonl"}):
        state(home, row)
        (problem,) = CodexLayout(home).check(ref)
        assert (problem.code, problem.severity) == ("not_indexed", Severity.stops_resume)
        assert summary(home, ref).health == "ok", "a list says nothing of it"


@pytest.mark.parametrize("damage", ["no database", "no table"])
def test_a_database_that_cannot_be_read_hides_no_session(home: Path, damage: str) -> None:
    ref = write(home, *TALK)
    if damage == "no database":
        (home / "state_5.sqlite").write_bytes(b"words" * 1000)
    else:
        state(home, {"id": ID})
        with closing(sqlite3.connect(home / "state_5.sqlite")) as connection:
            connection.execute("ALTER TABLE threads RENAME TO others")
    assert summary(home, ref).title == "Fix the login race"
    layout = CodexLayout(home)
    assert list(layout.check(ref)) == []
    assert [one.code for one in layout.check_home()] == ["unreadable_index"] * (damage == "no database")


# -- pages


def ordinals(records: Iterable[dict[str, Any]], first: int = 0) -> list[dict[str, Any]]:
    return [{**one, "ordinal": number} for number, one in enumerate(records, first)]


def base(page: str, before: bytes) -> dict[str, Any]:
    count = before.count(b"\n")
    last = json.loads(before.splitlines()[-1]) if b"{" in before else {}
    end = last.get("ordinal", count - 1) + 1
    return {"thread_id": page, "end_ordinal_exclusive": end, "end_byte_offset": len(before)}


def question(number: int, text: str, total: int) -> list[dict[str, Any]]:
    return [
        event("task_started", number, turn_id=f"t{number}"),
        context(number, f"t{number}"),
        done("UserMessage", number, id=f"u{number}", content=[{"type": "text", "text": text}]),
        says("user", text, number),
        says("assistant", f"Re: {text}", number + 1),
        tokens((total, 0, 1), number + 1),
        event("task_complete", number + 1, turn_id=f"t{number}"),
    ]


def paged(home: Path, *, cut: int = 15) -> SessionRef:
    """A session of three pages; the second one continues the first one behind `cut` records."""
    first = ordinals([meta(history_mode="paginated"), *question(1, "One", 10), *question(3, "Two", 20)])
    write(home, *first, name=ID, hour=9)
    at = base(ID, encoded(first[:cut]))
    second = ordinals([meta(history_mode="paginated", history_base=at), *question(5, "Three", 40)], cut)
    write(home, *second, name=f"{ID}_{PAGE}", hour=10)
    at = base(PAGE, encoded(second))
    third = ordinals([meta(history_mode="paginated", history_base=at), *question(7, "Four", 80)], cut + 8)
    return write(home, *third, name=f"{ID}_{LAST}", hour=11)


def asked_in(home: Path, ref: SessionRef) -> list[str]:
    return [one.text for one in read(home, ref) if one.origin == "person"]


def test_a_line_of_pages_is_one_session(home: Path) -> None:
    ref = paged(home)
    found = listed(home)
    assert (list(found), found[ID].turns, found[ID].health) == ([ID], 4, "ok")
    assert asked_in(home, ref) == ["One", "Two", "Three", "Four"]
    assert found[ID].usage_by_model() == {"gpt-5": Usage(input=80, output=1)}
    sizes = [path.stat().st_size for path in home.rglob("*.jsonl")]
    assert found[ID].size == sum(sizes)
    assert len(list(CodexLayout(home).parts(ref))) == 3
    assert all(CodexLayout(home).raw(ref, one.place).startswith(b"{") for one in read(home, ref))
    for path in home.rglob("*.jsonl"):
        assert CodexLayout(home).ref_for_path(path) == ref, "each page leads to the session"


def test_what_was_reverted_counts_and_is_not_shown(home: Path) -> None:
    ref = paged(home, cut=8)
    found = summary(home, ref)
    assert asked_in(home, ref) == ["One", "Three", "Four"]
    assert found.usage_by_model() == {"gpt-5": Usage(input=10 + 10 + 30 + 40, output=1)}
    assert [one.message for one in found.problems] == [
        "2 messages behind the point to which the session was reverted are not shown"
    ]


def test_a_page_that_was_reverted_as_a_whole_counts_and_is_not_shown(home: Path) -> None:
    paged(home)
    first = place(home, ID, 9).read_bytes()
    at = base(ID, b"".join(first.splitlines(keepends=True)[:8]))
    last = ordinals([meta(history_base=at), *question(9, "Five", 15)], 8)
    ref = write(home, *last, name=f"{ID}_{OTHER}", hour=12)
    found = summary(home, ref)
    assert asked_in(home, ref) == ["One", "Five"]
    assert sum(one.usage.input for one in found.usage) == 10 + 10 + 20 + 40 + 5
    assert codes(found) == ["not_shown"] * 3


def test_pages_may_be_compressed(home: Path) -> None:
    ref = paged(home)
    before = [one.parts for one in read(home, ref)]
    for hour, name in ((9, ID), (10, f"{ID}_{PAGE}")):
        compress(place(home, name, hour))
    assert [one.parts for one in read(home, ref)] == before
    assert summary(home, ref).health == "ok"


def test_a_missing_page_is_reported_and_the_others_are_read(home: Path) -> None:
    ref = paged(home)
    place(home, ID, 9).unlink()
    assert asked_in(home, ref) == ["Three", "Four"]
    assert [(one.code, one.severity) for one in summary(home, ref).problems] == [
        ("missing_page", Severity.stops_resume)
    ]


def test_pages_that_form_a_ring_end_no_reader(home: Path) -> None:
    write(home, meta(history_base=base(PAGE, b"x\n")), asked("a"), name=ID, hour=9)
    ref = write(home, meta(history_base=base(ID, b"x\n")), asked("b", 2), name=f"{ID}_{PAGE}", hour=10)
    assert "missing_page" in codes(summary(home, ref))
    assert texts(home, ref)[-1] == "b"


def mended(home: Path, ref: SessionRef, out: Path) -> tuple[list[tuple[str, str]], SessionRef]:
    """The changes of a mended copy, and the session in it, with which nothing is wrong any more."""
    found = mended_copy(CodexLayout(home), ref, out, OS_FS)
    assert found.remaining == []
    assert [one for one in CodexLayout(out).check(found.copy) if one.severity > Severity.note] == []
    return [(one.code, one.what) for one in found.mends], found.copy


@pytest.mark.parametrize("gone", [1, 2], ids=["the first", "the second"])
def test_a_copy_begins_where_a_page_is_missing(home: Path, tmp_path: Path, gone: int) -> None:
    ref = paged(home)
    place(home, *((ID, 9) if gone == 1 else (f"{ID}_{PAGE}", 10))).unlink()
    others = [place(home, f"{ID}_{PAGE}", 10)] if gone == 1 else []
    before = {path: path.read_bytes() for path in [Path(ref.locator), *others]}
    mends, copy = mended(home, ref, tmp_path / "out")
    assert mends == [("missing_page", "the session begins here; the page before is missing")]
    assert asked_in(tmp_path / "out", copy) == (["Three", "Four"] if gone == 1 else ["Four"])
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("change", [-1, 5, 6000], ids=["before", "behind", "past the end"])
def test_a_copy_continues_a_page_at_the_end_of_a_line(home: Path, tmp_path: Path, change: int) -> None:
    ref = paged(home)
    path = place(home, f"{ID}_{PAGE}", 10)
    begun, *rest = path.read_bytes().splitlines(keepends=True)
    stated = json.loads(begun)
    right = stated["payload"]["history_base"]["end_byte_offset"]
    stated["payload"]["history_base"]["end_byte_offset"] += change
    path.write_bytes(encoded([stated]) + b"".join(rest))
    assert len(encoded([stated])) == len(begun), "the page behind it states bytes of it"
    mends, copy = mended(home, ref, tmp_path / "out")
    assert mends == [("bad_cut", f"it continues the page before at byte {right:,}, where a line ends")]
    assert asked_in(tmp_path / "out", copy) == asked_in(home, paged(home))


def test_a_copy_of_a_fork_still_continues_the_session_that_was_forked(home: Path, tmp_path: Path) -> None:
    first = write(home, meta(), says("user", "One", 1))
    at = base(ID, Path(first.locator).read_bytes())
    broken = says("user", "Two", 3)
    ref = write(home, meta(OTHER, history_base=at), broken, b'{"torn', name=OTHER, hour=10)
    found = mended_copy(CodexLayout(home), ref, tmp_path / "out", OS_FS)
    assert [one.code for one in found.mends] == ["torn_tail"]
    assert found.remaining == []
    assert b'"history_base"' in Path(found.copy.locator).read_bytes()


def test_a_copy_keeps_a_compressed_page_under_its_name(home: Path, tmp_path: Path) -> None:
    ref = paged(home)
    compress(place(home, ID, 9))
    with Path(ref.locator).open("ab") as file:
        file.write(b'{"torn')
    found = mended_copy(CodexLayout(home), ref, tmp_path / "out", OS_FS)
    assert asked_in(tmp_path / "out", found.copy) == asked_in(home, ref)


@pytest.mark.parametrize("change", [-1, 10**6])
def test_a_cut_that_is_not_at_the_end_of_a_line_is_reported(home: Path, change: int) -> None:
    ref = paged(home)
    path = place(home, f"{ID}_{PAGE}", 10)
    begun = json.loads(path.read_bytes().splitlines()[0])
    begun["payload"]["history_base"]["end_byte_offset"] += change
    path.write_bytes(encoded([begun]) + b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert "bad_cut" in codes(summary(home, ref))
    assert asked_in(home, ref)[-2:] == ["Three", "Four"]


@pytest.mark.parametrize(("ordinal", "gaps"), [(2, 0), (5, 2), (1, 2)])
def test_ordinals_that_skip_or_repeat_are_reported(home: Path, ordinal: int, gaps: int) -> None:
    numbers = (0, 1, ordinal, 3)
    records = [
        {**one, "ordinal": n}
        for n, one in zip(numbers, [meta(), asked("a"), asked("b", 2), asked("c", 3)], strict=True)
    ]
    found = summary(home, write(home, *records))
    assert codes(found) == ["ordinal_gap"] * gaps
    assert found.turns == 3
    assert not gaps or (found.problems[0].line, found.health) == (3, "stops_resume")


def test_a_ruined_file_reports_a_few_gaps_only(home: Path) -> None:
    many = [{**asked("x", n), "ordinal": 2 * n} for n in range(100)]
    assert codes(summary(home, write(home, *many))) == ["ordinal_gap"] * 20


# -- forks and sub-agents


def spawned(parent: str = ID, **more: Any) -> dict[str, Any]:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    return meta(OTHER, source=source, thread_source="subagent", **more)


def test_a_sub_agent_is_nested_below_its_parent(home: Path) -> None:
    write(home, *TALK)
    write(home, spawned(), *turn(20, "Search", "Found", (10, 0, 1), "s1"), name=OTHER, hour=10)
    found = listed(home)
    assert (found[OTHER].parent, found[OTHER].nested, found[OTHER].health) == (ID, True, "ok")
    assert (found[ID].nested, found[OTHER].turns) == (False, 1)


def test_the_task_of_a_sub_agent_is_its_title(home: Path) -> None:
    words = "Message Type: NEW_TASK\nSender: /root\nPayload:\nSearch the parser"
    task = item("agent_message", author="/root", content=[{"type": "input_text", "text": words}])
    found = summary(home, write(home, spawned(), task, says("assistant", "Found", 2), name=OTHER))
    assert (found.title, found.turns) == ("Search the parser", 0)


def test_a_fork_is_a_session_of_its_own(home: Path) -> None:
    write(home, *TALK)
    write(home, meta(OTHER, forked_from_id=ID), *turn(20, "Go", "On", (10, 0, 1), "f1"), name=OTHER, hour=10)
    found = listed(home)[OTHER]
    assert (found.parent, found.nested, found.turns) == (ID, False, 1)


def copied(records: Iterable[dict[str, Any]], *, stamped: bool) -> list[dict[str, Any]]:
    return [{**one, "timestamp": "2026-03-01T10:00:00.000Z"} if stamped else one for one in records]


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("with_meta", [True, False])
def test_history_that_a_fork_repeats_counts_once(
    home: Path, stamped: bool, ids: bool, with_meta: bool
) -> None:
    past = [
        *turn(1, "Q1", "A1", (100, 50, 10), "t1" if ids else None),
        *turn(3, "Q2", "A2", (200, 90, 20), "t2" if ids else None),
    ]
    write(home, meta(), *past, *turn(5, "Q3", "A3", (300, 90, 30), "t3" if ids else None))
    own = turn(60, "F1", "B1", (250, 100, 25), "f1" if ids else None)
    head = [meta(OTHER, forked_from_id=ID), *([meta()] if with_meta else [])]
    ref = write(home, *head, *copied(past, stamped=stamped), *own, name=OTHER, hour=10)
    assert texts(home, ref) == ["F1", "B1"]
    found = summary(home, ref)
    assert (found.turns, found.usage_by_model()) == (1, {"gpt-5": Usage(input=40, output=5, cache_read=10)})
    assert codes(found) == ["not_shown"]
    assert sum(one.turns for one in listed(home).values()) == 4


def test_what_a_fork_repeats_may_leave_records_out(home: Path) -> None:
    past = turn(1, "Q1", "A1", (100, 50, 10), "t1")
    write(home, meta(), *past)
    kept = [one for one in past if one["payload"].get("type") != "token_count"]
    own = turn(60, "F1", "B1", (150, 50, 15), "f1")
    own[-1] = tokens((150, 50, 15), 61, last=(50, 0, 5))
    ref = write(home, spawned(), meta(), *kept, *own, name=OTHER, hour=10)
    assert texts(home, ref) == ["F1", "B1"]
    assert summary(home, ref).usage_by_model() == {"gpt-5": Usage(input=50, output=5)}


def test_a_stated_ordinal_shows_what_is_repeated(home: Path) -> None:
    past = [asked("Q1"), says("assistant", "A1"), tokens((100, 0, 10))]
    own = [asked("F1", 60), tokens((150, 0, 15), 61)]
    records = ordinals([spawned("gone", subagent_history_start_ordinal=4), *past, *own])
    ref = write(home, *records, name=OTHER)
    assert texts(home, ref) == ["F1"]
    assert sum(one.usage.input for one in summary(home, ref).usage) == 50


def test_a_fork_without_its_parent_says_what_it_may_count_twice(home: Path) -> None:
    ref = write(home, spawned("gone"), meta("gone"), *turn(1, "Q1", "A1", (100, 50, 10), "t1"), name=OTHER)
    found = summary(home, ref)
    assert (found.turns, codes(found), found.health) == (1, ["missing_parent"], "note")
    fresh = write(home, spawned("gone"), *turn(1, "Q1", "A1", (100, 50, 10), "t1"), name=OTHER)
    assert codes(summary(home, fresh)) == []


def test_a_fork_of_a_page_shows_and_counts_its_own_part(home: Path) -> None:
    first = ordinals([meta(), *question(1, "One", 100), *question(3, "Two", 200)])
    write(home, *first)
    begin = meta(OTHER, forked_from_id=ID, history_base=base(ID, encoded(first[:8])))
    ref = write(home, *ordinals([begin, *question(60, "Fork", 130)], 8), name=OTHER, hour=10)
    found = listed(home)
    assert asked_in(home, ref) == ["Fork"]
    assert (found[OTHER].parent, codes(found[OTHER])) == (ID, ["forked"])
    assert [found[one].usage[0].usage.input for one in (ID, OTHER)] == [200, 30]


def test_a_fork_of_a_page_begins_with_what_was_said_before(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = ordinals([meta(), *question(1, "One", 100), *question(3, "Two", 200)])
    write(home, *first)
    begin = meta(OTHER, forked_from_id=ID, history_base=base(ID, encoded(first[:8])))
    second = ordinals([begin, *question(60, "Fork", 130)], 8)
    write(home, *second, name=OTHER, hour=10)
    third = "0f0f0f0f-0000-4000-8000-000000000003"
    again = meta(third, forked_from_id=OTHER, history_base=base(OTHER, encoded(second)))
    ref = write(home, *ordinals([again, *question(90, "Again", 140)], 20), name=third, hour=11)
    before = [one.message for one in CodexLayout(home).read(ref) if isinstance(one, Inherited)]
    assert [one.text for one in before if one.origin == PERSON] == ["One", "Fork"]
    assert {one.usage for one in before} == {None}
    assert (asked_in(home, ref), summary(home, ref).turns, summary(home, ref).title) == (
        ["Again"],
        1,
        "Again",
    )

    def run(*words: str) -> str:
        assert main([*words, "--home", str(home)]) == 0
        return capsys.readouterr().out

    lines = [line for line in run("show", third).splitlines() if line]
    begin_line = next(
        at for at, line in enumerate(lines) if "of the session that this one was forked from" in line
    )
    end_line = next(at for at, line in enumerate(lines) if "the conversation continues" in line)
    assert begin_line < lines.index("One") < lines.index("Fork") < end_line < lines.index("Again", 1)
    shown = json.loads(run("show", third, "--json"))["messages"]
    assert [one["text"] for one in shown if one.get("inherited") and one["role"] == "user"] == ["One", "Fork"]
    assert [one["index"] for one in shown if not one.get("inherited")] == list(
        range(len(shown) - len(before))
    )
    assert "Fork" not in run("show", third, "--tail", "1")
    assert {one["id"] for one in json.loads(run("search", "Fork", "--json"))["hits"]} == {OTHER}


def test_forks_of_each_other_end(home: Path) -> None:
    write(home, meta(history_base=base(OTHER, b"x\n")), *question(1, "One", 100))
    ref = write(
        home, meta(OTHER, history_base=base(ID, b"x\n")), *question(3, "Two", 100), name=OTHER, hour=10
    )
    assert asked_in(home, ref) == ["Two"]


def test_a_fork_of_a_page_that_is_missing_counts_its_last_request(home: Path) -> None:
    begin = meta(OTHER, forked_from_id=ID, history_base=base(ID, b"x\n"))
    ref = write(home, begin, asked("F"), tokens((900, 0, 90), 2, last=(30, 0, 3)), name=OTHER)
    assert summary(home, ref).usage[0].usage == Usage(input=30, output=3)


# -- damage


def test_damage_is_reported_and_hides_nothing_else(home: Path) -> None:
    ref = write(home, *TALK[:5], b'{"torn\n', *TALK[5:], b'{"type":"event_msg","pay')
    assert texts(home, ref)[-1] == "Done."
    found = summary(home, ref)
    assert (codes(found), found.health, found.messages) == (["bad_json", "torn_tail"], "lost_data", 6)
    assert list(CodexLayout(home).check(ref)) == found.problems


@pytest.mark.parametrize("zst", [False, True])
def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path, zst: bool) -> None:
    chance = random.Random(15)
    lines = [json.dumps(one).encode() + b"\n" for one in TALK]
    data = b"".join(lines)
    for _ in range(300):
        at = chance.randrange(len(data))
        spoilt = bytearray(data)
        spoilt[at : at + chance.choice((0, 1, 3))] = bytes(
            chance.randrange(256) for _ in range(chance.choice((1, 2)))
        )
        ref = write(home, bytes(spoilt))
        if zst:
            packed = bytearray(compress(Path(ref.locator)).read_bytes())
            packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
            place(home).with_suffix(".jsonl.zst").write_bytes(packed)
            (ref,) = CodexLayout(home).discover()
        found = list(CodexLayout(home).read(ref))
        words = "\n".join(one.text for one in found if isinstance(one, Message))
        damaged = data[:at].count(b"\n")
        nul = any(isinstance(one, Problem) and one.code in ("nul_run", "bad_zstd") for one in found)
        for numbers, text in (((4, 5), "Fix the login race"), ((12, 13), "Done.")):
            assert nul or zst or text in words or all(abs(number - damaged) <= 1 for number in numbers)
        summary(home, ref)


@pytest.mark.parametrize(
    "odd", [None, 5, "x", [], {}, True, {"type": 7}, {"type": "user_message", "message": 5}]
)
@pytest.mark.parametrize("kind", ["session_meta", "turn_context", "event_msg", "response_item", "compacted"])
def test_odd_contents_end_no_reader(home: Path, kind: str, odd: Any) -> None:
    ref = write(home, meta(), {"type": kind, "payload": odd, "ordinal": odd}, asked("x"))
    assert texts(home, ref)[-1] == "x"
    assert texts(home, write(home, {"type": kind, "payload": odd}, asked("x")))[-1] == "x"


def test_odd_values_in_known_records_end_no_reader(home: Path) -> None:
    chance = random.Random(7)
    odd: tuple[Any, ...] = (None, 5, "x", [], {}, [5], {"type": 5}, True, -1, "\ud800", {"a": {"b": [None]}})
    records = [
        *TALK, meta(forked_from_id=OTHER, history_base={}), done("CommandExecution", id="n", command=["ls"]),
        event("mcp_tool_call_end", invocation={"tool": "x"}, result={"Ok": {"content": []}}),
        event("thread_rolled_back", num_turns=1), record("compacted", message="x"),
        item("web_search_call", id="w", action={}), event("web_search_end", call_id="w", results=[]),
    ]  # fmt: skip
    for _ in range(600):
        one = json.loads(json.dumps(chance.choice(records)))
        where = chance.choice([one, one["payload"]])
        where[chance.choice(list(where))] = chance.choice(odd)
        before = chance.choice([[], [meta()]])
        ref = write(home, *before, one, asked("The end", 50))
        assert "The end" in texts(home, ref) or "rolled" in json.dumps(one)
        summary(home, ref)


def test_two_reads_give_the_same_and_nothing_is_written_or_opened_besides(home: Path) -> None:
    paged(home)
    write(home, *TALK, name=OTHER)
    compress(place(home, OTHER))
    (home / "auth.json").write_text("secret")
    opened: list[str] = []

    class Watched(CountingFs):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            opened.append(path)
            return super().open(path, flags, mode)

    fs = Watched()
    layout = CodexLayout(home, fs)
    for ref in layout.discover():
        assert list(layout.read(ref)) == list(layout.read(ref))
        assert summary_of(layout, ref) == summary_of(layout, ref)
    assert not {name: fs.calls[name] for name in ("write", "rename", "unlink", "mkdir") if fs.calls[name]}
    assert not [path for path in opened if "rollout-" not in path and "session_index" not in path]


def test_it_grants_no_change() -> None:
    assert CodexLayout.capabilities == {Capability.NESTS, Capability.RESUME}
    assert CodexLayout in registry.AGENTS


def test_a_session_is_resumed_by_its_id(home: Path) -> None:
    ref = write(home, meta(cli_version="0.150.0"), asked("x"))
    assert CodexLayout(home).resume_command(ref) == ["codex", "resume", ID]
    assert summary(home, ref).version == "0.150.0"


# -- from a cursor


def append(ref: SessionRef, *records: dict[str, Any] | bytes) -> None:
    with ref.path.open("ab") as file:
        file.write(encoded(records))


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(CodexLayout(home), ref)
    reader.go_on()
    append(ref, *turn(10, "Q2", "A2", (400, 120, 40), "t2")[:3])
    reader.go_on()
    append(
        ref,
        *turn(10, "Q2", "A2", (400, 120, 40), "t2")[3:],
        event("thread_name_updated", 12, thread_name="N"),
    )
    reader.go_on()
    assert reader.resets == 0


def test_a_cursor_stays_small(home: Path) -> None:
    many = [
        one
        for n in range(300)
        for one in (asked(f"Question {n}", n), item("function_call", n, name="x", call_id=f"call_{n:024}"))
    ]
    (cursor,) = (one for one in CodexLayout(home).read(write(home, meta(), *many)) if isinstance(one, Cursor))
    assert len(cursor.state) <= 4096


def test_a_rollback_after_the_cursor_begins_anew(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(CodexLayout(home), ref)
    reader.go_on()
    append(ref, event("thread_rolled_back", 9, num_turns=1), *turn(10, "Q2", "A2", (400, 120, 40), "t2"))
    reader.go_on()
    assert (reader.resets, [one.text for one in reader.items if isinstance(one, Message)][-2:]) == (
        1,
        ["Q2", "A2"],
    )
    append(ref, asked("Q3", 20))
    reader.go_on()
    assert reader.resets == 1


@pytest.mark.parametrize("change", ["replaced", "truncated", "compressed"])
def test_a_file_that_changed_before_the_cursor_is_read_anew(home: Path, change: str) -> None:
    ref = write(home, *TALK)
    reader = Reader(CodexLayout(home), ref)
    reader.go_on()
    if change == "replaced":
        other = ref.path.with_suffix(".new")
        other.write_bytes(ref.path.read_bytes().replace(b"login", b"logout"))
        os.replace(other, ref.path)
    elif change == "truncated":
        os.truncate(ref.path, len(encoded(TALK[:-3])))
    else:
        compress(ref.path)
    reader.go_on()
    assert reader.resets == 1


def _random_records(choose: random.Random, number: int) -> Iterator[dict[str, Any] | bytes]:
    text = f"text {choose.randint(1, 4)}"
    total = (number * 10, number, number)
    made: list[dict[str, Any] | bytes] = [
        asked(text, number), says("user", text, number), says("assistant", text, number),
        event("agent_message", number, message=text), event("agent_reasoning", number, text=text),
        item("reasoning", number, summary=[{"text": text}]), tokens(total, number),
        tokens((5, 0, 1), number, last=(5, 0, 1)), event("task_started", number, turn_id=f"t{number}"),
        event("task_complete", number), context(number, f"t{number}", choose.choice("ab")),
        item("function_call", number, name="x", arguments="{}", call_id=f"c{number % 7}"),
        item("function_call_output", number, call_id=f"c{number % 7}", output="ok"),
        event("exec_command_end", number, call_id=f"c{number % 9}", aggregated_output="a"),
        event("thread_name_updated", number, thread_name=text), {"type": "new", "payload": {}},
        done("UserMessage", number, content=[{"type": "text", "text": text}]), meta(choose.choice([ID, OTHER])),
        b"\0\0\n", b"{\n", b"\n", b'{"type": "event_msg", "pay\n',
        *([event("thread_rolled_back", number, num_turns=choose.randint(1, 3))] if choose.random() < 0.3 else []),
    ]  # fmt: skip
    yield choose.choice(made)


@pytest.mark.parametrize("kind", ["session", "fork", "orphan", "page", "ordinals", "old fork"])
@pytest.mark.parametrize("seed", range(15))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int, kind: str) -> None:
    """Whatever is added: repeated texts, rollbacks, copied records, damage, halves of lines."""
    choose = random.Random(f"{seed} {kind}")
    past = [*turn(1, "Q1", "A1", (10, 0, 1), None if kind == "old fork" else "p1"), asked("more", 3)]
    parent = encoded([meta(OTHER), *past])
    if kind != "orphan":
        write(home, parent, name=OTHER, hour=1)
    if kind in ("fork", "old fork", "orphan"):
        head = meta(forked_from_id=OTHER)
    elif kind == "page":
        head = meta(forked_from_id=OTHER, history_base=base(OTHER, parent))
    else:
        head = meta(subagent_history_start_ordinal=9) if kind == "ordinals" else meta()
    ref = write(home, head)
    reader = Reader(CodexLayout(home), ref)
    reader.go_on()
    number, half = 10, b""
    waiting = past if "fork" in kind else []
    for _ in range(10):
        for _ in range(choose.randint(0, 4)):
            number += 1
            if waiting and choose.random() < 0.8:
                records, waiting = [waiting[0]], waiting[1:]
            else:
                records = list(_random_records(choose, number))
            if kind == "ordinals":
                records = [
                    one if isinstance(one, bytes) else {**one, "ordinal": number - 10} for one in records
                ]
            data = half + encoded(records)
            cut = choose.randint(1, len(data)) if choose.random() < 0.1 else len(data)
            append(ref, data[:cut])
            half = data[cut:]
        reader.go_on()


def test_a_list_reads_what_was_added_and_little_more(home: Path, tmp_path: Path) -> None:
    ref = write(
        home, meta(), *(says(("user", "assistant")[n % 2], "x" * 2000 + str(n), n) for n in range(1500))
    )
    size = ref.path.stat().st_size
    fs = CountingFs()
    layout, catalog = CodexLayout(home, fs), Catalog(str(tmp_path / "cache"))
    (first,) = catalog.summaries(layout)
    assert fs.bytes_read >= size
    append(ref, asked("One more", 9))
    fs.bytes_read = 0
    (second,) = catalog.summaries(layout)
    assert (second.messages, second.turns) == (first.messages + 1, first.turns + 1)
    assert fs.bytes_read <= 3 * (ref.path.stat().st_size - size) + 8192
    assert second == summary(home, ref)


@pytest.mark.parametrize("word", ["Three", "nowhere"])
def test_a_search_decodes_only_sessions_that_may_match(home: Path, word: str) -> None:
    ref = paged(home)
    found = list(CodexLayout(home).read(ref, None, lambda data: word.encode() in data))
    assert bool(found) == (word == "Three")
    assert not found or [one.text for one in found if isinstance(one, Message)] == texts(home, ref)


# -- through the commands


@pytest.fixture
def run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CODEX_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        reported = capsys.readouterr()
        return code, reported.out, reported.err

    return run


@pytest.mark.parametrize("zst", [False, True])
def test_every_reading_command_reads_them_in_place(run: Any, home: Path, zst: bool) -> None:
    ref = write(home, *TALK)
    if zst:
        compress(ref.path)
    code, out, _ = run("list")
    assert (code, "Fix the login race" in out) == (0, True)
    assert "Done." in run("show", ID[:8])[1]
    code, out, _ = run("search", "login")
    assert (code, f"{ID[:8]}:1" in out) == (0, True)
    assert run("search", "make", "--tool", "shell")[0] == 0
    assert run("check")[0] == 0
    rows = json.loads(run("sql", "SELECT model, input, output FROM usage", "--json")[1])
    assert rows == [{"model": "gpt-5", "input": 180, "output": 30}]
    (found,) = json.loads(run("list", "--json")[1])
    assert (found["kind"], found["agent"], found["id"]) == ("codex", "codex", ID)


def test_a_changing_command_refuses_them(run: Any, home: Path) -> None:
    ref = write(home, *TALK)
    before = ref.path.read_bytes()
    code, _, err = run("repair", ID)
    assert (code != 0, "codex" in err, ref.path.read_bytes()) == (True, True, before)


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(home: Path) -> None:
    for number, path in enumerate(sorted((shared_folder() / "samples" / "codex").rglob("*.jsonl"))):
        name = path.name.removeprefix("rollout-")[20:] if path.name.startswith("rollout-") else path.stem
        place(home, name.removesuffix(".jsonl"), number).write_bytes(path.read_bytes())
    found = listed(home)
    assert len(found) == len(list(home.rglob("*.jsonl")))
    unwell = {name for name, one in found.items() if one.health not in ("ok", "note")}
    assert unwell == {"agentsview_function_calls"}, "its first call has no result"
    counts = {name: (one.messages, one.turns) for name, one in found.items()}
    assert counts["schema_drift"] == (4, 1)
    assert counts["traex_rollout_subagent"] == (9, 1)
    parent, child = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "23")
    assert (found[child].parent, counts[parent], counts[child]) == (parent, (3, 1), (2, 1))
    used = {name: one.usage_by_model() for name, one in found.items()}
    assert used["codex_050_legacy"] == {"(not named)": Usage(input=1420, output=910)}
    assert used["codex_053_rate_limit"] == {
        "(not named)": Usage(input=1211, output=182, cache_read=10880, reasoning=128)
    }
