"""Stored values: values that JSON cannot express are restored unchanged."""

import json
import math
from typing import Any

import pytest

from sessionary.errors import Invalid
from sessionary.layouts.records.values import decode_value, encode_value

VECTORS: list[tuple[Any, str]] = [
    (None, "null"),
    ([True, 1.5, "é"], '[true,1.5,"é"]'),
    ("\0", '"\\u0000"'),
    (b"\0a", '{"$bytes":"AGE="}'),
    ([float("inf"), -float("inf")], '[{"$float":"Infinity"},{"$float":"-Infinity"}]'),
    ({"$bytes": "x"}, '{"$object":[["$bytes","x"]]}'),
    ({"$object": []}, '{"$object":[["$object",[]]]}'),
    ({"$a": 1, "b": 2}, '{"$a":1,"b":2}'),
    ("a\ud800", '{"$text":"Ye2ggA=="}'),
    ({"\udc00": 1}, '{"$object":[[{"$text":"7bCA"},1]]}'),
    (2**70, str(2**70)),
    ({"a": [{"$x": b""}]}, '{"a":[{"$object":[["$x",{"$bytes":""}]]}]}'),
]
"""Values, and how they are stored. docs/formats/records.md has the same."""


@pytest.mark.parametrize(("value", "stored"), VECTORS)
def test_a_value_is_stored_as_its_vector_and_comes_back(value: Any, stored: str) -> None:
    raw = encode_value(value)
    assert raw.decode() == stored
    assert decode_value(raw) == value
    json.loads(raw)


def test_nan_and_infinities_are_restored() -> None:
    assert encode_value({"n": float("nan")}) == b'{"n":{"$float":"NaN"}}'
    assert math.isnan(decode_value(encode_value(float("nan"))))
    assert math.copysign(1, decode_value(encode_value(-0.0))) == -1


@pytest.mark.parametrize("value", [object(), {1: b"x"}, [{"a": {1, 2}}]])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        encode_value(value)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Invalid):
        encode_value(value)
