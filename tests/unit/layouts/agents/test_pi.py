"""The sessions of Pi: a tree with branches, labels, compactions of both shapes, forks."""

import random
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts import registry
from sessionary.layouts.agents.pi import PiLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, Other, SessionRef, Summary, Usage
from sessionary.testing.cursors import Reader
from tests.lanes import shared_folder
from tests.support.agent_files import (
    append,
    messages,
    require_equal_pieces,
    require_read_only,
    require_tolerance,
    write_lines,
)

ID = "0190a1b2-0000-7000-8000-000000000001"
FOLDER = "--home-u-app--"
HEAD = {
    "type": "session",
    "version": 3,
    "id": ID,
    "timestamp": "2026-03-01T09:00:00.000Z",
    "cwd": "/home/u/app",
}


def entry(kind: str, number: int, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    before = number - 1 if parent == -1 else parent
    return {
        "type": kind,
        "id": f"e{number}",
        "parentId": f"e{before}" if before else None,
        "timestamp": f"2026-03-01T09:{number % 60:02}:00.000Z",
        **fields,
    }


def says(number: int, role: str, content: Any, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    return entry("message", number, parent, message={"role": role, "content": content, **fields})


def usage(given: int, made: int, cost: float | None = None, **more: int) -> dict[str, Any]:
    return {"input": given, "output": made, **more, "cost": {"total": cost}}


def answer(number: int, text: str, parent: int | None = -1, **fields: Any) -> dict[str, Any]:
    return says(number, "assistant", [{"type": "text", "text": text}], parent, model="opus", **fields)


CALL = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "make"}}
TALK = (
    HEAD,
    says(1, "user", "Fix the login race"),
    says(
        2, "assistant", [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Looking."}, CALL],
        model="opus", provider="anthropic", usage=usage(100, 20, 0.5, cacheRead=40, cacheWrite=7),
    ),
    says(3, "toolResult", [{"type": "text", "text": "ok"}], toolCallId="t1", toolName="bash", isError=False),
    answer(4, "Done.", usage=usage(10, 5, 0.25)),
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def write(
    home: Path, *records: dict[str, Any] | bytes, name: str = f"2026-03-01T09-00-00-000Z_{ID}"
) -> SessionRef:
    path = home / "sessions" / FOLDER / f"{name}.jsonl"
    write_lines(path, *records)
    ref = PiLayout(home).ref_for_path(path)
    assert ref is not None
    return ref


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(PiLayout(home), ref)


def texts(home: Path, ref: SessionRef) -> list[str]:
    return [one.text for one in read(home, ref)]


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(PiLayout(home), ref)


def test_a_conversation(home: Path) -> None:
    person, call, result, last = read(home, write(home, *TALK))
    assert (person.role, person.origin, person.text, person.parent) == (
        "user",
        "person",
        "Fix the login race",
        None,
    )
    assert (call.thoughts, call.text, call.calls[0].arguments) == (["Hm."], "Looking.", {"command": "make"})
    assert (result.role, result.text, result.results[0].call_id) == ("tool", "ok", "t1")
    assert (last.text, last.id, last.model, last.place.line) == ("Done.", "e4", "opus", 5)


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Fix the login race", "ok")
    assert (found.ref.session_id, found.cwd, found.agent, found.parent) == (ID, "/home/u/app", "pi", None)
    assert found.usage_by_model() == {
        "opus": Usage(input=110, output=25, cache_read=40, cache_write=7, cost=0.75)
    }  # fmt: skip


def test_the_title_is_the_last_name(home: Path) -> None:
    ref = write(home, *TALK, entry("session_info", 5, name="Old"), entry("session_info", 6, name="New"))
    assert summary(home, ref).title == "New"
    append(ref, entry("session_info", 7, name=""))
    assert summary(home, ref).title == "Fix the login race"


def test_a_branch_that_was_left_is_not_shown_and_its_tokens_count(home: Path) -> None:
    ref = write(
        home,
        *TALK,
        entry("branch_summary", 5, 1, fromId="e4", summary="Tried make", usage=usage(3, 2)),
        entry("label", 6, targetId="e2", label="first try"),
        answer(7, "Other way", usage=usage(1, 1)),
    )
    assert texts(home, ref) == ["Fix the login race", "Tried make", "Other way"]
    assert [one.origin for one in read(home, ref)] == ["person", "compaction", "agent"]
    found = summary(home, ref)
    assert [one.message for one in found.problems] == [
        "3 records of branches that were rewound or abandoned are not shown"
    ]
    assert found.usage_by_model()["opus"] == Usage(
        input=114, output=28, cache_read=40, cache_write=7, cost=0.75
    )


def test_a_second_root_leaves_the_first(home: Path) -> None:
    ref = write(home, *TALK, says(5, "user", "Anew", None), answer(6, "Yes"))
    assert texts(home, ref) == ["Anew", "Yes"]


def test_a_leaf_entry_moves_the_end(home: Path) -> None:
    ref = write(home, *TALK, entry("leaf", 5, targetId="e1"))
    assert texts(home, ref) == ["Fix the login race"]
    append(ref, answer(6, "Other way", 1))
    assert texts(home, ref) == ["Fix the login race", "Other way"]


@pytest.mark.parametrize(
    "fields",
    [
        {"firstKeptEntryId": "e2", "tokensBefore": 5000},
        {"firstKeptEntryIndex": 0},
        {
            "retainedTail": [
                {"role": "assistant", "content": "Looking.", "usage": {"input": 99, "output": 99}}
            ]
        },
    ],
)
def test_a_compaction_replaces_nothing_and_its_tail_counts_once(home: Path, fields: dict[str, Any]) -> None:
    change = entry("model_change", 5, provider="x", modelId="mini")
    ref = write(home, *TALK, change, entry("compaction", 6, summary="So far", usage=usage(8, 3), **fields))
    found = read(home, ref)
    assert (len(found), found[-1].text, found[-1].origin) == (5, "So far", "compaction")
    assert summary(home, ref).usage_by_model()["mini"] == Usage(input=8, output=3)
    assert summary(home, ref).usage_by_model()["opus"].output == 25


def test_other_roles_and_entries(home: Path) -> None:
    ref = write(
        home,
        HEAD,
        says(1, "system", "", sections={"preamble": "You are", "none": None}, toolsAdded=[]),
        says(2, "bashExecution", None, command="ls", output="a.py", exitCode=1),
        says(3, "custom", [{"type": "text", "text": "hook"}], customType="x"),
        says(4, "branchSummary", None, summary="left"),
        says(5, "of-tomorrow", None, words="x"),
        entry("custom_message", 6, customType="x", content="injected", display=True),
        entry("custom", 7, customType="x", data={}),
        entry("thinking_level_change", 8, thinkingLevel="high"),
        says(
            9,
            "user",
            [{"type": "image", "data": "AA==", "mimeType": "image/png"}, {"type": "text", "text": "See"}],
        ),
        says(10, "assistant", [], errorMessage="overloaded", stopReason="error"),
        entry("of_tomorrow", 11, words="x"),
        {"words": "y"},
    )
    found = read(home, ref)
    assert [(one.role, one.origin) for one in found] == [
        ("system", "harness"), ("user", "harness"), ("system", "harness"), ("system", "compaction"),
        ("of-tomorrow", "harness"), ("system", "harness"), ("user", "person"), ("assistant", "agent"),
        (None, "harness"), (None, "harness"),
    ]  # fmt: skip
    assert (found[0].text, found[1].results[0].text, found[1].results[0].is_error) == (
        "You are",
        "a.py",
        True,
    )
    assert [part.kind for part in (*found[6].parts, *found[7].parts) if isinstance(part, Other)] == [
        "image",
        "error",
    ]
    assert summary(home, ref).turns == 1


def test_a_file_of_version_1_is_linear(home: Path) -> None:
    plain = [{key: value for key, value in one.items() if key not in ("id", "parentId")} for one in TALK[1:]]
    assert len(read(home, write(home, {**HEAD, "version": 1}, *plain))) == 4


def test_what_a_fork_repeats_counts_once(home: Path) -> None:
    first = write(home, *TALK)
    forked = {
        **HEAD,
        "id": "fork",
        "timestamp": "2026-03-01T09:30:00.000Z",
        "parentSession": f"/gone/{first.path.name}",
    }
    records = (forked, *TALK[1:], answer(40, "New", 4, usage=usage(1, 2)))
    ref = write(home, *records, name="2026-03-01T09-30-00-000Z_fork")
    found = {one.ref.session_id: one for one in summaries(PiLayout(home))}
    assert (found["fork"].parent, found["fork"].nested, found["fork"].messages) == (ID, False, 5)
    assert found["fork"].usage_by_model() == {"opus": Usage(input=1, output=2)}
    first.path.unlink()
    assert summary(home, ref).usage_by_model()["opus"].output == 27, "nothing else states it then"


def test_files_directly_in_the_folder_of_sessions(home: Path) -> None:
    write_lines(home / "sessions" / f"2026-03-01T09-00-00-000Z_{ID}.jsonl", *TALK)
    write_lines(home / "sessions" / "rollout-2026-03-01.jsonl", {"type": "session_meta"})
    write_lines(home / "sessions" / "2026" / "03" / "01" / "rollout-x.jsonl", {"type": "session_meta"})
    assert [(one.session_id, one.project) for one in PiLayout(home).discover()] == [(ID, None)]
    assert PiLayout in registry.AGENTS


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    ref = write(home, *TALK, says(5, "user", "And the logout?"), answer(6, "Too."))
    require_tolerance(PiLayout(home), ref, {5: "And the logout?"})


def test_nothing_is_written(home: Path) -> None:
    write(home, *TALK)
    (home / "auth.json").write_text("secret")
    require_read_only(PiLayout, home)


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(PiLayout(home), ref)
    reader.go_on()
    append(ref, entry("label", 5, targetId="e2", label="x"), says(6, "user", "More"))
    reader.go_on()
    append(ref, answer(7, "Yes"), entry("compaction", 8, summary="s", retainedTail=[]))
    reader.go_on()
    assert reader.resets == 0


def test_a_branch_after_the_cursor_begins_anew(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(PiLayout(home), ref)
    reader.go_on()
    append(ref, answer(5, "Other way", 1))
    reader.go_on()
    assert reader.resets == 1


def some(choose: random.Random, number: int) -> dict[str, Any] | bytes:
    parent = number - 1 if choose.random() < 0.85 else choose.randint(0, number - 1)
    kind = choose.choice(
        ["user", "answer", "answer", "label", "leaf", "name", "compaction", "model", "odd", "bad"]
    )
    if kind == "user":
        return says(number, "user", f"text {number}", parent)
    if kind == "answer":
        return answer(number, f"text {number}", parent, usage=usage(1, number))
    if kind == "label":
        return entry("label", number, parent, targetId=f"e{choose.randint(1, number)}")
    if kind == "leaf":
        return entry("leaf", number, parent, targetId=f"e{choose.randint(1, number)}")
    if kind == "name":
        return entry("session_info", number, parent, name=f"T{number}")
    if kind == "compaction":
        return entry("compaction", number, parent, summary="s", usage=usage(1, 1))
    if kind == "model":
        return entry("model_change", number, parent, modelId=f"m{number % 3}")
    if kind == "odd":
        odd: list[dict[str, Any]] = [
            {"words": 1},
            {**HEAD, "id": "x"},
            entry("message", number, parent, message=5),
        ]
        return choose.choice(odd)
    return choose.choice([b"\0\0\n", b"{\n", b'{"type": "message", "mess\n', b"\n"])


@pytest.mark.parametrize("seed", range(60))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    require_equal_pieces(PiLayout(home), write(home, HEAD, says(1, "user", "Begin")), some, seed)


# -- through the commands, and public files


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(home))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    write(home, *TALK)
    for words, expected in (
        (["list"], "Fix the login race"),
        (["show", ID], "Done."),
        (["search", "Done"], ID[:8]),
        (["stats", "--json"], '"opus"'),
    ):
        assert main(words) == 0
        assert expected in capsys.readouterr().out
    assert main(["list", "--home", str(home)]) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(tmp_path: Path) -> None:
    home, samples = tmp_path / "home", shared_folder() / "samples"
    for path in (*(samples / "pi").rglob("*.jsonl"), *(samples / "openclaw").rglob("*.jsonl")):
        write_lines(home / "sessions" / "--samples--" / path.name, path.read_bytes())
    found = {one.ref.session_id: one for one in summaries(PiLayout(home))}
    pi, openclaw = found["agentsview_session"], found["schema_drift"]
    assert (pi.messages, pi.turns, pi.title, pi.health) == (7, 2, "Fix the login bug", "lost_data")
    assert [one.code for one in pi.problems] == ["bad_json"], "a line that is not JSON on purpose"
    assert pi.usage_by_model() == {"claude-opus-4-5": Usage(input=300, output=60, cost=0.015)}
    assert (openclaw.messages, openclaw.turns, openclaw.health) == (5, 1, "ok")
