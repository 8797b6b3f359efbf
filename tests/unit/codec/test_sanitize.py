"""`sanitize` and the table of forms in its module."""

import collections
import dataclasses
import enum
import json
import sys
import types
import uuid
from array import array
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import encode_line, sanitize
from tests.support.strategies import json_values


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Word(enum.StrEnum):
    YES = "yes"


class Nested(enum.Enum):
    OUTER = Colour.RED


class Point(NamedTuple):
    x: int
    y: Any = None


@dataclasses.dataclass
class Data:
    name: str
    inner: Any = None
    _private: int = 1


@dataclasses.dataclass
class Unset:
    here: int
    gone: int


class Struct(msgspec.Struct):
    a: int
    b: Any = None


class Model:
    def __init__(self, dumped: Any) -> None:
        self.dumped = dumped

    def model_dump(self) -> Any:
        if isinstance(self.dumped, Exception):
            raise self.dumped
        return self.dumped

    def __str__(self) -> str:
        return "a model"


class Plain:
    def __init__(self) -> None:
        self.shown = {1, 2}
        self._hidden = "no"


class Hidden:
    def __init__(self) -> None:
        self._hidden = "no"

    def __str__(self) -> str:
        return "a name"


class Text(str):
    def __str__(self) -> str:
        return "something else"


class Number(int):
    pass


class Silent:
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        return "hostile"


class Attribute(NamedTuple):
    name: str


class LikeAttrs:
    __slots__ = ("a", "b")
    __attrs_attrs__ = (Attribute("a"), Attribute("b"))

    def __init__(self) -> None:
        self.a = 1


class Array:
    __slots__ = ()

    def tolist(self) -> list[Any]:
        return [1, [2, 3]]


class Mock:
    """Whatever it is asked, it answers with another one."""

    def __getattr__(self, name: str) -> "Mock":
        return Mock()

    def __call__(self) -> "Mock":
        return Mock()

    def __str__(self) -> str:
        return "mock"


def _function() -> None: ...


MOMENT = datetime(2026, 1, 25, 4, 8, 0, 123456, tzinfo=UTC)
ID = uuid.UUID(int=5)

FORMS: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (2**80, 2**80),
    (-0.0, -0.0),
    ("lone \ud83d", "lone \ud83d"),
    (float("nan"), "NaN"),
    (float("inf"), "Infinity"),
    (float("-inf"), "-Infinity"),
    ([None, {"a": None}, (1, None)], [None, {"a": None}, [1, None]]),
    (collections.OrderedDict(a=1), {"a": 1}),
    (collections.defaultdict(list, a=[1]), {"a": [1]}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (collections.deque([1, 2]), [1, 2]),
    (collections.UserList([1]), [1]),
    ({"b": 1, "a": 2}.keys(), ["a", "b"]),
    ({"b": 2}.values(), [2]),
    (Text("text"), "text"),
    (Number(7), 7),
    (Colour.RED, "red"),
    (Size.BIG, 3),
    (Word.YES, "yes"),
    (Nested.OUTER, "red"),
    (Point(1), {"x": 1, "y": None}),
    (Data("n", {2, 1}), {"name": "n", "inner": [1, 2], "_private": 1}),
    (Struct(1, Point(2)), {"a": 1, "b": {"x": 2, "y": None}}),
    (LikeAttrs(), {"a": 1}),
    (Model({"at": MOMENT}), {"at": MOMENT.isoformat()}),
    (Model([Model(None)]), [None]),
    (Model(ValueError("broken")), "a model"),
    (Model(Hostile()), "a model"),
    (Plain(), {"shown": [1, 2]}),
    (Hidden(), "a name"),
    ({"b", "a"}, ["a", "b"]),
    (frozenset({10, 9, 1.5}), [1.5, 9, 10]),
    ({2, "a", None}, [None, 2, "a"]),
    (set(), []),
    (MOMENT, "2026-01-25T04:08:00.123456+00:00"),
    (datetime(2026, 1, 25), "2026-01-25T00:00:00"),  # noqa: DTZ001 - a naive one stays naive
    (date(2026, 1, 25), "2026-01-25"),
    (time(4, 8), "04:08:00"),
    (timedelta(hours=1, milliseconds=500), 3600.5),
    (PurePosixPath("/a/b"), "/a/b"),
    (Path("a"), "a"),
    (ID, "00000000-0000-0000-0000-000000000005"),
    (Decimal("1.10"), "1.10"),
    (Fraction(1, 3), "1/3"),
    (b"\x00\xff", {"$base64": "AP8="}),
    (bytearray(b"a"), {"$base64": "YQ=="}),
    (memoryview(b"abcd")[::2], {"$base64": "YWM="}),
    (array("i", [1, 2]), [1, 2]),
    (Array(), [1, [2, 3]]),
    (ValueError("its message"), "ValueError: its message"),
    (KeyError(), "KeyError"),
    (Colour, f"{__name__}.Colour"),
    (_function, f"{__name__}._function"),
    (range(3), "range(0, 3)"),
    (1 + 2j, "(1+2j)"),
    (Silent(), "<Silent>"),
    (Hostile(), "hostile"),
    (Mock(), "mock"),
    (object, "builtins.object"),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda value: type(value).__name__)
def test_each_kind_of_value_has_its_form_at_the_top_and_inside(value: Any, form: Any) -> None:
    assert sanitize(value) == form
    assert type(sanitize(value)) is type(form)
    assert sanitize({"a": [value]}) == {"a": [form]}


def test_an_unset_field_of_a_dataclass_is_left_out() -> None:
    broken = Unset(1, 2)
    del broken.gone
    assert sanitize(broken) == {"here": 1}


KEYS: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (1, "1"),
    (1.5, "1.5"),
    (float("nan"), "NaN"),
    (Size.BIG, "3"),
    (Colour.RED, "red"),
    (Text("key"), "key"),
    (ID, str(ID)),
    (date(2026, 1, 25), "2026-01-25"),
    ((1, 2), "(1, 2)"),
    (frozenset(), "frozenset()"),
]


@pytest.mark.parametrize(("key", "text"), KEYS)
def test_each_kind_of_key_becomes_text(key: Any, text: str) -> None:
    assert sanitize({key: "v"}) == {text: "v"}
    assert type(next(iter(sanitize({key: "v"})))) is str


@pytest.mark.parametrize("key", [None, True, False, 0, -1, 1.5, 1e22])
def test_keys_are_spelt_as_json_spells_them(key: Any) -> None:
    assert list(sanitize({key: 1})) == list(json.loads(json.dumps({key: 1})))


def test_two_keys_with_one_text_both_survive() -> None:
    assert sanitize({1: "int", "1": "text"}) == {"1#2": "int", "1": "text"}
    assert sanitize({"1": "text", 1: "int"}) == {"1": "text", "1#2": "int"}
    clashing = {Text("1"): "text", 1: "int", "1#2": "taken"}
    assert sanitize(clashing) == {"1": "text", "1#3": "int", "1#2": "taken"}


def test_strings_are_shared_and_containers_are_new() -> None:
    text = "x" * 1000
    value = {"a": [text], "b": {"c": text}}
    copy = sanitize(value)
    assert copy == value
    assert copy is not value
    assert copy["a"] is not value["a"]
    assert copy["b"] is not value["b"]
    assert copy["a"][0] is text
    assert copy["b"]["c"] is text


def test_a_cycle_is_named_where_it_closes_and_a_shared_part_is_not_a_cycle() -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["self"] = loop
    loop["list"] = [loop]
    assert sanitize(loop) == {"name": "loop", "self": "<cycle>", "list": ["<cycle>"]}
    around: list[Any] = [1]
    around.append({"list": around})
    assert sanitize(around) == [1, {"list": "<cycle>"}]
    shared = [1]
    assert sanitize([shared, shared]) == [[1], [1]]
    assert sanitize({"a": loop, "b": loop}) == {"a": sanitize(loop), "b": sanitize(loop)}


def test_an_object_that_leads_back_to_itself_is_a_cycle() -> None:
    parent, child = Plain(), Plain()
    parent.shown = {"child": child}  # type: ignore[assignment]
    child.shown = {"parent": parent}  # type: ignore[assignment]
    assert sanitize(parent) == {"shown": {"child": {"shown": {"parent": "<cycle>"}}}}
    growing = Model(None)
    growing.dumped = {"again": growing}
    assert sanitize(growing) == {"again": "<cycle>"}


def nest(depth: int, core: Any, wrap: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    for _ in range(depth):
        core = wrap(core)
    return core


def depth_of(value: Any) -> tuple[int, Any]:
    """How many containers are around the innermost value, following first items, and that value."""
    depth = 0
    while isinstance(value, list | dict):
        value = next(iter(value.values() if isinstance(value, dict) else value))
        depth += 1
    return depth, value


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["list", "dict"])
def test_a_hundred_levels_stay_and_the_next_one_becomes_json_text(wrap: Callable[[Any], Any]) -> None:
    value = nest(100, "core", wrap)
    assert sanitize(value) == value
    depth, text = depth_of(sanitize(nest(101, "core", wrap)))
    assert (depth, text) == (100, json.dumps(wrap("core")))


def test_the_text_of_a_deep_part_holds_the_forms_of_its_values() -> None:
    core = {1: MOMENT, "b": (None, {True}, float("nan")), "c": Point(1, b"a"), "t": "é\u2028\ud83d", "1": 0}
    depth, text = depth_of(sanitize(nest(100, core)))
    assert depth == 100
    assert json.loads(text) == sanitize(core)
    assert "é" in text


def test_100_000_levels_are_stored_whole_and_every_reader_reads_them() -> None:
    value = {"role": "user", "deep": nest(100_000, "core")}
    line = encode_line(sanitize(value))
    depth, text = depth_of(json.loads(line)["deep"])
    assert depth == 99
    assert text == "[" * 99_901 + '"core"' + "]" * 99_901
    assert sanitize(sanitize(value)) == sanitize(value)


def test_deep_objects_and_deep_cycles_end() -> None:
    loop: list[Any] = []
    loop.append(nest(500, loop))
    depth, text = depth_of(sanitize(loop))
    assert depth == 100
    assert text == "[" * 401 + '"<cycle>"' + "]" * 401
    depth, text = depth_of(sanitize(nest(500, 1, lambda inner: Model({"inner": inner}))))
    assert depth == 100
    assert text.count('{"inner": ') == 400


def test_temporary_values_are_not_mistaken_for_a_cycle() -> None:
    # Each model makes a dict that is freed at once: the next one may be given the same id.
    value = nest(100, [Model({"n": number}) for number in range(200)])
    _, text = depth_of(sanitize(value))
    assert json.loads(text) == [{"n": number} for number in range(200)]


def test_an_integer_stays_one_up_to_the_digits_that_readers_accept() -> None:
    longest = 10**4299
    assert sanitize([longest, -longest]) == [longest, -longest]
    assert json.loads(encode_line(sanitize([longest]))) == [longest]
    assert sanitize(10**4300) == hex(10**4300)
    assert sanitize({10**4300: 1}) == {hex(10**4300): 1}


def test_a_deep_recursion_around_the_call_costs_no_message() -> None:
    def call(depth: int) -> Any:
        return call(depth - 1) if depth else sanitize(nest(200, "core"))

    frames = 300
    assert sys.getrecursionlimit() >= 1000
    assert call(frames) == sanitize(nest(200, "core"))


@given(json_values())
def test_json_values_come_out_as_they_are_and_twice_is_once(value: Any) -> None:
    clean = sanitize(value)
    assert sanitize(clean) == clean
    assert json.loads(encode_line(clean)) == json.loads(json.dumps(clean))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_plain_json_is_copied_unchanged(value: Any) -> None:
    assert json.dumps(sanitize(value)) == json.dumps(value)
