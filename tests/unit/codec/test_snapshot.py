"""`snapshot`: equal exactly while nothing has changed."""

import copy
import json
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import NotPlain, snapshot
from tests.support.strategies import json_values

NUMBERS = [0, 1, 2, True, False, 0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), 2**80, 1e300]


@pytest.mark.parametrize("old", NUMBERS)
@pytest.mark.parametrize("new", NUMBERS)
def test_a_number_equals_only_itself(old: Any, new: Any) -> None:
    unchanged = type(old) is type(new) and repr(old) == repr(new)
    assert (snapshot({"a": [old]}) == {"a": [new]}) is unchanged
    assert (snapshot(old) == new) is unchanged


@given(json_values())
def test_a_snapshot_equals_a_copy(value: Any) -> None:
    assert snapshot(value) == copy.deepcopy(value)


@given(json_values(), json_values())
def test_a_snapshot_equals_nothing_else(value: Any, other: Any) -> None:
    same = json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (snapshot(value) == other) is same


def test_an_edit_in_place_is_seen_at_any_depth() -> None:
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "a"}], "usage": {"n": 1}}
    before = snapshot(message)
    assert before == message
    message["content"][0]["text"] = "b"
    assert before != message
    message["content"][0]["text"] = "a"
    assert before == message
    message["usage"]["n"] = True
    assert before != message
    message["usage"]["n"] = 1
    message["content"].append(None)
    assert before != message


def test_none_is_kept_and_is_not_false() -> None:
    assert snapshot([None]) == [None]
    assert snapshot([None]) != [False]
    assert snapshot({"a": None}) != {}


def test_strings_are_shared() -> None:
    text = "x" * 100
    assert snapshot({"a": [text]})["a"][0] is text


class Text(str):
    pass


@pytest.mark.parametrize(
    "value",
    [
        (1,),
        {1},
        b"a",
        Text("a"),
        OrderedDict(),
        {1: 2},
        {Text("a"): 1},
        pytest.param(object(), id="object"),
        1j,
    ],
    ids=repr,
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(NotPlain):
        snapshot(value)
    with pytest.raises(NotPlain):
        snapshot([{"a": [value]}])


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "dict"])
def test_a_hundred_levels_are_copied_and_more_are_refused(wrap: Any) -> None:
    value: Any = "core"
    for _ in range(100):
        value = wrap(value)
    assert snapshot(value) == value
    with pytest.raises(NotPlain, match="100"):
        snapshot(wrap(value))
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlain):
        snapshot(loop)


def test_a_snapshot_cannot_be_hashed_by_its_numbers() -> None:
    with pytest.raises(TypeError):
        hash(snapshot(1))


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value: dict[str, int]) -> None:
    assert snapshot(value) == dict(reversed(value.items()))
