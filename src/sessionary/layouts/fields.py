"""Two versions of one document, brought together field by field. Pure.

Three documents are at hand: the one that both sides had last, and what either has made of it. What only one side has
changed stands. Of a field that both have changed one value stands, and the other is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

_ABSENT: Final = object()


class Overruled(NamedTuple):
    """A field that both sides have changed.

    Attributes:
        field: its name, with dots where it lies in another one.
        stands: the value that stands; None where the field was removed.
        gave_way: the value of the other side; None where it had removed the field.
    """

    field: str
    stands: Any
    gave_way: Any


class Merged(NamedTuple):
    """Both versions of a document in one.

    Attributes:
        data: the document.
        ours_led: True if our value stands of what both sides have changed.
        overruled: the fields that both have changed.
    """

    data: bytes
    ours_led: bool
    overruled: tuple[Overruled, ...] = ()


def same(one: Any, other: Any) -> bool:
    """True if two JSON values are written alike: Python takes 1, 1.0 and True for equal."""
    if type(one) is not type(other) or one != other:
        return False
    if type(one) is dict:
        return all(same(value, other[key]) for key, value in one.items())
    if type(one) is list:
        return all(map(same, one, other))
    return True


def merge_fields(
    base: Mapping[str, Any], leading: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, Any]:
    """The leading version, with what only the other one has changed; new fields of that stand at the end.

    Args:
        base: what both had last; empty if that is not known, and then no field counts as removed.
        leading: the version whose value stands of what both have changed.
        other: the other one.
    """
    merged = dict(leading)
    for key in [*leading, *(key for key in other if key not in leading)]:
        if same(leading.get(key, _ABSENT), base.get(key, _ABSENT)):
            if key in other:
                merged[key] = other[key]
            else:
                del merged[key]
    return merged


def overruled(
    base: Mapping[str, Any],
    other: Mapping[str, Any],
    merged: Mapping[str, Any],
    *,
    ignore: Collection[str] = (),
    within: Collection[str] = (),
    united: Collection[str] = (),
) -> Iterator[Overruled]:
    """The fields of the version that does not lead which it has changed and whose value does not stand.

    Args:
        base: what both had last.
        other: the version that does not lead.
        merged: what became of both.
        ignore: fields that nobody sets, such as the time of the last change.
        within: fields that are objects and were brought together key by key.
        united: fields that are lists and hold the items of both.
    """
    for key in [*other, *(key for key in base if key not in other)]:
        value, stands, before = (each.get(key, _ABSENT) for each in (other, merged, base))
        if key in ignore or same(value, before) or same(value, stands):
            continue
        if key in within and isinstance(value, dict) and isinstance(stands, dict):
            inner = overruled(before if isinstance(before, dict) else {}, value, stands, ignore=ignore)
            yield from (one._replace(field=f"{key}.{one.field}") for one in inner)
        elif key not in united:
            yield Overruled(key, _told(stands), _told(value))


def _told(value: Any) -> Any:
    return None if value is _ABSENT else value
