"""`decode` beside `json.loads`, and the rule by which the original reads."""

import io
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import Undecodable, decode, encode_line, original_accepts
from sessionary.codec.decode import decode_patiently
from tests.support.strategies import json_values, text


def same(left: Any, right: Any) -> bool:
    """Equal, with NaN equal to NaN, and numbers of the same type."""
    return repr(left) == repr(right)


@given(json_values(), st.booleans())
def test_what_json_writes_is_read_as_json_reads_it(value: Any, escaped: bool) -> None:
    raw = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "backslashreplace")
    assert same(decode(raw), json.loads(raw))


@given(json_values(finite=True))
def test_what_we_write_is_read_back(value: Any) -> None:
    assert same(decode(encode_line(value)), json.loads(json.dumps(value)))


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b" ",
    b"\t",
    b"\r",
    b"\\",
    b"a",
    b"\\u00",
    b"\\ud83d",
    b"\\ude00",
]
PIECES += [
    b"1",
    b"-",
    b"0",
    b".",
    b"e",
    b"+",
    b"9" * 20,
    b"true",
    b"null",
    b"NaN",
    b"Infinity",
    b"\x00",
    b"\x07",
]
PIECES += [
    b"\xff",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x85",
    b"\xe2\x80\xa8",
    b'{"a": 1}',
    b'"k": "v"',
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_bytes_are_read_exactly_if_json_reads_them_as_utf_8(raw: bytes) -> None:
    try:
        known = json.loads(raw.decode("utf-8").removeprefix("\ufeff"))
    except ValueError:
        with pytest.raises(Undecodable):
            decode(raw)
    else:
        assert same(decode(raw), known)


ODD: list[tuple[bytes, Any, tuple[str, ...]]] = [
    (b"\xef\xbb\xbf{}", {}, ("bom",)),
    (b'"\\ud83d"', "\ud83d", ("lone_surrogate",)),
    (b'{"k\\ud800": "\\udc00\\ud83d"}', {"k\ud800": "\udc00\ud83d"}, ("lone_surrogate",)),
    (b"[NaN, -Infinity]", [float("nan"), float("-inf")], ("odd_number",)),
    (b"1e400", float("inf"), ("odd_number",)),
    (b'\xef\xbb\xbf[1e999, "\\udc00"]', [float("inf"), "\udc00"], ("bom", "odd_number", "lone_surrogate")),
    (b'"\\ud83d\\ude00 \\\\ud83d"', "😀 \\ud83d", ()),
]


@pytest.mark.parametrize(("raw", "value", "notes"), ODD)
def test_what_msgspec_refuses_is_read_and_reported(raw: bytes, value: Any, notes: tuple[str, ...]) -> None:
    assert same(decode(raw), value)
    assert decode_patiently(raw).notes == notes


def test_reading_ends_well_at_the_edge_of_what_the_stack_holds() -> None:
    # The slow reader reads a value and then tries to write it, and the two do not give up at the same depth.
    read = []
    for depth in range(800, 1010):
        try:
            decode(b"[" * depth + b'NaN, "\\ud83d"' + b"]" * depth)
        except Undecodable as error:
            assert error.code == "too_deep"  # noqa: PT017 - each depth may end either way
        else:
            read.append(depth)
    assert read == list(range(800, 800 + len(read)))
    assert read


def test_integers_keep_all_their_digits_and_the_last_of_equal_keys_counts() -> None:
    digits = "1" * 4300
    assert decode(digits.encode()) == int(digits)
    assert decode(b'{"a": -123456789012345678901234567890, "a": 2}') == {"a": 2}


REFUSED: list[tuple[bytes, str, int | None]] = [
    (b"", "bad_json", 0),
    (b"  ", "bad_json", 2),
    (b'{"a": 1} {"b": 2}', "bad_json", 9),
    (b'{"a": "\xc3\xa9", x}', "bad_json", 12),
    (b'\xef\xbb\xbf{"a": }', "bad_json", 9),
    (b'{"a": "unfinis', "bad_json", 6),
    (b"{}\x00", "bad_json", 2),
    (b"nan", "bad_json", 0),
    (b'"\xe6\x87"', "bad_utf8", 1),
    (b'"\xed\xa0\x80"', "bad_utf8", 1),
    (b'\xef\xbb\xbf"\xff"', "bad_utf8", 4),
    (b"5\x00", "bad_json", 1),  # UTF-16, if anybody guessed
    (b'"a\x07"', "control_characters", 2),
    (b'{"\xc3\xa9": "a\nb"}', "control_characters", 9),
    (b'{"a": "\x07", }', "bad_json", 7),
    (b"[" * 100_000 + b"]" * 100_000, "too_deep", None),
    (b'{"a": "\x07", "b": ' + b"[" * 100_000, "bad_json", 7),
    (b"9" * 5000, "number_too_long", None),
    (b'{"a": [-' + b"9" * 5000 + b"]}", "number_too_long", None),
]


@pytest.mark.parametrize(("raw", "code", "at"), REFUSED, ids=lambda value: str(value)[:24])
def test_what_cannot_be_read_says_why_and_where(raw: bytes, code: str, at: int | None) -> None:
    with pytest.raises(Undecodable) as caught:
        decode(raw)
    assert (caught.value.code, caught.value.at) == (code, at)
    assert str(at) in str(caught.value) if at is not None else str(caught.value)


def test_the_error_is_a_value_error_and_survives_pickling() -> None:
    error = Undecodable("words", code="bad_json", at=3)
    copy = pickle.loads(pickle.dumps(error))
    assert issubclass(Undecodable, ValueError)
    assert (str(copy), copy.code, copy.at) == ("words", "bad_json", 3)


def as_the_original(data: bytes) -> bool:
    """The original's loop, written down once more with the file object that it uses."""
    try:
        for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"):
            if line.strip():
                json.loads(line.strip())
    except (ValueError, RecursionError):
        return False
    return True


LINES = [*PIECES, b"\n", b"\r\n", b"\n", b"\x0c", b"\x1c", b"\xc2\xa0", b"[1]", b"{}"]


@given(st.lists(st.sampled_from(LINES), max_size=14).map(b"".join))
def test_the_rule_of_the_original(data: bytes) -> None:
    assert original_accepts(data) == as_the_original(data)


@pytest.mark.parametrize(
    ("data", "accepted"),
    [
        (b"", True),
        (b"\n\n  \n", True),
        (b'{"a": 1}\r{"b": 2}', True),
        (b'{"a": NaN}\n5\n', True),
        (b'\xc2\xa0{"a": 1}\x0c\n', True),
        (b'\xef\xbb\xbf{"a": 1}\n', False),
        (b'{"a": 1}\n{"b": ', False),
        (b'{"a": 1}{"b": 2}\n', False),
        (b'{"a": "\xff"}\n', False),
        (b"[" * 100_000, False),
        (b"9" * 5000, False),
    ],
)
def test_what_the_original_accepts(data: bytes, accepted: bool) -> None:
    assert original_accepts(data) is accepted


@given(text())
def test_text_of_any_kind_comes_back(content: str) -> None:
    # Two halves of a pair that stand side by side are one character to every reader of JSON.
    joined = content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert decode(encode_line(content)) == joined
