"""Plain JSON values, which `sanitize` leaves as they are, and others."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest

from sessionary.codec import sanitize


class Number(IntEnum):
    ONE = 1


def nested(depth: int) -> Any:
    value: Any = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


PLAIN = [
    None,
    True,
    0,
    -(10**4299),
    1.5,
    -0.0,
    "text \ud800",
    [],
    {},
    {"a": [1, {"b": None}], "c": "d"},
    nested(100),
]
OTHER = [
    float("nan"),
    float("inf"),
    10**4300,
    (1, 2),
    {1: "a"},
    {"a": {2}},
    [b"x"],
    Number.ONE,
    OrderedDict(a=1),
    {"at": datetime(2026, 1, 1, tzinfo=UTC)},
    nested(101),
]


def unchanged(value: Any) -> bool:
    """Whether `sanitize` returns the same, as far as equality and the outermost type show."""
    clean = sanitize(value)
    return type(clean) is type(value) and bool(clean == value)


@pytest.mark.parametrize("value", PLAIN, ids=range(len(PLAIN)))
def test_plain_values_are_what_sanitize_would_return(value: Any) -> None:
    assert unchanged(value)


@pytest.mark.parametrize("value", OTHER, ids=range(len(OTHER)))
def test_what_sanitize_would_change_is_not_plain(value: Any) -> None:
    assert not unchanged(value)
