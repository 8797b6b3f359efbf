"""What Claude Code or its provider refuses: each fault is reported with its place, and nothing else is."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.agents import claude_code_check
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.claude_code_check import LARGEST_IMAGE
from sessionary.layouts.agents.logs import KEPT
from sessionary.model import Problem, Severity
from sessionary.testing.layout_suite import CountingFs
from tests.unit.layouts.agents.test_claude_code import ID, SLUG, TALK, home, record, result, use, write

__all__ = ["home"]


def check(home: Path, *records: dict[str, Any], name: str = ID) -> list[Problem]:
    return list(ClaudeCodeLayout(home).check(write(home, *records, name=name)))


def image(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def png(width: int, height: int) -> bytes:
    return (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\0" * 20
    )


def thinking(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, **fields}


FAULTS: list[tuple[str, list[dict[str, Any]]]] = [
    ("empty_text", [record("user", 6, 5, "  \n")]),
    ("empty_text", [record("assistant", 6, 5, [{"type": "text", "text": ""}])]),
    ("empty_message", [record("user", 6, 5, [])]),
    ("empty_thinking", [record("assistant", 6, 5, [thinking("", signature="s6")])]),
    ("missing_signature", [record("assistant", 6, 5, [thinking("Hm.")])]),
    ("repeated_thinking", [record("assistant", 6, 5, [thinking("Hm.", signature="s")])]),
    ("large_image", [record("user", 6, 5, [image(b"\xff" * LARGEST_IMAGE)])]),
    ("large_image", [record("user", 6, 5, [image(png(8001, 10))])]),
    (
        "orphaned_server_call",
        [
            record(
                "assistant", 6, 5, [{"type": "server_tool_use", "id": "v1", "name": "advisor", "input": {}}]
            )
        ],
    ),
    (
        "orphaned_server_call",
        [record("assistant", 6, 5, [{"type": "web_search_tool_result", "tool_use_id": "v1", "content": []}])],
    ),
]


def test_a_sound_session_has_no_problem(home: Path) -> None:
    sound = [
        record("assistant", 6, 5, [{"type": "server_tool_use", "id": "v1", "name": "advisor", "input": {}}]),
        record("assistant", 7, 6, [{"type": "advisor_tool_result", "tool_use_id": "v1", "content": {}}]),
        record("user", 8, 7, [image(png(8000, 10)), {"type": "text", "text": "Look"}]),
    ]
    assert check(home, *TALK, *sound) == []


@pytest.mark.parametrize(("code", "records"), FAULTS, ids=[code for code, _ in FAULTS])
def test_what_the_provider_refuses_is_reported(home: Path, code: str, records: list[dict[str, Any]]) -> None:
    found = [one for one in check(home, *TALK, *records) if one.code != "unknown_shape"]
    severity = Severity.note if code == "empty_thinking" else Severity.stops_resume
    assert [(one.code, one.severity, one.line) for one in found] == [(code, severity, 6)]
    assert found[0].repair == f"`sessionary repair {ID} --out DIR` writes a repaired copy"


def test_every_code_is_planted() -> None:
    source = Path(claude_code_check.__file__).read_text("utf-8")
    assert {code for code, _ in FAULTS} == set(re.findall(r'self\.refuse\("(\w+)"', source))


def test_findings_before_a_compaction_or_on_another_branch_are_notes(home: Path) -> None:
    empty = record("user", 6, 5, "")
    compacted = record("user", 7, None, "So far: x", isCompactSummary=True, logicalParentUuid="u6")
    (found,) = check(home, *TALK, empty, compacted)
    assert (found.code, found.severity) == ("empty_text", Severity.note)
    assert found.message.endswith("so it is not sent again")
    left = check(home, *TALK, empty, record("user", 7, 5, "Instead"))
    assert [one.code for one in left] == ["not_shown"]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([record("user", 6, 6, "x")], ("self_parent", 6)),
        ([record("user", 6, 99, "x")], ("missing_parent", 6)),
        (
            [record("user", 6, 8, "x"), record("assistant", 7, 6, "y"), record("user", 8, 7, "z")],
            ("parent_cycle", 6),
        ),
    ],
)
def test_records_with_wrong_parents_are_reported(
    home: Path, records: list[dict[str, Any]], expected: tuple[str, int]
) -> None:
    (found,) = [one for one in check(home, *TALK, *records) if one.severity > Severity.note]
    assert (found.code, found.line) == expected
    assert found.severity == Severity.hides_data


def test_ids_that_differ_from_the_name_of_the_file(home: Path) -> None:
    other = "4f0c81d2-0000-4000-8000-000000000002"
    (found,) = check(home, *TALK, name=other)
    assert (found.code, found.severity) == ("id_mismatch", Severity.note)
    write(home, *TALK)
    (found,) = check(home, *TALK, name=other)
    assert (found.code, found.severity) == ("id_clash", Severity.stops_resume)
    assert ID in found.message
    assert check(home, *TALK) == [], "the file that has the id is sound"


def test_half_a_surrogate_pair_stops_a_resume(home: Path) -> None:
    (found,) = check(home, *TALK, record("user", 6, 5, "cut \ud83d"))
    assert (found.code, found.severity, found.line) == ("lone_surrogate", Severity.stops_resume, 6)


def test_unknown_shapes_are_counted(home: Path) -> None:
    new = {"type": "hologram", "uuid": "u6", "parentUuid": "u5", "sessionId": ID}
    block = record("assistant", 7, 6, [{"type": "smell_block"}, {"type": "text", "text": "x"}])
    (found,) = check(home, *TALK, new, block)
    assert found.message == "2 records of unknown types or shapes: hologram, smell_block"


def test_what_is_beside_the_sessions(home: Path) -> None:
    layout, root = ClaudeCodeLayout(home), home / "projects" / SLUG
    write(home, *TALK)
    write(home, *[{**one, "cwd": "/home/u_app"} for one in TALK], name="other")
    (root / "gone" / "subagents" / "workflows" / "w").mkdir(parents=True)
    for path in ("agent-a.jsonl", "agent-a.meta.json", "agent-z.meta.json", "workflows/w/agent-b.jsonl"):
        (root / "gone" / "subagents" / path).write_text(json.dumps(record("user", 1, None, "x")) + "\n")
    (root / ID / "tool-results").mkdir(parents=True)
    found = [*layout.leftovers(), *layout.check_home()]
    assert [(one.code, Path(one.path).name) for one in found] == [
        ("orphan_folder", "gone"),
        ("orphan_meta", "agent-z.meta.json"),
        ("shared_folder", SLUG),
    ]
    assert [one.severity for one in found] == [Severity.note] * 3
    agents = {ref.session_id: ref for ref in layout.discover() if ref.session_id.startswith("agent-")}
    assert sorted(agents) == ["agent-a", "agent-b"]


def test_calls_of_parallel_tools_pair_across_records(home: Path) -> None:
    records = [
        record("user", 1, None, "Go"),
        record("assistant", 2, 1, [use("t1")], message={"id": "m1"}),
        record("assistant", 3, 2, [use("t2")], message={"id": "m1"}),
        record("user", 4, 2, [result("t1", "a")]),
        record("user", 5, 3, [result("t2", "b")]),
        record("assistant", 6, 5, "Done.", message={"id": "m2"}),
    ]
    assert check(home, *records) == []


@pytest.mark.parametrize(("count", "passes"), [(10, 1), (100, 2)])
def test_a_check_reads_a_file_no_more_often_than_a_list_does(count: int, passes: int, home: Path) -> None:
    text = "w" * (KEPT // 50)
    ref = write(home, *(record("user", number, number - 1 or None, text) for number in range(1, count + 1)))
    fs = CountingFs()
    assert not list(ClaudeCodeLayout(home, fs).check(ref))
    assert fs.opened[f"{ID}.jsonl"] == passes
    assert passes <= fs.bytes_read / Path(ref.locator).stat().st_size < passes + 0.5
