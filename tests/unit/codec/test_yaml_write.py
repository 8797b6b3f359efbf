"""What is written reads back as itself, by our reader and by the two that everybody has."""

from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.errors import Invalid

NASTY = [
    *"yes no on off y n true null ~ 1 1.5 1e3 0x1f 012 0o17 1_000 12:30:45 2026-01-09 .inf .nan".split(),
    *"= << - ? : -- --- ...".split(),
    "", " ", "  lead", "trail  ", "a: b", "a #b", "#a", "- a", "? a", "&a", "*a", "!a", "%a", "@a", "`a", "|", ">",
    "'", '"', "\\", "\\n", "a\nb", "\n", "a\n\n b\n", "\t", "a\tb", "\r", "\r\n", "\x85", "\u2028", "\u2029", "\ufeff",
    "\x00", "\x07", "\x1b", "\x7f", "\x9f", "\ufffe", "é", "日本", "😀", "{a}", "[a", "a,b", "key: [", "x" * 5000,
    "two words " * 300,
]  # fmt: skip
texts = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(NASTY)
values = st.recursive(
    texts | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.booleans() | st.none(),
    lambda child: st.lists(child, max_size=4) | st.dictionaries(texts, child, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_written_is_read(value: Any) -> None:
    assert same(load_yaml(dump_yaml(value)), value)


@given(values)
def test_pyyaml_reads_it(value: Any) -> None:
    assert same(yaml.load(dump_yaml(value), yaml.SafeLoader), value)


@given(values)
def test_libyaml_reads_it(value: Any) -> None:
    assert same(yaml.load(dump_yaml(value), yaml.CSafeLoader), value)


@given(values)
def test_ruamel_reads_it(value: Any) -> None:
    assert same(YAML(typ="safe", pure=True).load(dump_yaml(value).decode()), value)


@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_text_survives_as_value_and_as_key(text: str) -> None:
    value = {text: [text, {"k": text}]}
    data = dump_yaml(value)
    for read in (load_yaml, yaml.safe_load, lambda d: YAML(typ="safe", pure=True).load(d.decode())):
        assert read(data) == value


def test_the_style_is_that_of_the_format() -> None:
    value = {
        "format_version": "1.2",
        "session": {
            "ems": 52,
            "words": ["moscow", "5whys"],
            "none": [],
            "map": {},
            "history": [{"iteration": 1, "questions": ["Que faire?"]}, {"iteration": 2}],
            "yes": None,
            "nested": [[1, "a b"], [["x y"]]],
        },
    }
    assert dump_yaml(value).decode() == (
        'format_version: "1.2"\n'
        "session:\n"
        "  ems: 52\n"
        '  words: ["moscow", "5whys"]\n'
        "  none: []\n"
        "  map: {}\n"
        "  history:\n"
        "    - iteration: 1\n"
        "      questions:\n"
        '        - "Que faire?"\n'
        "    - iteration: 2\n"
        '  "yes": null\n'
        "  nested:\n"
        "    -\n"
        "      - 1\n"
        '      - "a b"\n'
        "    -\n"
        "      -\n"
        '        - "x y"\n'
    )


def test_unicode_stands_as_it_is() -> None:
    assert dump_yaml({"k": "café 日本 😀"}) == 'k: "café 日本 😀"\n'.encode()


@pytest.mark.parametrize(
    "value", [{"k": date(2026, 1, 9)}, {1: "a"}, {"k": {1, 2}}, {"k": "\ud800"}, {"k": 10**5000}]
)
def test_what_yaml_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        dump_yaml(value)


def test_nothing_is_written_that_is_too_deep_to_be_read() -> None:
    def nest(levels: int) -> Any:
        value: Any = "x"
        for number in range(levels):
            value = [value] if number % 2 else {"k": value}
        return value

    assert same(load_yaml(dump_yaml(nest(100))), nest(100))
    with pytest.raises(Invalid, match="deep"):
        dump_yaml(nest(101))
