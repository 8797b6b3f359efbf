"""Stored text on a terminal: harmless, measured in cells, cut and wrapped without losing a word."""

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.cli.text import _pieces, cells, column, fit, harmless, one_line, pad, wrap

anything = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x1b\x9b\u202e\ud83d\n\t 日🌡\ufe0f\u0301")
)
seen = anything.map(harmless).filter(lambda text: "\u200d" not in text)


@given(anything)
def test_what_is_printed_never_acts(text: str) -> None:
    for char in harmless(text):
        acts = unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(char) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        )  # fmt: skip
        assert char == "\n" or not acts, hex(ord(char))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 日本 🙂 größer\u00a0x", "plain 日本 🙂 größer\u00a0x"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud83d", "\\ud83d"),
        ("\U000e0041", "\\U000e0041"),
        ("a\tb\r\nc\rd", "a    b\nc\\x0dd"),
        ("👩\u200d👧", "👩\u200d👧"),
    ],
)
def test_acting_characters_are_shown_by_their_numbers(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(anything)
def test_one_line_is_one(text: str) -> None:
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("größer – “x” → ✓", 16), ("日本語", 6), ("🌡️", 2), ("e\u0301", 1), ("Ж│", 2)],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@given(seen.map(one_line), st.integers(1, 40), st.booleans())
def test_what_is_cut_fits_and_says_so(text: str, width: int, keep_end: bool) -> None:
    cut = fit(text, width, keep_end=keep_end)
    assert cells(cut) <= width
    if cut != text:
        assert cut.startswith("…") if keep_end else cut.endswith("…")
        kept = cut.strip("…")
        assert kept in text


def test_cutting_keeps_as_much_as_fits() -> None:
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abcde…"
    assert fit("abcdefg", 6, keep_end=True) == "…cdefg"
    assert fit("日本語日本語", 6) == "日本…"
    assert fit("x" * 10**6, 6) == "xxxxx…"


@given(seen, st.integers(4, 40))
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(text: str, width: int) -> None:
    lines = list(wrap(text, width))
    assert all(cells(line) <= width for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("    indented here", ["    inde", "nted", "here"]),
        ("  a\n\n  b", ["  a", "", "  b"]),
        ("      日本", ["      日", "本"]),
        ("       日", ["日"]),
        ("        a", ["a"]),
        (" " * 20 + "\n" + " " * 20 + "a b", ["", "a b"]),
        ("abcdefghijklmnopq r", ["abcdefgh", "ijklmnop", "q r"]),
        ("日本語日本語", ["日本語日", "本語"]),
    ],
)
def test_wrapping(text: str, lines: list[str]) -> None:
    assert list(wrap(text, 8)) == lines


def test_a_line_of_megabytes_is_wrapped() -> None:
    assert len(list(wrap("日" * 200_000, 80))) == 5000
    assert len(list(wrap("x" * 2_000_000, 80))) == 25_000


@given(seen.map(one_line), st.integers(0, 30))
def test_padding_reaches_the_width(text: str, width: int) -> None:
    assert cells(pad(text, width)) == max(width, cells(text))


def test_a_column_is_as_wide_as_its_widest_text() -> None:
    assert column([]) == []
    assert column(["a", "bcd", ""]) == ["a  ", "bcd", "   "]
    assert column(["7", "120"], right=True) == ["  7", "120"]
    assert column(["日本", "abc", "✓ ok", "e\u0301"]) == ["日本", "abc ", "✓ ok", "e\u0301   "]


@given(st.lists(st.text(max_size=8)), st.booleans())
def test_all_texts_of_a_column_take_the_same_cells(texts: list[str], right: bool) -> None:
    lines = [one_line(one) for one in texts]
    filled = column(lines, right=right)
    assert len({cells(one) for one in filled}) <= 1
    assert [one.strip(" ") for one in filled] == [one.strip(" ") for one in lines]


class Copied(str):
    """A text that counts how many characters are copied out of it, and out of what was copied."""

    copied = 0

    def __getitem__(self, place: Any) -> "Copied":
        part = Copied(super().__getitem__(place))
        Copied.copied += len(part)
        return part


@pytest.mark.parametrize("sign", ["x", "日", "e\u0301"])
def test_a_long_word_is_cut_in_linear_time(sign: str) -> None:
    """Cut by copying what is left each time, megabytes of base64 take a minute."""
    work = []
    for length in (10_000, 40_000):
        Copied.copied = 0
        pieces = list(_pieces(Copied(sign * length), 80, 80))
        assert "".join(pieces) == sign * length
        assert len(pieces) == cells(sign) * length // 80
        work.append(Copied.copied)
    assert work[0] < work[1] < 4.5 * work[0]
