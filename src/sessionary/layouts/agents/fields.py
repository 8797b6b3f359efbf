"""Values of stored records, of whatever type they are: agents change their formats, and files are damaged."""

from __future__ import annotations

from typing import Any


def text_or_none(value: Any) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def object_of(value: Any) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def object_or_value(value: Any) -> dict[str, Any]:
    """An object; anything else as the value of one."""
    return value if isinstance(value, dict) else {"value": value}


def list_of(value: Any) -> list[Any]:
    """A list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def count_of(value: Any) -> int:
    """A number of tokens; 0 for anything else. Old files store it as text."""
    if type(value) is int:
        return value if value > 0 else 0
    if value is None:
        return 0
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if 0 <= count < 1 << 53 else 0


def cost_of(value: Any) -> float | None:
    """A cost in US dollars; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        cost = float(value)
    except OverflowError:
        return None
    return cost if 0 <= cost < float("inf") else None


def decoded(value: Any) -> Any:
    """As `decode_if_json`."""
    from sessionary.codec.decode import decode_if_json  # here: a list that reads nothing does not need it

    return decode_if_json(value)
