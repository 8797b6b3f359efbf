"""`read_lines` over everything that has happened to files of this kind."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import (
    CODES,
    Reading,
    decode,
    encode_line,
    for_strict_reader,
    original_accepts,
    read_lines,
)
from sessionary.codec.problems import Place, problem
from sessionary.codec.seen import Duplicates
from sessionary.model import Problem, Severity
from tests.support.strategies import json_values, text


def record(number: int, **fields: Any) -> bytes:
    value = {
        "role": "user" if number % 2 == 0 else "assistant",
        "content": f"R{number} größer, 日本語, 🙂",
        "timestamp": f"2026-01-25T04:08:{number:02}.000Z",
        "id": f"id-{number}",
    }
    return json.dumps(value | fields, ensure_ascii=False).encode()


RAWS = [record(number) for number in range(8)]
CLEAN = b"".join(raw + b"\n" for raw in RAWS)


def numbers(reading: Reading) -> list[int]:
    return [int(value["content"].split()[0][1:]) for value in reading.values if "content" in value]


def reported(reading: Reading) -> list[tuple[str, int | None, int | None, int]]:
    return [(found.code, found.line, found.byte, found.span) for found in reading.problems]


def with_line(row: int, *lines: bytes, instead: int = 1) -> tuple[bytes, int]:
    """The clean file with other lines in the place of `instead` ones, and the offset of the first of them."""
    before, after = RAWS[:row], RAWS[row + instead :]
    data = b"".join(raw + b"\n" for raw in [*before, *lines, *after])
    return data, sum(len(raw) + 1 for raw in before)


def check_places(data: bytes, reading: Reading) -> None:
    """Every record is where it is said to be, and reads as the value that is returned."""
    for value, raw, found in zip(reading.values, reading.raws, reading.records(), strict=True):
        assert found.value is value
        assert found.raw == raw
        assert data[found.byte : found.byte + len(raw)] == raw
        assert data[: found.byte].count(b"\n") == found.line - 1
        assert repr(decode(raw)) == repr(value)


def read(data: bytes) -> Reading:
    reading = read_lines(data, "t.jsonl")
    check_places(data, reading)
    assert reading.strict == original_accepts(data)
    assert all(found.path == "t.jsonl" and found.message for found in reading.problems)
    return reading


def test_a_clean_file() -> None:
    reading = read(CLEAN)
    assert reading.raws == RAWS
    assert reading.values == [json.loads(raw) for raw in RAWS]
    assert (reading.problems, reading.torn, reading.end, reading.strict) == ([], False, len(CLEAN), True)


def test_an_empty_file() -> None:
    reading = read(b"")
    assert (reading.values, reading.problems, reading.torn, reading.end, reading.strict) == (
        [],
        [],
        False,
        0,
        True,
    )


def test_a_single_newline_is_an_empty_transcript() -> None:
    reading = read(b"\n")
    assert (reading.values, reported(reading), reading.torn, reading.end) == (
        [],
        [("blank_lines", 1, 0, 0)],
        False,
        1,
    )
    assert reading.strict


@pytest.mark.parametrize("tail", [b'{"role": "us', b"{", b'{"a": "\xe6\x97', b"5", b"[1]", b"tru", b"x"])
def test_a_torn_tail_is_one_problem_and_no_record(tail: bytes) -> None:
    reading = read(CLEAN + tail)
    assert numbers(reading) == list(range(8))
    assert (reading.torn, reading.end) == (True, len(CLEAN))
    assert not reading.strict or tail in (b"5", b"[1]")
    assert reading.problems[0].severity is Severity.lost_data
    assert reported(reading) == [("torn_tail", 9, len(CLEAN), len(tail))]


def test_a_whole_last_record_without_newline_is_a_record() -> None:
    reading = read(CLEAN[:-1])
    assert numbers(reading) == list(range(8))
    assert reported(reading) == [("missing_newline", 8, CLEAN.rfind(b"\n", 0, -1) + 1, len(RAWS[7]))]
    assert (reading.torn, reading.end, reading.strict) == (False, CLEAN.rfind(b"\n", 0, -1) + 1, True)


@pytest.mark.parametrize("tail", [b" ", b"\t\r", b"\r"])
def test_blanks_behind_the_last_newline_are_not_a_torn_tail(tail: bytes) -> None:
    reading = read(CLEAN + tail)
    assert numbers(reading) == list(range(8))
    assert (reading.torn, reading.end, reading.strict) == (False, len(CLEAN), True)
    assert "torn_tail" not in [found.code for found in reading.problems]


DAMAGED: list[tuple[str, bytes, str, Severity]] = [
    ("stub and record", record(4)[:60] + record(5), "glued_records", Severity.lost_data),
    ("two records", record(4) + record(5), "glued_records", Severity.hides_data),
    ("record and junk", record(4) + b"junk", "glued_records", Severity.lost_data),
    ("NULs", b"\0" * 9216, "nul_run", Severity.lost_data),
    ("one NUL", b"\0", "nul_run", Severity.lost_data),
    ("NULs and a record", b"\0" * 512 + record(4), "nul_run", Severity.lost_data),
    ("a record and a NUL", record(4) + b"\0", "nul_run", Severity.lost_data),
    ("a part of a record", record(4)[:40], "bad_json", Severity.lost_data),
    ("the end of a record", record(4)[70:], "bad_json", Severity.lost_data),
    ("base64", b"iVBORw0KGgo" * 4000 + b'"}]}}', "bad_json", Severity.lost_data),
    ("text", b"Traceback (most recent call last):", "bad_json", Severity.lost_data),
    ("a part that ends in a character", record(4)[:60] + b"\xe6\x87", "bad_utf8", Severity.lost_data),
    ("a record with a bad byte", record(4).replace(b"R4", b"R4\xff"), "bad_utf8", Severity.lost_data),
    (
        "control characters",
        record(4).replace(b"R4", b"R4\x0b\x1b[31m\x07"),
        "control_characters",
        Severity.hides_data,
    ),
    (
        "seven NULs in a string",
        record(4).replace(b"R4", b"R4\0\0\0\0\0\0\0"),
        "control_characters",
        Severity.hides_data,
    ),
    ("nested", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep", Severity.hides_data),
    ("digits", b'{"a": ' + b"9" * 5000 + b"}", "number_too_long", Severity.hides_data),
    ("a number", b"5", "not_an_object", Severity.cosmetic),
    ("a list", b"[]", "not_an_object", Severity.cosmetic),
    ("a list of records", b'[{"role": "user"}]', "not_an_object", Severity.hides_data),
    ("null", b"null", "not_an_object", Severity.cosmetic),
    ("ours", b"<<<<<<< HEAD", "conflict_marker", Severity.cosmetic),
    ("base", b"||||||| merged common ancestors", "conflict_marker", Severity.cosmetic),
    ("either", b"=======", "conflict_marker", Severity.cosmetic),
    ("theirs", b">>>>>>> other", "conflict_marker", Severity.cosmetic),
    ("spread", record(4).replace(b"R4", b"R4\none\n\ntwo"), "raw_newline", Severity.hides_data),
]


@pytest.mark.parametrize(
    ("line", "code", "severity"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED]
)
def test_a_damaged_line_is_skipped_and_reported_once(line: bytes, code: str, severity: Severity) -> None:
    data, byte = with_line(4, line)
    reading = read(data)
    assert numbers(reading) == [0, 1, 2, 3, 5, 6, 7]
    assert reported(reading) == [(code, 5, byte, len(line))]
    assert reading.problems[0].severity is severity
    assert reading.problems[0].repair
    assert not reading.torn
    assert reading.strict is (code == "not_an_object")


@pytest.mark.parametrize(
    ("line", "code"), [(row[1], row[2]) for row in DAMAGED], ids=[row[0] for row in DAMAGED]
)
def test_the_same_damage_in_an_unfinished_last_line_is_a_torn_tail(line: bytes, code: str) -> None:
    reading = read(CLEAN + line)
    assert numbers(reading) == list(range(8))
    assert (reading.torn, reading.end) == (True, len(CLEAN) + line.rfind(b"\n") + 1)
    unfinished = code in ("bad_json", "bad_utf8", "not_an_object")
    assert reported(reading) == [("torn_tail" if unfinished else code, 9, len(CLEAN), len(line))]


def test_a_hole_inside_of_a_line_damages_three_stretches() -> None:
    head, tail = record(4)[:45], record(5)[75:]
    data, byte = with_line(4, head + b"\0" * 4096 + tail, instead=2)
    reading = read(data)
    assert numbers(reading) == [0, 1, 2, 3, 6, 7]
    assert reported(reading) == [
        ("bad_json", 5, byte, len(head)),
        ("nul_run", 5, byte + len(head), 4096),
        ("bad_json", 5, byte + len(head) + 4096, len(tail)),
    ]


def test_a_hole_between_a_whole_record_and_pieces() -> None:
    line = record(4) + b"\0" * 8 + b"5" + b"\0" * 8 + record(5) + record(6)[:20]
    data, _ = with_line(4, line, instead=3)
    assert [found.code for found in read(data).problems] == [
        "nul_run",
        "bad_json",
        "nul_run",
        "glued_records",
    ]


def test_a_file_of_zeros_is_a_hole() -> None:
    assert reported(read(b"\0" * 5000)) == [("nul_run", 1, 0, 5000)]


def test_damage_in_the_first_line_does_not_hide_the_others() -> None:
    for line in (b"\x1f\x8b\x08 not gzip after all", b"\xff\xfe", b"\0" * 100, b"junk"):
        data, _ = with_line(0, line)
        reading = read(data)
        assert numbers(reading) == list(range(1, 8))
        assert len(reading.problems) == 1


def test_crlf_is_a_note_and_no_part_of_the_records() -> None:
    data = CLEAN.replace(b"\n", b"\r\n")
    reading = read(data)
    assert reading.raws == RAWS
    assert reported(reading) == [("crlf", 1, 0, len(RAWS[0]) + 1)]
    assert "8 lines" in reading.problems[0].message
    assert (reading.strict, reading.end) == (True, len(data))


def test_a_lone_cr_is_blank_to_json_but_ends_a_line_for_the_original() -> None:
    data, _ = with_line(4, record(4).replace(b'"user", ', b'"user",\r'))
    reading = read(data)
    assert numbers(reading) == list(range(8))
    assert ([(found.code, found.line) for found in reading.problems], reading.strict) == (
        [("carriage_return", 5)],
        False,
    )
    data, _ = with_line(4, record(4) + b"\r" + record(5), instead=2)
    reading = read(data)
    assert [found.code for found in reading.problems] == ["glued_records"]
    assert reading.strict


def test_a_byte_order_mark_is_read_over() -> None:
    reading = read(b"\xef\xbb\xbf" + CLEAN)
    assert reading.raws == RAWS
    assert reported(reading) == [("bom", 1, 0, 3 + len(RAWS[0]))]
    assert not reading.strict
    reading = read(b"\xef\xbb\xbf")
    assert (reading.values, [found.code for found in reading.problems]) == ([], ["torn_tail"])


def test_blank_lines_are_one_note() -> None:
    data, byte = with_line(3, b"", b"  ", RAWS[3], b"\x0b\x0c", b"", b"\t")
    reading = read(data)
    assert numbers(reading) == list(range(8))
    assert reported(reading) == [("blank_lines", 4, byte, 0)]
    assert "5 blank lines" in reading.problems[0].message
    assert reading.strict


def test_blanks_that_json_does_not_know_hide_nothing_that_the_original_reads() -> None:
    data, byte = with_line(4, b"\xc2\xa0\x0c" + record(4) + b"\xe2\x80\x83\r")
    reading = read(data)
    assert reading.raws == RAWS
    assert list(reading.records())[4].byte == byte + 3
    assert reading.strict
    data, _ = with_line(4, b"\x0c" + record(4)[:-1])
    assert [found.code for found in read(data).problems] == ["bad_json"]


ODD = [
    (record(4).replace(b"R4", b"R4 \\ud83d"), ["lone_surrogate"]),
    (record(4)[:-1] + b', "k\\ud800": "\\udc00\\ud83d"}', ["lone_surrogate"]),
    (record(4)[:-1] + b', "a": [NaN, -Infinity, 1e999]}', ["odd_number"]),
    (record(4)[:-1] + b', "a": NaN, "b": "\\ud83d"}', ["odd_number", "lone_surrogate"]),
    (record(4).replace("größer".encode(), b"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\x7f"), []),
    (record(4)[:-1] + b', "a": -0, "a": 2}', []),
    (record(4)[:-1] + b', "a": 123456789012345678901234567890}', []),
    (b"\t " + record(4) + b" ", []),
]


@pytest.mark.parametrize(("line", "codes"), ODD, ids=range(len(ODD)))
def test_unusual_records_are_records(line: bytes, codes: list[str]) -> None:
    data, byte = with_line(4, line)
    reading = read(data)
    assert numbers(reading) == list(range(8))
    assert reported(reading) == [(code, 5, byte, len(line)) for code in codes]
    assert all(found.severity is Severity.note for found in reading.problems)
    assert reading.strict


def test_an_empty_object_is_a_record_that_says_nothing() -> None:
    data, byte = with_line(4, b"{}", b"\xef\xbb\xbf{}", instead=0)
    reading = read(data)
    assert numbers(reading) == list(range(8))
    assert reading.values[4:6] == [{}, {}]
    assert [found.code for found in reading.problems] == ["unknown_record", "bom", "unknown_record"]
    assert reading.problems[0].byte == byte


def repeats(reading: Reading) -> list[Problem]:
    found = Duplicates()
    return [note for record in reading.records() if (note := found.take(record)) is not None]


def test_duplicates_are_found_when_asked_for() -> None:
    changed = record(5, content="R5 SECOND VERSION")
    data, _ = with_line(3, RAWS[3], RAWS[3], RAWS[4], RAWS[5], changed, instead=3)
    reading = read(data)
    assert reading.problems == []
    found = repeats(reading)
    assert [(again.code, again.line, again.severity) for again in found] == [
        ("duplicate_record", 5, Severity.note),
        ("changed_duplicate", 8, Severity.note),
    ]
    assert "line 4" in found[0].message
    assert "line 7" in found[1].message


def test_two_equal_answers_without_id_and_time_are_two_answers() -> None:
    yes = b'{"role": "user", "content": "yes"}\n'
    assert repeats(read(yes * 3)) == []
    dated = b'{"role": "user", "content": "yes", "timestamp": "2026-01-25T04:08:00Z"}\n'
    assert [found.code for found in repeats(read(dated * 3))] == ["duplicate_record"] * 2
    assert [found.code for found in repeats(read(b'{"uuid": "u", "a": 1}\n{"uuid": "u"}\n'))] == [
        "changed_duplicate"
    ]


FOREIGN: list[tuple[bytes, str]] = [
    (CLEAN.decode().encode("utf-16"), "UTF-16"),
    (CLEAN.decode().encode("utf-16-le"), "UTF-16LE"),
    (CLEAN.decode().encode("utf-16-be"), "UTF-16BE"),
    (CLEAN.decode().encode("utf-32"), "UTF-32"),
    (gzip.compress(CLEAN, mtime=0), "gzip"),
    (b"\x28\xb5\x2f\xfd" + bytes(range(256)) * 20, "zstd"),
    (b"\xfd7zXZ\x00\x00", "xz"),
    (b"BZh91AY", "bzip2"),
    (b"PK\x03\x04\x14", "ZIP"),
    (b"SQLite format 3\x00", "SQLite"),
    (bytes(range(1, 256)) * 30, "binary"),
]


@pytest.mark.parametrize(("data", "name"), FOREIGN, ids=[row[1] for row in FOREIGN])
def test_a_file_of_another_kind_is_named_as_a_whole(data: bytes, name: str) -> None:
    reading = read(data)
    (found,) = reading.problems
    assert (found.code, found.line, found.byte, found.span) == ("not_text", None, 0, len(data))
    assert name in found.message
    assert found.repair
    assert found.severity is Severity.hides_data
    assert (reading.values, reading.torn, reading.end) == ([], False, len(data))


def test_a_part_of_a_file_keeps_the_places_of_the_file() -> None:
    data, _ = with_line(4, b"junk")
    data += b'{"torn'
    cut = len(RAWS[0]) + len(RAWS[1]) + 2
    whole, part = read(data), read_lines(data[cut:], "t.jsonl", line=3, byte=cut)
    assert part.problems == whole.problems
    assert list(part.records()) == list(whole.records())[2:]
    assert (part.end, part.torn) == (whole.end, True)
    assert read_lines(b"\xff\xfe", byte=10).problems[0].code == "torn_tail"


def test_many_problems_come_in_the_order_of_the_file() -> None:
    lines = [
        b"\xef\xbb\xbf" + RAWS[0],
        b"",
        RAWS[1] + b"\r",
        b"junk",
        b'{"a": "x',
        b'y"}',
        RAWS[2],
        b"{}",
        b"[1]",
        b"{to",
    ]
    reading = read(b"\n".join(lines))
    assert [(found.code, found.line) for found in reading.problems] == [
        ("bom", 1),
        ("blank_lines", 2),
        ("crlf", 3),
        ("bad_json", 4),
        ("raw_newline", 5),
        ("unknown_record", 8),
        ("not_an_object", 9),
        ("torn_tail", 10),
    ]
    assert numbers(reading) == [0, 1, 2]


SCRAPS = [
    *RAWS[:3],
    b"\n",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"\0" * 9,
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
    b"{",
    b"}",
    b'"',
    b"[",
    b"\\",
]
SCRAPS += [
    b"=======\n",
    b"5",
    b"{}",
    b" ",
    b"\x0c",
    b"\x07",
    b"\xc2\xa0",
    b'{"a": NaN}\n',
    b'{"b": "\\ud83d"}\n',
    RAWS[4][:40],
    RAWS[5][40:],
]


@given(st.lists(st.sampled_from(SCRAPS), max_size=20).map(b"".join))
def test_of_any_bytes_every_line_is_a_record_or_reported(data: bytes) -> None:
    reading = read(data)
    lines = {found.line for found in reading.records()}
    # A carriage return within a record is reported, and the record read.
    damaged = [
        found
        for found in reading.problems
        if found.severity > Severity.note and found.code != "carriage_return"
    ]
    reported_by: set[int] = set()
    for found in damaged:
        if found.line is None:
            return
        assert found.byte is not None
        end = found.byte + found.span
        assert 0 <= found.byte < end <= len(data)
        reported_by.update(
            range(found.line, data.count(b"\n", 0, end) + 2 if end > found.byte else found.line)
        )
    assert not lines & reported_by
    for number, line in enumerate(data.split(b"\n"), 1):
        assert number in lines or number in reported_by or not line.strip()
    assert reading.end == data.rfind(b"\n") + 1
    assert reading.torn is (reading.end < len(data) and not reading_ends_well(data, lines))


def reading_ends_well(data: bytes, lines: set[int]) -> bool:
    """True if the bytes behind the last newline are blank or a record."""
    return not data[data.rfind(b"\n") + 1 :].strip() or data.count(b"\n") + 1 in lines


@given(st.lists(json_values(finite=True).map(lambda value: {"k": value}), max_size=6))
def test_what_we_write_is_read_without_a_word(values: list[dict[str, Any]]) -> None:
    data = b"".join(encode_line(value) + b"\n" for value in values)
    reading = read(data)
    assert repr(reading.values) == repr([json.loads(json.dumps(value)) for value in values])
    assert [found for found in reading.problems if found.code != "lone_surrogate"] == []
    assert reading.strict


@given(st.lists(text(), min_size=1, max_size=4), st.integers(min_value=0))
def test_a_file_cut_anywhere_keeps_every_whole_line(contents: list[str], at: int) -> None:
    lines = [encode_line({"content": content}) + b"\n" for content in contents]
    data = b"".join(lines)[: at % (sum(map(len, lines)) + 1)]
    whole = data.count(b"\n")
    reading = read(data)
    tail = data[data.rfind(b"\n") + 1 :]
    complete = whole < len(lines) and tail == lines[whole][:-1]
    assert reading.raws == [line[:-1] for line in lines[: whole + complete]]
    assert reading.torn is (bool(tail) and not complete)


def test_the_table_gives_words_severity_and_remedy() -> None:
    place = Place("p", 3, 10)
    assert problem("bad_json", place, 5) == Problem(
        "bad_json",
        Severity.lost_data,
        "p",
        3,
        10,
        CODES["bad_json"].meaning,
        CODES["bad_json"].repair,
        5,
    )
    own = problem("bad_json", place, 5, "words", severity=Severity.note, repair="nothing")
    assert (own.message, own.severity, own.repair) == ("words", Severity.note, "nothing")


def test_what_is_above_a_note_has_a_remedy_or_names_it() -> None:
    for code, row in CODES.items():
        assert row.meaning
        assert row.repair or row.severity is Severity.note or code == "not_text"


def test_a_strict_reader_is_stopped_by_what_others_read_over() -> None:
    place = Place("p", 1, 0)
    codes = [
        "bom",
        "crlf",
        "not_an_object",
        "conflict_marker",
        "glued_records",
        "control_characters",
        "torn_tail",
    ]
    seen = for_strict_reader(problem(code, place, 1) for code in codes)
    assert [found.code for found in seen] == codes
    assert [found.severity.name for found in seen] == [
        "note",
        "note",
        "cosmetic",
        "stops_resume",
        "lost_data",
        "stops_resume",
        "lost_data",
    ]


def test_a_byte_order_mark_behind_an_odd_blank_is_reported() -> None:
    reading = read(b'\x0c\xef\xbb\xbf{"a": 1}\n')
    assert reading.values == [{"a": 1}]
    assert [found.code for found in reading.problems] == ["bom"]
    assert (reading.raws, reading.strict) == ([b'{"a": 1}'], False)
    assert [record.byte for record in reading.records()] == [4]
