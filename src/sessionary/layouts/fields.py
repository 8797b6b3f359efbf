"""Three-way merge of two versions of a document, field by field. Pure.

The inputs are the common base and both versions. A field that only one side has changed gets that value. Of a
field that both have changed, one value wins, and the other is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from sessionary.codec.snapshot import same

_ABSENT: Final = object()


class Overruled(NamedTuple):
    """A field that both sides have changed.

    Attributes:
        field: its name, with dots for nested fields.
        stands: the value that won; None if the field was removed.
        gave_way: the value that lost; None if that side removed the field.
    """

    field: str
    stands: Any
    gave_way: Any


class Merged(NamedTuple):
    """The merged document.

    Attributes:
        data: the document.
        ours_led: True if our values won.
        overruled: the fields that both have changed.
    """

    data: bytes
    ours_led: bool
    overruled: tuple[Overruled, ...] = ()


def merge_fields(
    base: Mapping[str, Any], leading: Mapping[str, Any], other: Mapping[str, Any]
) -> dict[str, Any]:
    """The leading version, with the changes that only the other one has; its new fields come last.

    Args:
        base: the common base; empty if unknown, and then no field counts as removed.
        leading: the version whose values win where both have changed a field.
        other: the other version.
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
    """The fields that the other version has changed and whose values lost.

    Args:
        other: the version that does not lead.
        ignore: fields that are set automatically, such as the time of the last change.
        within: fields that are objects and were merged key by key.
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
