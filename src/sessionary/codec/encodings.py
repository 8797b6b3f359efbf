"""JSON encodings of single Python values that JSON has no type for.

Each rule takes one step: an object becomes a dict of its fields, a set becomes a list; their members are left to
`sanitize`. Values come from other programs, so the rules call foreign code (`model_dump`, properties, ``__str__``).
An error in it must not lose the message around the value: the value is then stored as text.
"""

from __future__ import annotations

import base64
import dataclasses
from collections import UserList, deque
from collections.abc import Callable, Iterable, Mapping, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

BASE64: Final = "$base64"
PLAIN: Final = frozenset({dict, list, tuple, str, int, float, bool, type(None)})


def form_of(value: Any) -> Any:
    """Convert a value one step towards JSON: returns an object of one of the types in `PLAIN`.

    Its members may still be anything. Never raises.
    """
    try:
        form = _step(value)
    except Exception:  # noqa: BLE001 - foreign code; storing the rest of the message matters more
        return text_of(value)
    # A mock answers every call with another mock: only a plain type counts as a step.
    return form if type(form) in PLAIN else text_of(value)


def text_of(value: Any) -> str:
    """``str(value)`` of any object as a plain string; the name of its type if that fails."""
    try:
        return str.__str__(str(value))
    except Exception:  # noqa: BLE001 - foreign code, as above
        return f"<{type(value).__name__}>"


def is_bytes_form(value: Any) -> bool:
    """True if this is the stored form of bytes."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(BASE64), str)


def _step(value: Any) -> Any:
    for kind, convert in _KINDS:
        if isinstance(value, kind):
            return convert(value)
    for has, convert in _SHAPES:
        if has(value):
            return convert(value)
    return text_of(value)


def _ordered(items: Iterable[Any]) -> list[Any]:
    """Return the members of a set in a reproducible order, where possible."""
    members = list(items)
    kinds = {type(member) for member in members}
    if kinds == {str} or kinds <= {int, float, bool}:
        return sorted(members)
    return sorted(members, key=lambda member: (type(member).__name__, text_of(member)))


def _base64(data: Any) -> dict[str, str]:
    raw = data.tobytes() if isinstance(data, memoryview) else bytes(data)
    return {BASE64: base64.b64encode(raw).decode("ascii")}


def _exception(error: BaseException) -> str:
    words = text_of(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


# Order matters: an IntEnum is an int, a datetime is a date, a named tuple is a tuple.
_KINDS: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Enum, lambda member: member.value if type(member.value) in PLAIN else form_of(member.value)),
    (str, str.__str__),
    (int, int),
    (float, float),
    (tuple, lambda items: items._asdict() if hasattr(items, "_asdict") else list(items)),
    (dict, dict),
    (list, list),
    ((datetime, date, time), lambda moment: moment.isoformat()),
    (timedelta, timedelta.total_seconds),
    ((PurePath, UUID, Decimal), str),
    ((bytes, bytearray, memoryview), _base64),
    (Set, _ordered),
    (Mapping, dict),
    ((deque, UserList, ValuesView), list),
    (BaseException, _exception),
    (type, lambda kind: f"{kind.__module__}.{kind.__qualname__}"),
)


def _fields(value: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _public(value: Any) -> dict[str, Any]:
    return {name: item for name, item in vars(value).items() if not name.startswith("_")}


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


_SHAPES: Final[tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...]] = (
    (lambda value: callable(getattr(value, "model_dump", None)), lambda model: model.model_dump()),
    (
        dataclasses.is_dataclass,
        lambda value: _fields(value, [field.name for field in dataclasses.fields(value)]),
    ),
    (
        lambda value: hasattr(value, "__struct_fields__"),
        lambda value: _fields(value, value.__struct_fields__),
    ),
    (
        lambda value: hasattr(value, "__attrs_attrs__"),
        lambda value: _fields(value, [at.name for at in value.__attrs_attrs__]),
    ),
    (lambda value: callable(getattr(value, "tolist", None)), lambda array: array.tolist()),
    (lambda value: isinstance(getattr(value, "__qualname__", None), str), _name),
    (_public, _public),
)
