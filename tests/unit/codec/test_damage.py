"""Finding whole records on a damaged line."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessionary.codec import split_glued
from sessionary.codec.damage import MAX_PIECES, covers, joined_record
from tests.support.strategies import json_values


def record(number: int = 0, **fields: Any) -> bytes:
    value = {
        "role": "user",
        "content": f'R{number} "größer" {{}} \\',
        "n": [number, {"type": "text"}],
        **fields,
    }
    return json.dumps(value, ensure_ascii=False).encode()


def found(raw: bytes) -> list[bytes]:
    return [raw[start:end] for start, end in split_glued(raw)]


A, B, C = record(1), record(2), record(3)


@pytest.mark.parametrize(
    ("raw", "records"),
    [
        (A + B, [A, B]),
        (A + b" \t\r" + B + C, [A, B, C]),
        (b"\0" * 512 + A, [A]),
        (A + b"\0" * 9 + B + b"\0", [A, B]),
        (b"garbage" + A + b"garbage", [A]),
        (A[:30] + B, [B]),
        (A + B[:30], [A]),
        (A + B[:30] + C, [A, C]),
        (b'ole":"user","content":"x"}' + A, [A]),
        (b"", []),
        (b"{}", []),
        (b"{}{ }", []),
        (b"5 true []", []),
        (b'{"a": "' + b"x" * 50, []),
        (b'ole":"user","content":[{"type":"text","text":"x"}]}', []),
        (b'{"content":[{"type":"text","text":"x"}', []),
        (b'{"content":[{"type":"text","text":"x"},{"type":"te', []),
        (b'"},{"type":"text","text":"x"}', []),
        (b'ext":"f() { return {\\"a\\": 1} }"}', []),
        (b'{"content": "f() { return {\\"a\\": 1}; } {} {', []),
        (b'{"a": [1, 2 x], "b": {"c": 1}}', []),
        (b'{"a": "\x07\x00b"}x', [b'{"a": "\x07\x00b"}']),
        (b'{"a": "\xff"}' + A, [A]),
        (b'{ "a" : 1 }' + b"{" + A, [b'{ "a" : 1 }', A]),
        (b'{"a": {' + A, [A]),
        (b'{"a": {"b' + A, [A]),
        (b'{"a": tru' + A, [A]),
        (b'{"a": "\\' + A, [A]),
        (b'{"a": "\\u00' + A, [A]),
        (b'{"a": 1,' + A, [A]),
        (b'{"a": -' + A, [A]),
        (b"{" * 50 + A, [A]),
        (b'{"a": ' + b"[" * 100_000, []),
        (b'{"a": ' + b"9" * 5000 + b"}" + A, []),
    ],
    ids=range(34),
)
def test_whole_records_are_found_and_parts_of_records_are_not(raw: bytes, records: list[bytes]) -> None:
    assert found(raw) == records


@given(st.integers(1, len(A) - 1))
def test_behind_a_torn_record_the_next_one_is_found_or_it_might_be_a_part_of_the_torn_one(cut: int) -> None:
    stub = A[:cut]
    in_list = b"[" in stub and b"]" not in stub
    if stub.rstrip().endswith((b":", b"[")) or (in_list and stub.rstrip().endswith(b",")):
        assert found(stub + B) == []
    else:
        assert found(stub + B) == [B]
    assert found(B + stub) == [B]


@given(st.integers(1, len(A) - 1))
def test_the_end_of_a_record_alone_is_not_a_record(cut: int) -> None:
    assert found(A[cut:]) == []
    assert found(A[cut:] + B) == [B]
    assert found(A[:cut]) == []


@given(st.lists(json_values(finite=True).map(lambda value: {"k": value}), min_size=1, max_size=4))
@example([{"k": "\ud83d"}])
def test_records_glued_without_anything_between_are_all_found(values: list[dict[str, Any]]) -> None:
    raws = [json.dumps(value).encode() for value in values]
    assert found(b"".join(raws)) == raws
    assert covers(b"".join(raws), split_glued(b"".join(raws)))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_spans_of_any_bytes_are_whole_objects_in_order(head: bytes, tail: bytes) -> None:
    raw = head + A + tail
    spans = split_glued(raw)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    for start, end in spans:
        assert isinstance(json.loads(raw[start:end].decode("utf-8"), strict=False), dict)


def test_the_search_is_bounded() -> None:
    assert found(b'{"a":1x' * (MAX_PIECES - 1) + A) == [A]
    assert found(b'{"a":1x' * (MAX_PIECES + 1) + A) == []


def test_covers_asks_for_every_byte_that_is_not_blank() -> None:
    assert covers(b"", [])
    assert covers(b" \t\r\0", [])
    assert not covers(b"x", [])
    assert covers(b" {} {}\0", [(1, 3), (4, 6)])
    assert not covers(b"{}x{}", [(0, 2), (3, 5)])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b'{"a": "one\ntwo\nthree"}\n' + A, 3),
        (b'{"a": "one\n\n\r\n"}', 4),
        (b'{\n  "a": 1,\n  "b": {\n    "c": []\n  }\n}\n' + A, 6),
        (b'{"a": "one\n' + A, 0),
        (b'{"a": [\n' + A + b"\n" + B, 0),
        (b'{"a": 1,\n' + A, 0),
        (b'{"a": tru\ne}', 0),
        (b'{"a": "one\n\xff"}', 0),
        (b'{"a": "one\n"} x', 0),
        (b'{"a": "one', 0),
        (A + b"\n" + B, 0),
        (b"text\n" + A, 0),
        (b'{"a":\n' + b"[" * 100_000, 0),
        (b'{"a": "' + b"x\n" * 62 + b'"}', 63),
        (b'{"a": "' + b"x\n" * 63 + b'"}', 64),
        (b'{"a": "' + b"x\n" * 64 + b'"}', 0),
        (b'{"a": "x\n' + b"y" * (1 << 20) + b'"}', 0),
    ],
    ids=range(17),
)
def test_a_record_over_several_lines_is_put_together(text: bytes, count: int) -> None:
    assert joined_record(text.split(b"\n")) == count
