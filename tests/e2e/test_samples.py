"""The main job on real input: session trees that the original wrote, and files damaged in every way reported so far."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.model import PERSON, Message, SessionRef
from sessionary.transcript.fold import Fold
from tests.lanes import shared_folder

pytestmark = pytest.mark.lane("samples")

Read = Callable[..., tuple[int, Any]]


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str]) -> Read:
    """Run a command with --json: its exit code, and what it printed (on standard error if nothing else)."""

    def read(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out or err)

    return read


# Sessions as the original writes them

SAMPLES = shared_folder() / "samples" / "amplifier"


def expected() -> dict[str, dict[str, Any]]:
    file = SAMPLES / "EXPECTED.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


@pytest.fixture
def rows(read: Read) -> dict[str, dict[str, Any]]:
    code, listed = read("list", "--home", str(SAMPLES))
    assert code == 0
    return {row["id"]: row for row in listed}


def ref_of(session: dict[str, Any]) -> SessionRef:
    return SessionRef("amplifier", session["id"], str(SAMPLES / session["dir"]))


def test_there_is_something_to_expect(rows: dict[str, dict[str, Any]]) -> None:
    assert len(expected()) >= 11
    assert set(rows) == {session["id"] for session in expected().values()}


@pytest.mark.parametrize("key", expected())
def test_the_list_has_all_sample_sessions(rows: dict[str, dict[str, Any]], key: str) -> None:
    session = expected()[key]
    row = rows[session["id"]]
    assert row["path"] == str(SAMPLES / session["dir"])
    assert row["project"] == session["dir"].split("/")[1]
    assert row["messages"] == session["messages"] == session["transcript_lines"]
    assert row["turns"] == session["person_turns"]
    assert row["turn_count"] == session["turn_count_in_metadata"]
    assert row["parent"] == session["parent_id"]
    assert row["title"] == (session["name"] or " ".join(session["first_user_text"].split()))
    assert row["size"] == sum(path.stat().st_size for path in (SAMPLES / session["dir"]).iterdir())


@pytest.mark.parametrize("key", expected())
def test_the_conversation_is_what_the_original_loads(read: Read, key: str) -> None:
    session = expected()[key]
    code, document = read("show", str(SAMPLES / session["dir"]))
    messages = document["messages"]
    assert (code, document["id"], len(messages)) == (0, session["id"], session["original_load_messages"])
    assert sum(message["role"] == "user" for message in messages) == session["role_user_messages"]
    assert sum(len(message["tools"]) for message in messages) == session["tool_calls"]
    assert messages[-1]["role"] == session["last_role"]
    assert messages[-1]["turn"] == session["person_turns"]
    first_of_turn = {message["turn"]: message for message in reversed(messages) if message["turn"]}
    assert first_of_turn[1]["text"] == session["first_user_text"]
    assert first_of_turn[session["person_turns"]]["text"] == session["last_user_text"]
    assert all(message["timestamp"].endswith("Z") for message in messages)


@pytest.mark.parametrize("key", expected())
def test_the_layout_says_the_same(key: str) -> None:
    session = expected()[key]
    ref = ref_of(session)
    fold, read = Fold(), list[Message]()
    for one in AmplifierLayout(SAMPLES).read(ref):
        fold.take(one)
        read += [one] if isinstance(one, Message) else []
    spoken = [one.text for one in read if one.origin == PERSON]
    assert (spoken[0], spoken[-1]) == (session["first_user_text"], session["last_user_text"])
    assert sum(len(one.calls) for one in read) == session["tool_calls"]
    orphans = [each for each in fold.diagnosis.findings() if each.code == "orphaned_call"]
    assert [name for each in orphans for name in each.ids] == session["tool_calls_without_result"]


@pytest.fixture
def aged(tmp_path: Path) -> Callable[[str], Path]:
    """Copy a session with times of yesterday: a temp file that was laid down just now would count as alive."""

    def aged(directory: str) -> Path:
        yesterday = time.time() - 86_400
        copy = Path(shutil.copytree(SAMPLES / directory, tmp_path / "copy"))
        for file in copy.iterdir():
            os.utime(file, (yesterday, yesterday))
        return copy

    return aged


@pytest.mark.parametrize("key", expected())
def test_the_check_finds_what_the_original_diagnosis_misses_and_nothing_else(
    read: Read, aged: Callable[[str], Path], key: str
) -> None:
    session = expected()[key]
    code, document = read("check", str(aged(session["dir"])))
    found = {problem["code"]: problem for problem in document["problems"] if problem["severity"] != "note"}
    wanted = {"orphaned_call"} if session["tool_calls_without_result"] else set()
    if any(name.endswith(".tmp") for name in session["files"]):
        wanted.add("orphan_temp")
    assert set(found) == wanted
    assert code == (13 if wanted else 0)
    for call in session["tool_calls_without_result"]:
        assert call in found["orphaned_call"]["message"]


def test_the_unfinished_save_is_named_with_what_it_holds(read: Read, aged: Callable[[str], Path]) -> None:
    _, document = read("check", str(aged(expected()["s6"]["dir"])))
    (problem,) = (problem for problem in document["problems"] if problem["code"] == "orphan_temp")
    assert problem["severity"] == "hides_data"
    assert "21 complete messages; the transcript has 20" in problem["message"]


# Files damaged in every way

CASES = shared_folder() / "cases"
SHAPES = ("plain", "claude")

# Where a case says in words how many damaged spans there are.
BAD_IN_WORDS: dict[str, set[int]] = {
    "A09": {3}, "A14": {0, 1}, "A15": {1}, "A18": {1}, "A22": {0}, "A24": {5}, "A25": {0, 1}, "A26": {0, 1},
    "A27": {0}, "A28": {1}, "A31": {1},
}  # fmt: skip


def cases() -> list[str]:
    return sorted(path.name for path in CASES.glob("A*") if path.name.endswith(SHAPES))


def test_there_are_cases() -> None:
    assert len(cases()) >= 50


@pytest.mark.parametrize("name", cases())
def test_a_damaged_file_reads_as_its_case_says(read: Read, name: str) -> None:
    expect, file = _case(name)
    shown, document = read("show", str(file))
    checked, report = read("check", str(file))
    bad = [problem for problem in report["problems"] if problem["severity"] != "note"]
    wanted = expect.get("bad")
    assert len(bad) in ({wanted} if isinstance(wanted, int) else BAD_IN_WORDS[name[:3]])
    assert checked == (13 if bad else 0)
    for problem in bad:
        assert problem["line"] is not None or problem["code"] == "not_text"
        assert problem["message"]
    keep = expect["keep"]
    if isinstance(keep, list):
        assert shown == 0
        assert sorted(_records(document)) == keep
    elif name[:3] == "A09":
        assert shown == 0
        assert _records(document) == [
            number for number in range(60) if number not in _touched_by_the_hole(file, range(4096, 8192))
        ]
    else:
        assert (shown, document["error"]) == (13, "Corrupt")
        assert "not JSON Lines but" in document["message"]
        assert document["hint"]


@pytest.mark.parametrize("shape", SHAPES)
def test_duplicates_are_distinguished(read: Read, shape: str) -> None:
    expect, file = _case(f"A22-duplicates-{shape}")
    _, report = read("check", str(file))
    found = [problem["code"] for problem in report["problems"]]
    assert found.count("duplicate_record") == expect["dup_exact"]
    assert found.count("changed_duplicate") == expect["dup_changed"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_the_file_wins_over_times(read: Read, shape: str) -> None:
    _, file = _case(f"A21-base64-fragment-{shape}")
    _, document = read("show", str(file))
    assert _records(document)[-2:] == [7, 6]
    times = [message["timestamp"] for message in document["messages"]]
    assert times != sorted(times)


@pytest.mark.parametrize("name", cases())
def test_a_damaged_file_prints_nothing_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    _, file = _case(name)
    for command in ("show", "check"):
        assert main([command, str(file)]) in (0, 13)
        out, err = capsys.readouterr()
        assert all(char.isprintable() or char in "\n\u200d" for char in out + err)


def _case(name: str) -> tuple[dict[str, Any], Path]:
    case = json.loads((CASES / name / "CASE.json").read_text("utf-8"))
    return case["expect"], CASES / name / case["files"][0]


def _records(document: dict[str, Any]) -> list[int]:
    """The numbers of the records that were shown, in order, each once (a case may hold one twice)."""
    found = (re.match(r"R(\d+)", message["text"]) for message in document["messages"])
    return list(dict.fromkeys(int(match[1]) for match in found if match))


def _touched_by_the_hole(file: Path, hole: range) -> set[int]:
    """The records that have a byte in the hole, from what is left of their neighbours: they are numbered in order."""
    data = file.read_bytes()
    whole = [int(n) for n in re.findall(rb"(?:^|\n)\{[^\n\0]*?R(\d+)\b[^\n\0]*\}(?=\n)", data)]
    assert data[hole.start : hole.stop] == bytes(len(hole))
    return set(range(60)) - set(whole)
