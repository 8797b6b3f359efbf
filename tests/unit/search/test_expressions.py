"""Expressions with AND, OR and NOT, and regular expressions: what they find, and that no line is passed over."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Invalid
from sessionary.model import Message, Text, ToolResult
from sessionary.search import ByteFilter, Needle, Pattern, Query, parsed, pieces
from sessionary.search.expression import Alternative, split
from sessionary.search.needle import composed
from sessionary.search.scan import Search, _best

ALPHABET = 'aAkK\u212asSſiIıİéÉe\u0301在庫欄\uf91d;\u037e 1-._\n"'


def found(expression: str, *texts: str, regex: bool = False) -> bool:
    """Whether a message with these texts matches."""
    alternatives = parsed(split(expression), Pattern if regex else Needle)
    message = Message("user", "person", tuple(map(Text, texts)))
    return _best(alternatives, pieces(message)) is not None


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        ("race lock", "a lock, a race", "a race"),
        ("race AND lock", "a lock, a race", "a lock"),
        ("race OR lock", "a lock", "a key"),
        ("race NOT lock", "a race", "a race, a lock"),
        ("race AND NOT lock", "a race", "a race, a lock"),
        ("a1 b1 OR c1 d1", "d1 c1", "a1 c1"),
        ("NOT lock race OR key", "lock key", "lock race"),
        ('"race condition" OR key', "the race  condition", "condition, race"),
        ('"OR" NOT and', "this or that", "or and"),
        ("在 OR 庫存", "不在", "車庫"),
        ("ラ NOT ー", "カラ", "カラー"),
    ],
)
def test_what_an_expression_finds(expression: str, matching: str, other: str) -> None:
    assert found(expression, matching)
    assert not found(expression, other)


def test_an_excluded_word_counts_in_any_text_of_the_message() -> None:
    assert not found("race NOT lock", "race", "lock")


@pytest.mark.parametrize(
    "expression", ["OR", "a OR", "AND a", "a NOT", "a OR AND b", "NOT NOT a", "a AND OR b"]
)
def test_an_operator_without_a_word(expression: str) -> None:
    with pytest.raises(Invalid, match="has no word"):
        parsed(split(expression), Needle)


def test_empty_words_are_not_an_alternative() -> None:
    assert parsed([], Needle) == ()


@pytest.mark.parametrize(
    ("pattern", "text", "spans"),
    [
        (r"HTTP [45]\d\d", "an http 404", [(3, 11)]),
        (r"^b", "a\nb", [(2, 3)]),
        (r"x*", "axxb", [(1, 3)]),
        (r"(?=a)", "a", []),
        (r"é", composed("e\u0301"), [(0, 1)]),
    ],
)
def test_places_of_a_pattern(pattern: str, text: str, spans: list[tuple[int, int]]) -> None:
    assert list(Pattern(pattern).spans(text)) == spans


def test_case_of_a_pattern() -> None:
    assert not list(Pattern("Lock", case=True).spans("lock"))


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[b-a]", "*"])
def test_what_is_not_a_pattern(pattern: str) -> None:
    with pytest.raises(Invalid, match="not a regular expression"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"deadlock", "deadlock"),
        (r"foo\.bar+z?", "foo.bar"),
        (r"ab?c\d+deep", "deep"),
        (r"(lock|key)down", "down"),
        (r"lock|key", None),
        (r"\x41bcd", None),
        (r"(?i:abc)", None),
        (r"[\]lock]hunt", "hunt"),
        (r"lock{2}", "loc"),
        (r"x{0}yz", "yz"),
    ],
)
def test_words_that_each_match_contains(pattern: str, words: str | None) -> None:
    needle = Pattern(pattern).needle
    assert (None if needle is None else needle.text) == words


tokens = st.sampled_from(list(ALPHABET.replace(".", "").replace("-", ""))).map(re.escape) | st.sampled_from(
    [".", "[aké]", "[^a]", r"\w", "(aé|k)", "(s)"]
)
patterns = st.lists(
    st.tuples(tokens, st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{0,2}", "+?"])), max_size=6
)


@given(
    patterns.map(lambda parts: "".join(map("".join, parts))), st.text(ALPHABET, max_size=12), st.booleans()
)
def test_a_line_that_a_pattern_matches_is_a_candidate(pattern: str, text: str, case: bool) -> None:
    wanted = Pattern(pattern, case=case)
    if wanted.needle is not None and any(wanted.spans(composed(text))):
        for ascii_ in (True, False):
            assert ByteFilter([wanted.needle])(json.dumps({"text": text}, ensure_ascii=ascii_).encode())


def test_an_excerpt_of_a_pattern_has_its_match_marked() -> None:
    message = Message("user", "person", (Text("x " * 300 + "the\nHTTP  404 came " + "y " * 300),))
    hit = _best((Alternative((Pattern(r"http\s+4\d+"),)),), pieces(message))
    assert hit is not None
    _, excerpt = hit
    ((start, end),) = excerpt.marks
    assert excerpt.text[start:end] == "HTTP 404"
    assert "the HTTP 404 came" in excerpt.text
    assert excerpt.cut == (True, True)


def test_only_failed_results_are_searched_for_errors() -> None:
    results = (ToolResult("1", "lock held", True), ToolResult("2", "lock free"))
    message = Message("tool", "tool", (Text("lock"), *results))
    assert [piece.text for piece in pieces(message, failed=True)] == ["lock held"]


def test_a_query_without_known_words_decodes_every_line() -> None:
    search = Search(Query((), alternatives=parsed(["race", "OR", "a|b"], Pattern)))
    assert search._may_match(b'{"x":"nothing"}')
    narrow = Search(Query((), alternatives=parsed(["race", "OR", "lock", "NOT", "key"], Needle)))
    assert not narrow._may_match(b'{"x":"key"}')
    assert narrow._may_match(b'{"x":"LOCK"}')
