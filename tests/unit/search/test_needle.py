"""The bytes that give a line away never miss it, in whatever way JSON has written its text."""

import json
import re
from itertools import pairwise
from typing import Literal
from unicodedata import combining, decomposition, normalize

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sessionary.errors import Invalid
from sessionary.search import ByteFilter, Needle, one_spaced
from sessionary.search import needle as needle_module
from sessionary.search.needle import _CASED, LineFilter, blocks, composed

# Letters that fold in every odd way, blanks, and whatever JSON writes with a backslash.
ALPHABET = 'aAbsSßẞſkKKiİıIfﬀﬁﬃlﬄtǰj\u030cʼnŉéÉeσςΣµμ在庫я🌡𐐀𐐨 \t\n\u2028\x1b"\\/\u00a0-1'
Form = Literal["NFC", "NFD"]
texts = st.text(ALPHABET, max_size=30)


def spans(needle: str, text: str, *, case: bool = False) -> list[tuple[int, int]]:
    return [(start, end) for start, end in Needle(needle, case=case).spans(one_spaced(composed(text)))]


def is_found(text: str, needle: str, *, case: bool) -> bool:
    """The rule itself."""
    fold = str if case else str.casefold
    return fold(one_spaced(composed(needle))) in fold(one_spaced(composed(text)))


def candidates(line: bytes, *needles: Needle) -> list[bytes]:
    may_match = ByteFilter(needles)
    return [each for each in (b'{"role":"other"}', line) if may_match(each)]


@st.composite
def written(draw: st.DrawFn, text: str) -> str:
    """The text as a JSON string: each character raw or by its number, in either case, or with its short escape."""
    out = []
    for char in text:
        ways = [json.dumps(char)[1:-1]]
        units = char.encode("utf-16-be")
        numbers = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        ways += [numbers, re.sub(r"(?<=\\u)....", lambda four: four[0].upper(), numbers)]
        if char >= " " and char not in '"\\':
            ways.append(char)
        if char == "/":
            ways.append("\\/")
        out.append(draw(st.sampled_from(ways)))
    return '"' + "".join(out) + '"'


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, str]:
    """A text and a piece of it, perhaps in another case or with other blanks."""
    text = draw(texts)
    start = draw(st.integers(0, max(len(text) - 1, 0)))
    piece = text[start : start + draw(st.integers(1, 8))]
    return text, draw(st.sampled_from([piece, piece.upper(), piece.casefold(), piece.replace(" ", "\n")]))


@given(st.data(), cuts(), st.booleans(), st.booleans())
@example(None, ("Straße", "tras"), False, False)
@example(None, ("the \u212aelvin", "kelvin"), False, False)
def test_a_line_that_holds_the_words_is_a_candidate(
    data: st.DataObject | None, cut: tuple[str, str], case: bool, nested: bool
) -> None:
    text, needle = cut
    assume(one_spaced(needle) and is_found(text, needle, case=case))
    inner = data.draw(written(text)) if data else json.dumps(text)
    if nested:
        inner = data.draw(written(inner)) if data else json.dumps(inner)
    line = f'{{"role":"user","content":{inner}}}'.encode()
    assert line in candidates(line, Needle(needle, case=case))


ACCENTED = "eée\u0301ÉöO\u0308ạ\u0323\u0301ế\u302a가각ᆨがか\u3099欄\uf91dКй;\u037eK\u212aÅ\u212b≠= xa"


@given(st.data(), st.text(ACCENTED, max_size=12), st.booleans(), st.booleans(), st.booleans())
@example(None, "x\u037ey", False, False, False)
@example(None, "the \u212aelvin", True, False, False)
@example(None, "éte\u0301", False, False, False)
def test_a_line_in_any_unicode_form_is_a_candidate(
    data: st.DataObject | None, text: str, case: bool, fold: bool, nested: bool
) -> None:
    """Each part of the text is stored in a form of its own."""
    start, length = (data.draw(st.integers(0, 8)), data.draw(st.integers(1, 5))) if data else (0, 20)
    asked = text[start : start + length]
    assume(one_spaced(asked))
    forms: list[Form] = ["NFC", "NFD"]
    stored = "".join(normalize(data.draw(st.sampled_from(forms)), char) if data else char for char in text)
    try:
        needle = Needle(asked, case=case, fold=fold)
    except Invalid:
        return
    assume(any(needle.spans(block.text) for block in blocks(stored, 100)))
    inner = data.draw(written(stored)) if data else json.dumps(stored, ensure_ascii=False)
    if nested:
        inner = data.draw(written(inner)) if data else json.dumps(inner)
    line = f'{{"role":"user","content":{inner}}}'.encode()
    assert line in candidates(line, needle)
    assert needle.may_be_in(stored)


def test_accents_are_folded_on_request() -> None:
    found = Needle("resume", fold=True).spans(composed("my Re\u0301sumé"))
    assert found == [(3, 9)]
    assert spans("resume", "my résumé") == []
    assert Needle("ha", fold=True).spans(composed("ハか\u3099 Hå")) == [(3, 5)], "dakuten are not accents"
    assert Needle("=", fold=True).spans("≠") == []
    assert not ByteFilter([Needle("resume", fold=True)])('{"content":"一个 ✓ — …"}'.encode())


def test_no_other_character_is_changed_by_the_form() -> None:
    """Every character that NFC changes is noticed, and every one with an accent where accents are folded."""
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    chars = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x110000))]
    for char in chars:
        parts = decomposition(char).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    plain, folded = needle_module._rewritten(False), needle_module._rewritten(True)
    missed = []
    for char in chars:
        data = char.encode()
        may_change = combining(char) or normalize("NFC", char) != char or char in seconds
        if may_change and not char.isspace() and not plain.is_in(data):
            missed.append(hex(ord(char)))
        if char.translate(needle_module._UNACCENTED) != char and not folded.is_in(data):
            missed.append(hex(ord(char)))
    assert missed == []


@given(cuts() | st.tuples(texts, texts), st.booleans())
def test_places_are_those_of_the_words(cut: tuple[str, str], case: bool) -> None:
    text, needle = cut
    assume(one_spaced(needle))
    found = spans(needle, text, case=case)
    assert bool(found) == is_found(text, needle, case=case)
    wanted = Needle(needle, case=case).folded
    for start, end in found:
        piece = one_spaced(composed(text))[start:end]
        assert wanted in (piece if case else piece.casefold())


def test_a_place_in_a_text_that_folding_lengthens() -> None:
    assert spans("strasse", "in der Straße 5") == [(7, 13)]
    assert spans("5", "Straße 5") == [(7, 8)]
    assert spans("ras", "Straße") == [(2, 5)]


def test_case_counts_only_if_asked() -> None:
    assert spans("make", "Make make") == [(0, 4), (5, 9)]
    assert spans("make", "Make make", case=True) == [(5, 9)]


def test_runs_of_blanks_are_one_blank() -> None:
    assert spans("race  condition", "the race\n\tcondition") == [(4, 18)]


def test_other_lines_are_not_candidates() -> None:
    needle = Needle("lock")
    assert candidates(b'{"content":"nothing \\u001b[31m \\u00e9"}', needle) == []
    assert candidates(b'{"content":"a LOCK"}', needle) == [b'{"content":"a LOCK"}']


def test_all_needles_must_be_there_so_the_longest_is_looked_for() -> None:
    assert candidates(b'{"content":"a b"}', Needle("a"), Needle("deadlock")) == []


def test_what_has_no_plain_character_makes_every_line_a_candidate() -> None:
    for needles in ([Needle('"')], [Needle("\u03a2")], []):
        assert ByteFilter(needles).blind
        assert ByteFilter(needles)(b"a\nb\n")


def test_bytes_that_are_not_text_hide_nothing_behind_them() -> None:
    assert ByteFilter([Needle("needle")])(b'\xf0\n{"content":"needle"}\n')
    assert ByteFilter([Needle("needle")])(b'\xff\xe2\n{"content":"NEEDLE"}\n')


@given(cuts() | st.tuples(texts, texts), st.booleans())
def test_a_text_is_passed_over_only_if_it_does_not_hold_the_words(cut: tuple[str, str], case: bool) -> None:
    text, needle = cut
    assume(one_spaced(needle))
    assert Needle(needle, case=case).may_be_in(text) or not is_found(text, needle, case=case)


def test_half_a_surrogate_pair_in_a_text() -> None:
    assert Needle("kelvin").may_be_in("\ud83d Kelvin")
    assert not Needle("kelvin").may_be_in("\ud83d")


@given(st.text("ab \n\u00a0", max_size=40), st.integers(1, 9), st.integers(1, 12))
def test_blocks_are_the_text_with_overlaps(text: str, size: int, overlap: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(needle_module, "BLOCK", size)
        pieces = list(blocks(text, overlap))
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    whole = pieces[0].text
    for before, piece in pairwise(pieces):
        whole += piece.text.removeprefix(before.text[-overlap:])
        assert piece.is_first == (piece.text == whole)
    assert whole == one_spaced(text)


def test_no_other_character_folds() -> None:
    cased = {code for some in _CASED for code in some}
    others = (chr(code) for code in range(0x110000) if code not in cased)
    assert [hex(ord(char)) for char in others if char.casefold() != char] == []


def test_python_and_the_search_fold_alike() -> None:
    """Every character that folds is found by what it folds to, and by each piece of that."""
    missed = []
    for code in (*range(0xD800), *range(0xE000, 0x110000)):
        folded = chr(code).casefold()
        if folded != chr(code):
            line = f'{{"c":"x{chr(code)}y"}}'.encode()
            missed += [
                (hex(code), piece)
                for piece in {folded, "x" + folded, folded + "y", folded[1:] + "y", "x" + folded[0]}
                if not candidates(line, Needle(piece))
            ]
    assert missed == []


@pytest.mark.parametrize("text", ["", " \n", "\udc80"])
def test_nothing_to_look_for(text: str) -> None:
    with pytest.raises(Invalid):
        Needle(text)


def test_a_filter_of_lines_wants_all_needles_in_one() -> None:
    wanted = LineFilter([Needle("quartz"), Needle("Chunk")])
    together, apart = b'{"a": "CHUNK of quartz"}', b'{"a": "quartz"}\n{"b": "chunk"}'
    assert wanted(together)
    assert wanted(apart + b"\n" + together + b"\n")
    assert not wanted(apart)
    assert not wanted(apart + b"\n")
    assert not wanted(b'{"a": "quartz"}\n{"a": "qua')
    assert wanted(b'{"a": "\\u0071uartz"}\n{"b": "chunk \\u0071uartz"}')
    assert wanted(b'{"a": "quartz"}\n{"b": "chunk \\u0071uartz"}\n{"c": 1}')
    assert wanted(b'{"a": "quartz"}\n{"b": "c"}\n{"c": "quartz quartz chunk"}')
    assert not wanted(b'{"a": "quartz quartz"}\n{"b": "chunk chunk"}\n{"c": "quartz"}\n{"d": "chunk"}')


def test_a_filter_of_lines_finds_words_in_another_form() -> None:
    wanted = LineFilter([Needle("größe"), Needle("chunk")])
    assert wanted('{"a": "größe"}\n{"b": "chunk gro\u0308ße"}\n'.encode())
    assert not wanted('{"a": "größe"}\n{"b": "chunk"}\n{"c": "größe"}'.encode())


@given(st.lists(st.sampled_from(["quartz", "CHUNK", "x", "\\u0071uartz", "é"]), max_size=4).map(" ".join))
def test_a_filter_of_lines_is_that_of_each_line(words: str) -> None:
    lines = [b'{"a": "%s"}' % word.encode() for word in words.split(" ")] + [b'{"b": "%s"}' % words.encode()]
    wanted = LineFilter([Needle("quartz"), Needle("chunk")])
    assert wanted(b"\n".join(lines)) == any(map(wanted, lines))


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"a": "quartz\nchunk"}',  # a line break that is not escaped
        b'{"a": "quartz"}garbage\n{"b": "chunk"}',
        b'quartz\n{"b": 1}\n',
        b'{"a": 1}\n\n{"b": "chunk"}\n',
    ],
)
def test_a_filter_of_lines_passes_damage_that_may_hide_a_match(damaged: bytes) -> None:
    assert LineFilter([Needle("quartz"), Needle("chunk")])(damaged)


def test_a_filter_of_lines_with_one_needle_or_none_is_one_of_bytes() -> None:
    assert LineFilter([Needle("quartz")])(b"a\nquartz")
    assert not LineFilter([Needle("quartz")])(b"a\nchunk")
    assert LineFilter([])(b"a")
