"""Files that people have edited keep what they typed."""

import copy
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_edit import comments_of, edit_yaml
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.errors import Corrupt

EDITED = b"""\
# Notes on the sign-in feature
format_version: "1.2"   # do not change

session:
  slug: sign-in
  ems: 52
  # what was asked
  history:
    - iteration: 1      # the first one
      questions: ["Who?", 'What #1?']
      ems: 25
    - iteration: 2
      questions:
        - Why?          # never answered
  odd_key: kept
  last_question: "Why?"   # the end
"""


def changed(data: bytes, change: Any) -> tuple[bytes, Any]:
    value = load_yaml(data)
    change(value)
    return edit_yaml(data, value), value


@pytest.mark.parametrize(
    ("data", "comments"),
    [
        (b"a: 1\n", []),
        (b"a: 1 # b\n", ["# b"]),
        (b"# a\n", ["# a"]),
        (b"a: 'x # y'\n", []),
        (b'a: "x\n  # y"\n', []),
        (b"a: x#y\n", []),
        (b"a: |\n  # text\nb: 1\n", []),
        (b"a: | # c\n  # text\n# d\nb: 1\n", ["# c", "# d"]),
        (b"a: >\n  text\n\n  # text\n", []),
        (b"a: [1, # one\n  2]\n", ["# one"]),
        (b"'k # k': 1\t# t\n", ["# t"]),
        ("é: 'ü # y' # ö\n".encode(), ["# ö"]),
        (b"a: 1\r\n# b\r\n", ["# b"]),
        (b"\xef\xbb\xbf# a\nb: 1\n", ["# a"]),
    ],
)
def test_a_comment_is_distinguished_from_text(data: bytes, comments: list[str]) -> None:
    assert comments_of(data) == comments


def test_setting_the_current_value_changes_no_byte() -> None:
    assert edit_yaml(EDITED, load_yaml(EDITED)) is EDITED
    odd = b"{b: 1,   a: 'x'}"
    assert edit_yaml(odd, {"a": "x", "b": 1}) is odd


def test_only_the_line_that_differs_is_changed() -> None:
    data, value = changed(EDITED, lambda v: v["session"].update(ems=60))
    assert data == EDITED.replace(b"ems: 52", b"ems: 60")
    assert load_yaml(data) == value


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_stay_in_a_file_without_comments(end: str) -> None:
    """Those between the keys, between the entries of a list, and below a list that grows."""
    text = "\nname: a\n\n\nlist:\n  - id: 1\n    text: b\n\n  - id: 2\n    text: c\n\nlast: d\n"
    data = text.replace("\n", end).encode()
    value = load_yaml(data)
    value["list"].append({"id": 3, "text": "e"})
    edited = edit_yaml(data, value | {"last": "f"})
    wanted = text.replace("text: c\n", 'text: c\n  - id: 3\n    text: "e"\n').replace("last: d", 'last: "f"')
    assert edited == wanted.replace("\n", end).encode()


@pytest.mark.parametrize("head", ["\n", "\n\n", "\n\n\n", "# head\n\n", "\n# head\n\n\n"])
def test_blank_lines_at_the_head_neither_go_nor_grow(head: str) -> None:
    data = f"{head}a: 1\n\nb: 2\n".encode()
    for number in (2, 3, 4):
        data = edit_yaml(data, {"a": number, "b": 2})
        assert data == f"{head}a: {number}\n\nb: 2\n".encode()


TABS = b"""\
# head\there
name:\t"a\tb"\t# a\tname
text: |\t# as it is
  x\ty
  # no\tcomment
list:\t# of two
  - id: 1\t\t# the first
  - id: 2
score:\t12\t# so far
last: d\t
"""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_comment_behind_a_tab_stays_where_it_is(end: bytes) -> None:
    """Only what differs is changed; a tab between values becomes a blank, one in a text or a comment stays."""
    data, value = changed(TABS.replace(b"\n", end), lambda v: v.update(last="e"))
    wanted = TABS.replace(b':\t"a', b': "a').replace(b'b"\t', b'b" ').replace(b"|\t", b"| ")
    wanted = wanted.replace(b"list:\t", b"list: ").replace(b"1\t\t", b"1  ")
    wanted = wanted.replace(b"score:\t12\t", b"score: 12 ").replace(b'"a\tb"', b'"a\\tb"')
    wanted = wanted.replace(b"last: d\t", b'last: "e"')
    assert data == wanted.replace(b"\n", end)
    assert load_yaml(data) == value
    assert comments_of(data) == comments_of(TABS.replace(b"\n", end))


def test_a_tab_within_a_word_moves_comments_to_the_head() -> None:
    data, value = changed(b"a: x\ty # z\nb: 1\n", lambda v: v.update(b=2))
    assert data == b'# z\na: "x\\ty"\nb: 2\n'
    assert load_yaml(data) == value


def test_an_entry_comes_to_a_list() -> None:
    data, value = changed(
        EDITED, lambda v: v["session"]["history"].append({"iteration": 3, "questions": ["So?"]})
    )
    assert load_yaml(data) == value
    assert comments_of(data) == comments_of(EDITED)
    assert b'    - iteration: 3\n      questions:\n        - "So?"\n' in data


SECTIONS = b"""\
ideas:
  - id: 1
    text: "a"   # good

# what was said
words:
  - "a b"

# what happened
history:
  - at: 1
    answers: []  # none yet

# the end
last: 1
"""


def test_an_entry_at_the_end_of_a_list_comes_before_what_is_said_of_the_next_key() -> None:
    def change(value: Any) -> None:
        value["ideas"].append({"id": 2, "text": "b c"})
        value["words"] += ["c d", "e f"]
        value["history"].append({"at": 2, "answers": ["x y"]})

    data, value = changed(SECTIONS, change)
    assert load_yaml(data) == value
    wanted = SECTIONS.replace(b"good\n", b'good\n  - id: 2\n    text: "b c"\n')
    wanted = wanted.replace(b'"a b"\n', b'"a b"\n  - "c d"\n  - "e f"\n')
    wanted = wanted.replace(b"yet\n", b'yet\n  - at: 2\n    answers:\n      - "x y"\n')
    assert data == wanted


def test_an_entry_in_front_moves_no_comment_of_the_others() -> None:
    data, value = changed(EDITED, lambda v: v["session"]["history"].insert(0, {"iteration": 0}))
    assert load_yaml(data) == value
    assert b"- iteration: 1      # the first one" in data


def test_any_new_text_is_accepted() -> None:
    data, value = changed(
        EDITED, lambda v: v["session"].update({"yes": "no", "x": {"on": ["12:30", "a # b"]}})
    )
    assert load_yaml(data) == value
    assert b'"yes": "no"' in data


def test_a_comment_whose_lines_go_is_kept_at_the_head() -> None:
    data, value = changed(EDITED, lambda v: v["session"].pop("history"))
    assert load_yaml(data) == value
    assert sorted(comments_of(data)) == sorted(comments_of(EDITED))


def test_a_file_without_comments_is_written_in_the_style_of_the_format() -> None:
    data, value = changed(b"{b: 1, a: [x]}", lambda v: v.update(b=2))
    assert data == dump_yaml(value)


def test_without_comments_ruamel_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    assert edit_yaml(b"a: 'x # y'\n", {"a": 1}) == b"a: 1\n"
    with pytest.raises(ImportError):
        edit_yaml(b"a: 1 # y\n", {"a": 2})


def test_line_ends_of_the_file_are_kept() -> None:
    data, _ = changed(EDITED.replace(b"\n", b"\r\n"), lambda v: v["session"].update(ems=60))
    assert data == EDITED.replace(b"ems: 52", b"ems: 60").replace(b"\n", b"\r\n")


def test_an_anchor_that_two_places_share_does_not_spread_a_change() -> None:
    data, value = changed(b"a: &x [1, 2] # c\nb: *x\n", lambda v: v["a"].append(3))
    assert load_yaml(data) == value == {"a": [1, 2, 3], "b": [1, 2]}
    assert comments_of(data) == ["# c"]


def test_a_broken_file_is_not_edited() -> None:
    with pytest.raises(Corrupt):
        edit_yaml(b"a: [ # c\n", {"a": 1}, path="f.yaml")


def test_values_are_the_same_only_if_they_are_stored_alike() -> None:
    assert same({"a": [1, "x"]}, {"a": [1, "x"]})
    assert not same([1], [True])
    assert not same([1], [1.0])
    assert same([float("nan")], [float("nan")])
    assert not same({"a": 1}, {"a": 1, "b": None})


small = st.recursive(
    st.sampled_from(["x", "no", "a # b", "# c", "", "long text: with signs\nand lines"])
    | st.integers(0, 9)
    | st.none(),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(st.sampled_from("abc"), child, max_size=3),
    max_leaves=8,
)
gaps = st.sampled_from(["  ", "\t"])
maps = st.dictionaries(st.sampled_from("abcde"), small, min_size=1, max_size=4)


@given(maps, maps, st.data())
def test_whatever_changes_value_and_comments_survive(old: Any, new: Any, data: st.DataObject) -> None:
    lines = dump_yaml(old).decode().splitlines()
    for number in range(len(lines)):
        if data.draw(st.booleans()):
            gap = "  " if lines[number].endswith("-") else data.draw(gaps)
            lines[number] += f"{gap}# comment {number}"
    if data.draw(st.booleans()):
        lines.insert(data.draw(st.integers(0, len(lines))), "# a line of its own")
    typed = ("\n".join(lines) + "\n").encode()
    assert load_yaml(typed) == old
    if data.draw(st.booleans()):  # nearly the same value, as a save has it
        new = copy.deepcopy(old) | {"e": new}
    out = edit_yaml(typed, new)
    assert same(load_yaml(out), new)
    assert set(comments_of(typed)) <= set(comments_of(out))
