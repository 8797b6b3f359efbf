"""`encode_line` and `encode_document` beside `json.dumps`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import (
    encode_document,
    encode_line,
    sanitize,
)
from tests.support.strategies import json_values, text


def expected(value: Any, indent: int | None = None) -> bytes:
    dumped = json.dumps(value, ensure_ascii=False, indent=indent)
    for character in "\u2028\u2029\x85":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return dumped.encode("utf-8", "backslashreplace")


without_floats = st.recursive(
    st.none() | st.booleans() | st.integers() | text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text(), inner, max_size=4),
    max_leaves=12,
)


@given(without_floats)
def test_a_line_is_what_json_writes_but_for_three_line_ends_and_surrogates(value: Any) -> None:
    assert encode_line(value) == expected(value)


@given(json_values().map(sanitize))
def test_a_document_is_what_json_writes_indented_by_two(value: Any) -> None:
    assert encode_document(value) == expected(value, indent=2)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_as_the_same_number(value: float) -> None:
    assert json.loads(encode_line([value]))[0].hex() == value.hex()


@pytest.mark.parametrize("value", [0.1, -0.0, 1.0, 123456789.123, 5e-324])
def test_a_common_float_is_spelt_as_python_spells_it(value: float) -> None:
    assert encode_line(value) == repr(value).encode()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, 10**40, -(10**4000)])
def test_integers_beyond_64_bits_keep_their_digits(value: int) -> None:
    assert encode_line({"n": value}) == b'{"n": %s}' % str(value).encode()


@given(text(max_size=200))
def test_a_line_stays_one_line_for_every_way_of_splitting(content: str) -> None:
    line = encode_line({"content": content, content: 1})
    assert b"\n" not in line
    assert b"\r" not in line
    assert line.decode("utf-8").splitlines() == [line.decode("utf-8")]


def test_every_awkward_character_is_written_in_the_way_that_readers_survive() -> None:
    assert encode_line('\u2028\u2029\x85\x7f\x00\x1b\ud83d\\\ud83d"é😀') == (
        b'"\\u2028\\u2029\\u0085\x7f\\u0000\\u001b\\ud83d\\\\\\ud83d\\"\xc3\xa9\xf0\x9f\x98\x80"'
    )


@pytest.mark.parametrize("encode", [encode_line, encode_document])
def test_a_lone_surrogate_reads_back_as_itself(encode: Any) -> None:
    value = {"k\udc00": ["\ud83d", "\\ud83d"]}
    assert json.loads(encode(value)) == value


def test_a_document_refuses_what_is_not_json() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        encode_document({"a": float("nan")})


def test_an_empty_document() -> None:
    assert encode_document({}) == b"{}"
    assert encode_line([]) == b"[]"
