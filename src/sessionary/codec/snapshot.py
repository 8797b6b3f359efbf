"""Structural copies of messages, compared with ``==`` to detect changes.

A store that appends only new messages must notice when an old message was edited in place. It keeps a structural
copy: new containers, the same strings. Comparing a string with itself is free, so a long transcript is compared in a
fraction of a microsecond per message. Plain ``==`` is not enough for numbers: ``1 == True == 1.0`` in Python, but
their JSON differs.
"""

from __future__ import annotations

from typing import Any, Final

_MAX_DEPTH: Final = 100


class NotPlain(TypeError):
    """The value does not consist of plain JSON types only; compare its sanitised form instead."""


class _Exact:
    """A number or boolean that equals only one of the same type with the same value."""

    __slots__ = ("_kind", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self._kind = type(value)
        self._value = _comparable(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and bool(_comparable(other) == self._value)


def _comparable(value: object) -> object:
    """Return floats as text: as numbers, NaN differs from itself and -0.0 equals 0.0."""
    return value.hex() if type(value) is float else value


_TRUE: Final = _Exact(True)
_FALSE: Final = _Exact(False)


def snapshot(value: Any) -> Any:
    """Return a structural copy: ``snapshot(old) == new`` is true while nothing in `new` has changed.

    The snapshot must be the left operand. Strings are shared with `value`, so only containers cost memory. The order
    of keys is ignored.

    Raises:
        NotPlain: a value is not exactly dict, list, str, int, float, bool or None, a key is not a str, or nesting is
            deeper than 100.
    """
    return _copy(value, _MAX_DEPTH)


def _copy(value: Any, room: int) -> Any:
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        return _copy_dict(value, room)
    if kind is list:
        if not room:
            raise NotPlain("nested deeper than 100")
        return [item if type(item) is str else _copy(item, room - 1) for item in value]
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is int or kind is float:
        return _Exact(value)
    raise NotPlain(f"a {kind.__name__} is not plain JSON")


def _copy_dict(value: dict[Any, Any], room: int) -> dict[str, Any]:
    if not room:
        raise NotPlain("nested deeper than 100")
    copy: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise NotPlain(f"a key of type {type(key).__name__} is not plain JSON")
        copy[key] = item if type(item) is str else _copy(item, room - 1)
    return copy


def same(one: Any, other: Any) -> bool:
    """True if two values are stored alike: as ``==``, but 1, 1.0 and True differ, and NaN equals itself."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(child, other[key]) for key, child in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)
