"""One pass over a transcript, by the quick way and in windows, says what a patient reading of the whole file says."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessionary.codec import for_strict_reader, read_lines
from sessionary.codec.lines import clean_records
from sessionary.codec.seen import Duplicates
from sessionary.disk.fs import OS_FS, Fs, OsFs
from sessionary.layouts import jsonl
from sessionary.layouts.amplifier.reading import (
    check_file,
    conversation_problems,
    read_transcript,
    repeated_records,
)
from sessionary.model import Message, Problem, Severity
from sessionary.testing.layout_suite import CountingFs
from sessionary.transcript.diagnosis import diagnose
from sessionary.transcript.fold import Fold, short_title
from sessionary.transcript.messages import count_turns, is_real_user, text_of
from tests.unit.conversations import amplifier, conversations, said, tool, user

WINDOWS = (1, 40, 200, 1000, 1 << 18)

SearchStats = tuple[str, Severity, int | None, int | None, str]


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def reported(problems: list[Problem]) -> list[SearchStats]:
    return [(each.code, each.severity, each.line, each.byte, each.message) for each in problems]


class Conversation(NamedTuple):
    messages: int
    turns: int
    title: str | None
    problems: list[Problem]


def read_conversation(fs: Fs, path: str, *, thorough: bool = False) -> Conversation:
    fold = Fold()
    for item in read_transcript(fs, path):
        fold.take(item)
    repeated = repeated_records(fs, path) if thorough else []
    problems = [*fold.problems, *repeated, *conversation_problems(fold)]
    return Conversation(fold.messages, fold.turns, fold.title, problems)


def patiently(data: bytes, *, thorough: bool) -> tuple[int, int, str | None, list[SearchStats]]:
    """What there is to say of a transcript, each thing asked of the whole of it."""
    if data == b"\n":
        return 0, 0, None, []  # an empty conversation, not a blank line
    reading = read_lines(data)
    values, places = reading.values, [(record.line, record.byte) for record in reading.records()]
    problems = for_strict_reader(reading.problems)
    seen = Duplicates()
    again = [note for record in reading.records() if (note := seen.take(record)) is not None]
    findings = [(each.code, each.severity, *places[each.index], each.message) for each in diagnose(values)]
    words = (short_title(text_of(value)) for value in values if is_real_user(value))
    title = next(filter(None, words), None)
    found = [*reported(problems), *(reported(again) if thorough else ()), *findings]
    return len(values), count_turns(values), title, sorted(found, key=repr)


def summed(talk: Conversation) -> tuple[int, int, str | None, list[SearchStats]]:
    return talk.messages, talk.turns, talk.title, sorted(reported(talk.problems), key=repr)


# Transcripts to whose lines anything has happened

SCRAPS = [
    b"\n", b"\r\n", b" \n", b"{}\n", b"[1]\n", b'[{"role": "user"}]\n', b"5\n", b"{no}\n", b'{"a": 1}\n',
    b"\0" * 9, b"\0\n", b"\xff\n", b"\xef\xbb\xbf", b"<<<<<<< HEAD\n", b'{"role": "us', b'{"role":\n"user"}\n',
    b'{"role": "user"}{"role": "user"}\n', b'{"a": "\\ud800"}\n', b'{"a": NaN}\n', b'{"a": 1e999}\n', b'{"a":\r1}\n',
    b'{"a": "\t"}\n', b' {"role": "assistant"} \n', b'{"role": "assistant", "content": "x"}\r\n',
    b'{"a": {\n"b": 1}\n}\n',
    b'{"a": ' + b"9" * 5000 + b"}\n", b'{"a":' * 300 + b"1" + b"}" * 300 + b"\n", b'{"timestamp": [1]}\n',
    b'{"timestamp": 1, "role": "user"}\n', b'{"timestamp": "1", "role": "user"}\n', b'{"id": "i", "role": "user"}\n',
    b'{"id": "i", "role": "assistant"}\n', b'{"uuid": "u"}\n', b'{"id": 5}\n', b"\x1f\x8b\n", b"\xe2\x80\xa8\n",
]  # fmt: skip


def some_lines() -> st.SearchStrategy[list[bytes]]:
    """The lines of a tangled conversation, some with a time, in whose order they need not be."""
    times = st.sampled_from(
        [{}, {"timestamp": "2026-01-01"}, {"timestamp": "2026-01-02"}, {"timestamp": "2026-01-03"}]
    )
    messages = conversations().map(lambda found: [each for each in found if isinstance(each, dict)])
    return st.builds(
        lambda said, stamps: [
            line({**each, **stamp}) for each, stamp in zip(said, [*stamps, *[{}] * 9], strict=False)
        ],
        messages,
        st.lists(times, max_size=9),
    )


@st.composite
def transcripts(draw: st.DrawFn) -> bytes:
    lines = draw(some_lines())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines)))
        again = st.sampled_from(lines) if lines else st.nothing()
        lines.insert(at, draw(st.sampled_from(SCRAPS) | again))
    data = b"".join(lines)
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(data)))
        data = (
            data[:cut]
            + draw(st.sampled_from([b"", b"\0", b"\n", b'"', b"\xe6"]))
            + data[cut + draw(st.integers(0, 3)) :]
        )
    return data


@given(transcripts(), st.sampled_from(WINDOWS), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_quick_way_says_what_patience_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, window: int, thorough: bool
) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(data)
    monkeypatch.setattr(jsonl, "WINDOW", window)
    talk = read_conversation(OS_FS, str(path), thorough=thorough)
    assert summed(talk) == patiently(data, thorough=thorough)


@given(transcripts(), st.integers(1, 9), st.integers(0, 99))
def test_what_is_clean_reads_without_a_word(data: bytes, line: int, byte: int) -> None:
    found = clean_records(data, line, byte)
    if found is not None:
        reading = read_lines(data, line=line, byte=byte)
        assert (list(found), reading.problems, reading.torn) == (list(reading.records()), [], False)


# Places and repeats in a file of many windows


def long_talk(turns: int, **more: Any) -> list[dict[str, Any]]:
    """Healthy turns of some kilobytes, each message at its own time."""
    talk = [
        message
        for number in range(turns)
        for message in [
            user("x" * 2000),
            amplifier(f"c{number}"),
            tool(f"c{number}", "y" * 2000),
            said("done"),
        ]
    ]
    return [{**message, "timestamp": f"2026-01-01T{at:06}", **more} for at, message in enumerate(talk)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def check(path: Path) -> list[Problem]:
    return read_conversation(OS_FS, str(path), thorough=True).problems


def test_a_long_healthy_transcript_is_healthy(path: Path) -> None:
    path.write_bytes(b"".join(map(line, long_talk(400))))
    assert path.stat().st_size > 5 * jsonl.WINDOW
    assert check(path) == []


def test_a_record_is_reported_as_repeated_however_far_away_the_first_one_is(path: Path) -> None:
    lines = list(map(line, long_talk(1000)))
    path.write_bytes(b"".join([*lines, lines[3]]))
    (repeat,) = check(path)
    assert path.stat().st_size > 2 * jsonl.WIDE_WINDOW
    assert (repeat.code, repeat.line, repeat.byte) == ("duplicate_record", 4001, sum(map(len, lines)))
    assert repeat.message == "the same record as line 4"


def test_the_clock_may_go_backwards_without_a_repeat(path: Path) -> None:
    path.write_bytes(b"".join(map(line, [*long_talk(20)[40:], *long_talk(10)])))
    assert check(path) == []


def test_damage_far_behind_is_reported_at_its_line(path: Path) -> None:
    lines = list(map(line, long_talk(1000)))
    path.write_bytes(b"".join([*lines[:3000], b"{no}\n", *lines[3000:]]))
    (problem,) = check(path)
    assert (problem.code, problem.line, problem.byte) == ("bad_json", 3001, sum(map(len, lines[:3000])))


def test_a_record_over_several_lines_is_reported_where_a_window_ends_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = line(user())
    spread = b'{"role":\n"assistant"}\n'
    path.write_bytes(first + spread + line(user()))
    for window in range(len(first), len(first + spread) + 1):
        monkeypatch.setattr(jsonl, "WINDOW", window)
        problem, *_ = check(path)
        assert (problem.code, problem.line) == ("raw_newline", 2)


def test_findings_of_a_file_that_was_cut_meanwhile_have_their_place(path: Path) -> None:
    """Somebody writes the file anew in place while it is read."""
    data = line(user()) + line(amplifier("a"))
    path.write_bytes(data)

    class Cut(OsFs):
        reads = 0

        def pread(self, fd: int, length: int, offset: int) -> bytes:
            self.reads += 1
            return OS_FS.pread(fd, length, offset) if self.reads == 1 else b""

    (problem,) = read_conversation(Cut(), str(path)).problems
    assert (problem.code, problem.line, problem.byte) == ("orphaned_call", 2, len(line(user())))


def test_what_is_added_while_a_file_is_read_is_read_too(path: Path) -> None:
    data = b"".join(map(line, long_talk(200)))
    path.write_bytes(data)

    class Growing(OsFs):
        """The file seems to end in its second line when it is looked at."""

        def fstat(self, fd: int) -> os.stat_result:
            found = OS_FS.fstat(fd)
            return os.stat_result([*found[:6], 2100, *found[7:10]])

    assert read_conversation(Growing(), str(path)).messages == 800


# The instructions to a reader


def test_only_a_transcript_must_name_speakers(path: Path) -> None:
    path.write_bytes(b'{"a": 1}\n')
    assert [each.code for each in check(path)] == ["no_role"]
    assert check_file(OS_FS, str(path)) == []


def test_the_repair_is_named_where_it_does_it(path: Path) -> None:
    path.write_bytes(
        line(user()) + line(amplifier("a")) + line(user()) + line(amplifier("b")) + line(tool("b"))
    )
    call, last = check(path)
    assert (call.code, call.severity, call.line) == ("orphaned_call", Severity.stops_resume, 2)
    assert (call.repair or "").startswith("run `sessionary repair` to ")
    assert (last.code, last.severity, last.line) == ("incomplete_turn", Severity.note, 5)
    assert (last.repair or "").startswith("none needed")
    elsewhere = check_file(OS_FS, str(path))
    assert [each.code for each in elsewhere] == ["orphaned_call", "incomplete_turn"]
    assert not any("repair" in (each.repair or "") for each in elsewhere), "it repairs sessions only"


# What is read before the first message is yielded


@pytest.mark.parametrize("searched", [False, True])
@pytest.mark.parametrize("first", [b"", b'{"role": "user", "content": "cut\n'])
def test_no_window_is_read_before_the_messages_of_the_one_before_it_are_taken(
    tmp_path: Path, first: bytes, searched: bool
) -> None:
    """Also behind damage, where a search decodes everything."""
    path = tmp_path / "transcript.jsonl"
    many = [line({"role": "user", "content": f"{number} " + "x" * 1000}) for number in range(10_000)]
    path.write_bytes(first + b"".join(many))
    fs = CountingFs()
    items = read_transcript(fs, str(path), None, (lambda data: True) if searched else None)
    found = next(item for item in items if isinstance(item, Message))
    assert found.text.startswith("0 ")
    assert fs.bytes_read <= 2 * (jsonl.WINDOW + jsonl.WIDE_WINDOW) < path.stat().st_size
    assert 1 + sum(isinstance(item, Message) for item in items) == len(many)
