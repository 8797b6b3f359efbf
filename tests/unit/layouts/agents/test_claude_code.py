"""The sessions of Claude Code: which there are, what is said in them, what they add up to, what is damaged."""

import json
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionary.catalog import Catalog
from sessionary.cli import main
from sessionary.disk.fs import OS_FS
from sessionary.layouts import registry
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.reading import BUSY
from sessionary.layouts.base import Capability
from sessionary.layouts.summary import summaries, summarize, summary_of
from sessionary.model import Message, Other, Problem, SessionRef, Severity, Summary, Usage
from sessionary.testing.cursors import Reader
from sessionary.testing.layout_suite import CountingFs
from sessionary.transcript.fold import LARGEST_STATE
from sessionary.transcript.typed import numbered
from sessionary.workspace import Workspace
from tests.lanes import shared_folder

ID = "3f0c81d2-0000-4000-8000-000000000001"
SLUG = "-home-u-app"


def record(kind: str, number: int, parent: int | None, content: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": None if parent is None else f"u{parent}",
        "timestamp": f"2026-03-01T09:{number:02}:00.000Z",
        "sessionId": ID,
        "cwd": "/home/u/app",
        "gitBranch": "main",
        "message": message,
        **fields,
    }


def use(call_id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "claude"


def write(home: Path, *records: dict[str, Any] | bytes, name: str = ID) -> SessionRef:
    path = home / "projects" / SLUG / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in records)
    )
    ref = ClaudeCodeLayout(home).ref_for_path(path)
    assert ref is not None
    return ref


def read(home: Path, ref: SessionRef) -> list[Message]:
    return [one for one in ClaudeCodeLayout(home).read(ref) if isinstance(one, Message)]


def texts(home: Path, ref: SessionRef) -> list[str]:
    return [message.text for message in read(home, ref)]


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(ClaudeCodeLayout(home), ref)


TALK = (
    record("user", 1, None, "Fix the login race"),
    record(
        "assistant", 2, 1, [{"type": "thinking", "thinking": "Hm.", "signature": "s"}],
        message={"id": "m1", "model": "opus"},
    ),
    record(
        "assistant", 3, 2, [use("t1", command="make")],
        message={"id": "m1", "model": "opus", "usage": {"input_tokens": 10, "output_tokens": 2}},
    ),
    record("user", 4, 3, [result("t1", "ok")], toolUseResult={"stdout": "ok"}),
    record(
        "assistant", 5, 4, [{"type": "text", "text": "Done."}],
        message={"id": "m2", "model": "opus", "usage": {"input_tokens": "20", "output_tokens": 5,
                                                         "cache_read_input_tokens": 7}},
    ),
)  # fmt: skip


def test_a_conversation(home: Path) -> None:
    ref = write(home, {"type": "mode", "mode": "default", "sessionId": ID}, *TALK)
    person, call, answer, last = read(home, ref)
    assert (person.role, person.origin, person.text) == ("user", "person", "Fix the login race")
    assert (call.thoughts, [one.name for one in call.calls], call.model) == (["Hm."], ["Bash"], "opus")
    assert call.calls[0].arguments == {"command": "make"}
    assert (answer.origin, [one.text for one in answer.results]) == ("tool", ["ok"])
    assert (last.text, last.place.line, last.id) == ("Done.", 6, "m2")
    assert [one.turn for one in numbered([person, call, answer, last])] == [1, 1, 1, 1]


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, write(home, *TALK))
    assert (found.messages, found.turns, found.title, found.health) == (4, 1, "Fix the login race", "ok")
    assert (found.cwd, found.branch, found.agent) == ("/home/u/app", "main", "claude_code")
    assert found.usage_by_model() == {"opus": Usage(input=30, output=7, cache_read=7)}, (
        "each response counts once"
    )
    assert (str(found.created), str(found.updated)) == (
        "2026-03-01 09:01:00+00:00",
        "2026-03-01 09:05:00+00:00",
    )


def test_what_costs_more_is_counted_apart(home: Path) -> None:
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7},
        "server_tool_use": {"web_search_requests": 3},
    }
    ref = write(home, record("assistant", 1, None, [], message={"id": "m", "model": "opus", "usage": usage}))
    expected = Usage(input=1, cache_write=9, cache_write_1h=7, web_searches=3)
    assert summary(home, ref).usage_by_model() == {"opus": expected}


def test_searches_of_its_own_tool_count_for_the_model_that_called_it(home: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "WebSearch", "input": {"query": "x"}}
    answer = {"id": "m", "model": "opus", "usage": {"input_tokens": 1}}
    ref = write(
        home,
        record("assistant", 1, None, [call], message=answer),
        record("user", 2, 1, [result("t1", "found")], toolUseResult={"query": "x", "searchCount": 2}),
    )
    assert summary(home, ref).usage_by_model() == {"opus": Usage(input=1, web_searches=2)}
    assert len(read(home, ref)) == 2


def test_titles_by_rank_wherever_they_stand(home: Path) -> None:
    titles: list[dict[str, Any]] = [
        {"type": "custom-title", "customTitle": "Mine"},
        {"type": "ai-title", "aiTitle": "Made"},
        {"type": "summary", "summary": "Sum", "leafUuid": "u5"},
    ]
    for count, expected in ((3, "Mine"), (2, "Made"), (1, "Sum"), (0, "Fix the login race")):
        assert summary(home, write(home, *titles[3 - count :], *TALK)).title == expected


def test_a_rewound_branch_is_left_out_and_reported(home: Path) -> None:
    ref = write(
        home,
        record("user", 1, None, "Start"),
        record("assistant", 2, 1, "Ready"),
        record("user", 3, 2, "First try"),
        record("assistant", 4, 3, "Wrong"),
        record("user", 5, 2, "Second try"),
        record("assistant", 6, 5, "Right"),
    )
    assert texts(home, ref) == ["Start", "Ready", "Second try", "Right"]
    (note,) = summary(home, ref).problems
    assert (note.code, note.severity, note.message) == (
        "not_shown", Severity.note, "2 records of branches that were rewound or abandoned are not shown",
    )  # fmt: skip


def test_what_rewound_and_inner_responses_cost_counts_once(home: Path) -> None:
    def answer(number: int, parent: int, name: str, output: int, **fields: Any) -> dict[str, Any]:
        message = {"id": name, "model": "opus", "usage": {"output_tokens": output}}
        return record("assistant", number, parent, f"text {number}", message=message, **fields)

    ref = write(
        home,
        record("user", 1, None, "Start"),
        answer(2, 1, "m1", 3),
        answer(3, 2, "m1", 5),
        record("user", 4, 1, "Other"),
        answer(5, 4, "m2", 7),
        answer(6, 5, "m3", 11, isSidechain=True),
    )
    found = summary(home, ref)
    assert found.usage_by_model() == {"opus": Usage(output=23)}
    assert (found.messages, found.turns) == (3, 2)


def test_what_a_fork_repeats_counts_once(home: Path) -> None:
    first = write(home, *TALK)
    copies = [{**one, "forkedFrom": {"sessionId": ID, "messageUuid": one["uuid"]}} for one in TALK]
    usage = {"id": "m9", "model": "opus", "usage": {"output_tokens": 1}}
    ref = write(home, *copies, record("assistant", 6, 5, "New", message=usage), name=ID.replace("3f", "4f"))
    found = summary(home, ref)
    assert (found.parent, found.nested, found.messages) == (ID, False, 5)
    assert found.usage_by_model() == {"opus": Usage(output=1)}
    first.path.unlink()
    assert summary(home, ref).usage_by_model()["opus"].output == 8, "nothing else states it then"


def test_a_fork_that_states_the_session_of_each_request_counts_what_it_repeats_once(home: Path) -> None:
    first, own = write(home, *TALK), ID.replace("3f", "4f")
    copies = [{**one, "requestSessionId": ID} if one["type"] == "assistant" else one for one in TALK]
    usage = {"id": "m9", "model": "opus", "usage": {"output_tokens": 1}}
    ref = write(
        home, *copies, record("assistant", 6, 5, "New", requestSessionId=own, message=usage), name=own
    )
    found = summary(home, ref)
    assert (found.parent, found.nested, found.messages) == (ID, False, 5)
    assert found.usage_by_model() == {"opus": Usage(output=1)}
    first.path.unlink()
    assert summary(home, ref).usage_by_model()["opus"].output == 8, "nothing else states it then"


def test_copies_of_requests_and_states_of_the_program_are_no_messages(home: Path) -> None:
    kinds = ("api-request", "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "tools-used")
    ref = write(home, *TALK, *({"type": kind, "sessionId": ID} for kind in kinds))
    assert len(read(home, ref)) == len(read(home, write(home, *TALK, name="other")))
    assert "unknown_shape" not in {one.code for one in ClaudeCodeLayout(home).check(ref)}


def test_what_a_session_in_the_background_repeats_counts_once(home: Path) -> None:
    moved = [{**one, "sessionId": "other", "sessionKind": "bg"} for one in TALK]
    more = record(
        "assistant", 6, 5, "More.", sessionKind="bg",
        message={"id": "m3", "model": "opus", "usage": {"input_tokens": 1, "output_tokens": 1}},
    )  # fmt: skip
    ref = write(home, *moved, more, name="other")
    alone = summary(home, ref).usage_by_model()
    assert alone == {"opus": Usage(input=31, output=8, cache_read=7)}, (
        "the first file is gone: it counts here"
    )
    first = write(home, *TALK)
    assert summary(home, first).usage_by_model() == {"opus": Usage(input=30, output=7, cache_read=7)}
    assert summary(home, ref).usage_by_model() == {"opus": Usage(input=1, output=1)}
    assert summary(home, ref).messages == 5


def test_results_of_parallel_calls_stay_on_the_line(home: Path) -> None:
    ref = write(
        home,
        record("user", 1, None, "Both"),
        record("assistant", 2, 1, [use("a")], message={"id": "m"}),
        record("assistant", 3, 2, [use("b")], message={"id": "m"}),
        record("user", 4, 2, [result("a", "A")]),
        record("user", 5, 3, [result("b", "B")]),
        record("assistant", 6, 5, "Both are there"),
    )
    assert [one.text for message in read(home, ref) for one in message.results] == ["A", "B"]
    assert summary(home, ref).health == "ok"


def test_records_before_a_compaction_or_a_missing_parent_are_shown(home: Path) -> None:
    ref = write(
        home,
        record("user", 1, None, "Early"),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "u2",
            "parentUuid": None,
            "content": "Compacted",
        },
        record("user", 3, 2, "This session is continued", isCompactSummary=True),
        record("user", 5, 4, "After a gap"),
    )
    assert texts(home, ref) == ["Early", "Compacted", "This session is continued", "After a gap"]
    assert [message.origin for message in read(home, ref)] == ["person", "harness", "compaction", "person"]
    assert summary(home, ref).turns == 2


def test_parents_that_form_a_ring_end_no_reader(home: Path) -> None:
    ref = write(home, record("user", 1, 2, "a"), record("assistant", 2, 1, "b"), record("user", 3, 3, "c"))
    assert texts(home, ref) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("<command-name>/clear</command-name>", {}),
        ("Caveat: the messages below were generated by the user", {}),
        ("Look at this", {"isMeta": True}),
        ("[Request interrupted by user]", {}),
    ],
)
def test_what_the_harness_adds_is_not_a_turn(home: Path, content: str, fields: dict[str, Any]) -> None:
    found = summary(
        home, write(home, record("user", 1, None, content, **fields), record("user", 2, 1, "Real"))
    )
    assert (found.turns, found.title) == (1, "Real")


def test_sub_agents_have_their_parent_and_are_nested(home: Path) -> None:
    parent = write(home, *TALK)
    below = home / "projects" / SLUG / ID / "subagents" / "agent-a1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_text(json.dumps(record("user", 1, None, "Search", isSidechain=True)) + "\n")
    flat = write(home, record("user", 1, None, "Old", isSidechain=True), name="agent-b2")
    found = {one.ref.session_id: one for one in summaries(ClaudeCodeLayout(home))}
    assert set(found) == {parent.session_id, "agent-a1", "agent-b2"}
    assert {found["agent-a1"].parent, found["agent-b2"].parent} == {ID}
    assert ClaudeCodeLayout(home).short_key(flat) == "b2"
    workspace = Workspace(home)
    assert [workspace.is_nested(found[name].ref) for name in ("agent-a1", ID)] == [True, False]


def test_records_of_sub_agents_within_a_file_are_reported(home: Path) -> None:
    ref = write(home, *TALK, record("user", 6, None, "Inner", isSidechain=True))
    assert "Inner" not in texts(home, ref)
    assert [problem.message for problem in summary(home, ref).problems] == [
        "1 record of sub-agents is not shown"
    ]


def test_an_unknown_record_is_shown(home: Path) -> None:
    ref = write(home, *TALK, {"type": "of-tomorrow", "words": "x"})
    assert read(home, ref)[-1].role is None


def test_damage_is_reported_and_hides_nothing_else(home: Path) -> None:
    ref = write(home, TALK[0], b'{"torn\n', *TALK[1:], b'{"type":"user","mess')
    assert len(read(home, ref)) == 4
    found = summary(home, ref)
    assert [problem.code for problem in found.problems] == ["bad_json", "torn_tail"]
    assert (found.health, found.messages) == ("lost_data", 4)
    assert {problem.repair for problem in found.problems} == {
        f"`sessionary repair {ID} --out DIR` writes a repaired copy"
    }
    assert list(ClaudeCodeLayout(home).check(ref)) == found.problems


def test_a_remedy_quotes_what_a_shell_would_run(home: Path) -> None:
    ref = write(home, *TALK, b"{broken\n", name="x; touch owned")
    (problem,) = summary(home, ref).problems
    assert problem.repair == "`sessionary repair 'x; touch owned' --out DIR` writes a repaired copy"


def test_a_call_without_a_result_is_reported_unless_it_is_the_last(home: Path) -> None:
    ref = write(home, *TALK[:3])
    assert summary(home, ref).health == "ok"
    ref = write(home, *TALK[:3], record("user", 4, 3, "Go on"))
    assert [problem.code for problem in summary(home, ref).problems] == ["orphaned_call"]


def test_a_check_reports_a_last_call_of_which_no_tool_is_at_work(home: Path) -> None:
    ref = write(home, *TALK[:3])
    began = 1772355780.0  # 2026-03-01 09:03, the time of the call
    for seconds, expected in ((60.0, []), (BUSY + 60.0, ["orphaned_call"])):
        layout = ClaudeCodeLayout(home, now=partial(float, began + seconds))
        assert [problem.code for problem in layout.check(ref)] == expected


@pytest.mark.parametrize(
    ("records", "code", "line"),
    [
        ((record("user", 6, 5, [result("t9", "x")]),), "orphaned_result", 6),
        ((record("user", 6, 5, [result("t1", "again")]),), "repeated_result", 6),
        (
            (record("assistant", 6, 5, [use("t1")], message={"id": "m3"}), record("user", 7, 6, [result("t1", "")])),
            "repeated_call",
            6,
        ),
    ],
)  # fmt: skip
def test_what_does_not_pair_is_reported_with_its_place(
    home: Path, records: tuple[dict[str, Any], ...], code: str, line: int
) -> None:
    found = summary(home, write(home, *TALK, *records))
    assert [(one.code, one.line) for one in found.problems] == [(code, line)]
    assert found.health == "stops_resume"


def test_whole_records_on_damaged_lines_are_read(home: Path) -> None:
    lines = [json.dumps(one).encode() for one in TALK]
    raw = lines[3].replace(b"ok", b"o\x0bk", 1)
    ref = write(
        home, lines[0] + b"\n", b"\0" * 512 + lines[1] + b"\n", lines[2] + b"\n", raw + b"\n", lines[4]
    )
    assert [one.code for one in summary(home, ref).problems if one.severity > Severity.note] == [
        "nul_run",
        "control_characters",
    ]
    person, call, answer, last = read(home, ref)
    assert (person.text, call.thoughts, last.text) == ("Fix the login race", ["Hm."], "Done.")
    assert answer.results[0].text == "o\x0bk"
    assert [one.place.line for one in (person, call, answer, last)] == [1, 2, 4, 5]


def test_a_record_before_its_parent_stays_on_the_line_in_the_order_of_the_file(home: Path) -> None:
    ref = write(home, *TALK[:3], TALK[4], TALK[3])
    assert [one.origin for one in read(home, ref)] == ["person", "agent", "agent", "tool"]
    assert not [one for one in summary(home, ref).problems if one.code == "not_shown"]


def test_of_a_record_stored_twice_the_last_version_counts_at_the_first_place(home: Path) -> None:
    other = record("user", 1, None, "Fix the logout race")
    ref = write(home, *TALK, TALK[3], other)
    assert texts(home, ref) == ["Fix the logout race", "", "", "Done."]
    first = read(home, ref)[0]
    assert json.loads(ClaudeCodeLayout(home).raw(ref, first.place)) == other, (
        "its place is where it is stored"
    )
    assert first.place.line == 7
    notes = [(one.code, one.line) for one in ClaudeCodeLayout(home).check(ref)]
    assert notes == [("duplicate_record", 6), ("changed_duplicate", 7)]


def test_of_many_repeated_records_the_first_are_reported_one_by_one(home: Path) -> None:
    found = list(ClaudeCodeLayout(home).check(write(home, *TALK * 6)))
    assert [one.code for one in found] == ["duplicate_record"] * 20 + ["more_duplicates"]
    assert found[-1].message == "5 more records repeat earlier ones"


def test_the_first_folder_is_the_project_and_the_others_are_reported(home: Path) -> None:
    ref = write(
        home,
        record("user", 1, None, "a", cwd="C:\\Users\\Ann\\app"),
        record("assistant", 2, 1, "b", cwd="/mnt/c/Users/Ann/app"),
        {"type": "relocated", "relocatedCwd": "/home/ann/new", "sessionId": ID},
        record("user", 3, 2, "c", cwd="/mnt/c/Users/Ann/app"),
    )
    found = summary(home, ref)
    assert found.cwd == "C:\\Users\\Ann\\app"
    (note,) = found.problems
    assert (note.code, note.severity) == ("other_folders", Severity.note)
    assert note.message == "the agent also worked in /mnt/c/Users/Ann/app, /home/ann/new"


@pytest.mark.parametrize(
    "unknown",
    [
        record("assistant", 6, 5, [], message={"0": "a", "1": "b"}),
        {**record("system", 6, 5), "subtype": "new_thing", "extra": 1},
        {"type": "user", "uuid": "u6", "parentUuid": "u5"},
    ],
    ids=["numeric keys", "new subtype", "no message"],
)
def test_a_record_of_an_unknown_shape_is_shown_whole(home: Path, unknown: dict[str, Any]) -> None:
    ref = write(home, *TALK, unknown)
    assert read(home, ref)[-1].parts == (Other("record", unknown),)


def test_the_state_of_a_long_session_is_small(home: Path) -> None:
    talk = [record("user", 0, None, "Go")]
    for at in range(1, 3000, 2):
        talk.append(
            record("assistant", at, at - 1, [use(f"t{at}")], message={"id": f"m{at}", "model": "opus"})
        )
        talk.append(record("user", at + 1, at, [result(f"t{at}", "ok")]))
    found = summarize(ClaudeCodeLayout(home), write(home, *talk))
    assert found.progress is not None
    assert len(found.progress.state) + len(found.progress.cursor.state) <= LARGEST_STATE == 4096


def test_any_damage_ends_no_reader_and_hides_no_whole_record(home: Path) -> None:
    chance = random.Random(14)
    lines = [json.dumps(one).encode() + b"\n" for one in TALK]
    data = b"".join(lines)
    for _ in range(300):
        at = chance.randrange(len(data))
        spoilt = bytearray(data)
        spoilt[at : at + chance.choice((0, 1, 3))] = bytes(
            chance.randrange(256) for _ in range(chance.choice((1, 2)))
        )
        ref = write(home, bytes(spoilt))
        found = list(ClaudeCodeLayout(home).read(ref))
        texts_found = "\n".join(one.text for one in found if isinstance(one, Message))
        damaged = data[:at].count(b"\n")
        for number, text in ((0, "Fix the login race"), (4, "Done.")):
            if abs(number - damaged) > 1 and not any(
                isinstance(one, Problem) and one.code == "nul_run" for one in found
            ):
                assert text in texts_found
        summary(home, ref)


def test_two_reads_give_the_same_and_nothing_is_written(home: Path) -> None:
    write(home, *TALK)
    fs = CountingFs()
    layout = ClaudeCodeLayout(home, fs)
    (ref,) = layout.discover()
    assert list(layout.read(ref)) == list(layout.read(ref))
    assert summary_of(layout, ref) == summary_of(layout, ref)
    assert not {name: fs.calls[name] for name in ("write", "rename", "unlink", "mkdir") if fs.calls[name]}


def test_what_is_not_a_session_is_left_out(home: Path) -> None:
    write(home, *TALK)
    for name in ("notes.txt", "sessions-index.json"):
        (home / "projects" / SLUG / name).write_text("{}")
    (home / "history.jsonl").write_text("{}\n")
    assert [ref.session_id for ref in ClaudeCodeLayout(home).discover()] == [ID]
    assert ClaudeCodeLayout(home).ref_for_path(home / "history.jsonl") is None
    assert list(ClaudeCodeLayout(home / "nothing", OS_FS).discover()) == []


def test_it_grants_no_change() -> None:
    assert ClaudeCodeLayout.capabilities == {Capability.NESTS, Capability.RESUME}
    assert ClaudeCodeLayout in registry.AGENTS


# -- from a cursor


def append(ref: SessionRef, *records: dict[str, Any] | bytes) -> None:
    with ref.path.open("ab") as file:
        for one in records:
            file.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(ClaudeCodeLayout(home), ref)
    reader.go_on()
    append(ref, record("user", 6, 5, "And the logout?"), {"type": "custom-title", "customTitle": "Mine"})
    reader.go_on()
    append(ref, record("assistant", 7, 6, [use("a"), use("b")], message={"id": "m3", "model": "opus"}))
    append(ref, record("user", 8, 7, [result("a", "1")]), record("user", 9, 7, [result("b", "2")]))
    reader.go_on()
    assert reader.resets == 0


def test_a_rewind_after_the_cursor_begins_anew(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(ClaudeCodeLayout(home), ref)
    reader.go_on()
    append(ref, record("user", 6, 1, "No: fix the logout"))
    reader.go_on()
    assert reader.resets == 1


def test_a_response_that_continues_after_the_cursor_begins_anew(home: Path) -> None:
    ref = write(home, *TALK)
    reader = Reader(ClaudeCodeLayout(home), ref)
    reader.go_on()
    append(ref, record("assistant", 6, 5, [use("z")], message={"id": "m2", "model": "opus"}))
    reader.go_on()
    assert reader.resets == 1


@pytest.mark.parametrize("change", ["replaced", "truncated", "changed"])
def test_a_file_that_changed_before_the_cursor_is_read_anew(home: Path, change: str) -> None:
    ref = write(home, *TALK)
    reader = Reader(ClaudeCodeLayout(home), ref)
    reader.go_on()
    data = ref.path.read_bytes()
    if change == "replaced":
        ref.path.with_suffix(".new").write_bytes(data.replace(b"login", b"logout"))
        os.replace(ref.path.with_suffix(".new"), ref.path)
    elif change == "truncated":
        os.truncate(ref.path, data.rindex(b"\n", 0, -1) + 1)
    else:
        with ref.path.open("r+b") as file:
            file.write(data.replace(b"Done.", b"Gone."))
    reader.go_on()
    assert reader.resets == 1


@pytest.mark.parametrize("seed", range(80))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    """Whatever is added: branches, parallel calls, sub-agents, damage, halves of lines."""
    choose = random.Random(seed)
    ref = write(home, record("user", 1, None, "Begin"))
    reader = Reader(ClaudeCodeLayout(home), ref)
    reader.go_on()
    number, half = 1, b""
    for _ in range(12):
        for _ in range(choose.randint(0, 4)):
            number += 1
            parent = number - 1 if choose.random() < 0.8 else choose.randint(1, number - 1)
            kind = choose.choice(
                ["user", "assistant", "result", "system", "side", "bad", "again", "title", "half"]
            )
            if kind == "result":
                one: dict[str, Any] | bytes = record("user", number, parent, [result(f"t{parent}", "ok")])
            elif kind == "assistant":
                response = {"id": f"m{number // choose.randint(1, 2)}", "usage": {"output_tokens": number}}
                one = record("assistant", number, parent, [use(f"t{number}")], message=response)
            elif kind == "side":
                one = record("user", number, parent, "helper", isSidechain=True)
            elif kind == "bad":
                one = choose.choice([b"\0\0\n", b"{\n", b'{"type": "user", "mess\n', b"\n"])
            elif kind == "again":
                one = record("user", choose.randint(1, number), parent, "again")
            elif kind == "title":
                one = {
                    "type": choose.choice(["summary", "ai-title"]),
                    "summary": "S",
                    "aiTitle": f"T{number}",
                }
            else:
                one = record("user" if kind == "half" else kind, number, parent, f"text {number}")
            data = half + (one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
            cut = choose.randint(1, len(data)) if kind == "half" else len(data)
            append(ref, data[:cut])
            half = data[cut:]
        reader.go_on()


def test_a_list_reads_what_was_added_and_little_more(home: Path, tmp_path: Path) -> None:
    turns = [
        record("user" if n % 2 else "assistant", n, n - 1 or None, "x" * 2000, message={"id": f"m{n}"})
        for n in range(1, 1500)
    ]
    ref = write(home, *turns)
    size = ref.path.stat().st_size
    fs = CountingFs()
    layout, catalog = ClaudeCodeLayout(home, fs), Catalog(str(tmp_path / "cache"))
    (first,) = catalog.summaries(layout)
    assert fs.bytes_read >= size
    append(ref, record("user", 1500, 1499, "One more"))
    fs.bytes_read = 0
    (second,) = catalog.summaries(layout)
    assert (second.messages, second.turns) == (first.messages + 1, first.turns + 1)
    assert fs.bytes_read <= 3 * (ref.path.stat().st_size - size) + 8192
    assert second == summary(home, ref)


# -- through the commands


@pytest.fixture
def run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        reported = capsys.readouterr()
        return code, reported.out, reported.err

    return run


def test_every_reading_command_reads_them_in_place(run: Any, home: Path) -> None:
    write(home, *TALK)
    code, out, _ = run("list")
    assert (code, "Fix the login race" in out, "/home/u/app" in out) == (0, True, True)
    assert "Done." in run("show", ID[:8])[1]
    code, out, _ = run("search", "login")
    assert (code, "3f0c81d2:0" in out) == (0, True)
    assert run("search", "make", "--tool", "Bash")[0] == 0
    assert run("check")[0] == 0
    stats = json.loads(run("stats", "--json")[1])
    assert stats["usage"]["models"] == [
        {
            "model": "opus",
            "input": 30,
            "output": 7,
            "cache_read": 7,
            "cache_write": 0,
            "reasoning": 0,
            "cost": None,
            "unpriced": 44,
            "stated_cost": None,
            "cache_write_1h": 0,
            "web_searches": 0,
        }
    ]
    rows = json.loads(run("sql", "SELECT time, model, context, output FROM usage", "--json")[1])
    assert rows == [{"time": "2026-03-01 09:00:00", "model": "opus", "context": 0, "output": 7}]
    (listed,) = json.loads(run("list", "--json")[1])
    assert (listed["kind"], listed["agent"], listed["id"]) == ("claude_code", "claude_code", ID)


@pytest.mark.parametrize("command", ["repair", "fork", "trash", "undo", "restore-backup", "events", "rewind"])
def test_every_changing_command_refuses_them(run: Any, home: Path, command: str) -> None:
    ref = write(home, *TALK)
    before = Path(ref.locator).read_bytes()
    more = {"rewind": ["1"]}.get(command, [])
    code, _, err = run(command, ID, *more)
    assert code != 0
    assert "claude_code" in err
    assert ("an event log" if command == "events" else "can only be read") in err
    assert Path(ref.locator).read_bytes() == before


def test_a_changed_session_alone_is_read_again(home: Path, tmp_path: Path) -> None:
    for name in (ID, ID.replace("1", "2")):
        path = Path(write(home, *TALK, name=name).locator)
        os.utime(path, (1_600_000_000, 1_600_000_000))
    cache = str(tmp_path / "cache")
    list(Workspace(home, cache=cache).summaries())
    opened: list[str] = []

    class Watched(CountingFs):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            opened.append(path)
            return super().open(path, flags, mode)

    later = Workspace(home, fs=Watched(), cache=cache)
    for layout in later.layouts:
        if isinstance(layout, ClaudeCodeLayout):
            layout._now = lambda: 4e9
    assert len(list(later.summaries())) == 2
    opened.clear()
    assert len(list(later.summaries())) == 2
    assert not [path for path in opened if path.endswith(".jsonl")]


@pytest.mark.lane("samples")
def test_public_samples_are_read_through_the_layout(tmp_path: Path) -> None:
    folder = shared_folder() / "samples" / "claude"
    home = tmp_path / "home"
    target = home / "projects" / "-samples"
    target.mkdir(parents=True)
    for path in folder.rglob("*.jsonl"):
        (target / path.name).write_bytes(path.read_bytes())
    found = {one.ref.session_id: one for one in summaries(ClaudeCodeLayout(home))}
    assert len(found) == len(list(target.iterdir()))
    assert all(one.messages for one in found.values())
    rewound = found["claude-code-log_dag_compact_after_rewind"]
    assert [problem.code for problem in rewound.problems if problem.severity is Severity.note] == [
        "not_shown"
    ]
    assert found["agentsview_truncated"].health == "lost_data"
    assert found["small"].title == "Stage0 small fixture"
