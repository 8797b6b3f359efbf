"""What a message was, in a form that tells at the speed of ``==`` whether it has changed since.

A store that appends only what is new must notice when an old message was edited in place. It keeps a structural
copy: new containers, the same strings. Comparing a string with itself costs nothing, so a long transcript is compared
in a fraction of a microsecond per message. Plain ``==`` would not do for numbers: ``1 == True == 1.0`` in Python, but
their JSON differs.
"""

from __future__ import annotations

from typing import Any, Final

_MAX_DEPTH: Final = 100


class NotPlain(TypeError):
    """The value is not made of plain JSON types only; compare its sanitised form instead."""


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
    """Python compares floats as numbers: NaN differs from itself, and -0.0 equals 0.0. Their texts do neither."""
    return value.hex() if type(value) is float else value


_TRUE: Final = _Exact(True)
_FALSE: Final = _Exact(False)


def snapshot(value: Any) -> Any:
    """A structural copy for comparing: ``snapshot(old) == new`` is true while nothing in `new` has changed.

    The snapshot stands on the left. Strings are shared with `value`, so it costs memory only for the containers. The
    order of keys does not count.

    Raises:
        NotPlain: something in it is not exactly dict, list, str, int, float, bool or None, a key is not a str, or
            it is nested deeper than 100.
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
