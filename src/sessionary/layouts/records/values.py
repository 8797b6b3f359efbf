"""Values as they are stored in a record: strict JSON, and marked objects for what JSON cannot express.

A marked object has one key, which begins with ``$``:

- ``{"$bytes": "<base64>"}`` is bytes,
- ``{"$float": "NaN"}``, ``"Infinity"`` and ``"-Infinity"`` are the numbers that are not finite,
- ``{"$text": "<base64>"}`` is text with lone surrogates, in UTF-8 that encodes each of them as three bytes,
- ``{"$object": [[key, value], ...]}`` is an object that would look like one of these, or has a lone surrogate in a key.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from sessionary.codec import decode
from sessionary.errors import Invalid
from sessionary.escaping import is_utf8

_MARK = b'"$'
_TEXT = "surrogatepass"
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode_value(value: Any) -> bytes:
    """A value as it is stored, on one line.

    Args:
        value: None, bool, int, float, str, bytes, or a list or dict of these. The keys of a dict are text. A tuple is
            stored as a list.

    Raises:
        Invalid: it holds a value of another type, or is nested too deeply.
    """
    try:
        try:
            line = _encoded(value)  # the C encoder refuses most of what must be marked
        except (TypeError, ValueError):
            return _encoded(marked(value))
        return _encoded(marked(value)) if _MARK in line else line
    except RecursionError:
        raise Invalid("a value that is nested too deeply cannot be stored") from None


def decode_value(raw: bytes) -> Any:
    """The value that `encode_value` was given. Raises Undecodable if the bytes are not JSON."""
    value = decode(raw)
    return unmarked(value) if _MARK in raw else value


def as_json(raw: bytes) -> bytes:
    """A stored value as JSON without marks, where numbers that are not finite are NaN and Infinity.

    Raises:
        Undecodable: the bytes are not JSON.
        TypeError: it holds bytes.
    """
    return json.dumps(decode_value(raw)).encode() if _MARK in raw else raw


def _encoded(value: Any) -> bytes:
    return _encode(value).encode()


def marked(value: Any) -> Any:
    """The value as strict JSON, with a marked object in place of each value that JSON cannot express.

    Raises:
        Invalid: it holds a value of another type.
        RecursionError: it is nested too deeply.
    """
    if isinstance(value, str):
        return value if is_utf8(value) else {"$text": _base64(value.encode("utf-8", _TEXT))}
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        finite = value - value == 0
        return value if finite else {"$float": "NaN" if value != value else f"{'-' * (value < 0)}Infinity"}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": _base64(bytes(value))}
    if isinstance(value, list | tuple):
        return [marked(one) for one in value]
    if not isinstance(value, dict):
        raise Invalid(f"a value of type {type(value).__name__} cannot be stored", hint="store JSON or bytes")
    for key in value:
        if not isinstance(key, str):
            raise Invalid(f"a key of a stored object must be text, not {type(key).__name__}")
    looks_marked = len(value) == 1 and next(iter(value)).startswith("$")
    if looks_marked or not all(map(is_utf8, value)):
        return {"$object": [[marked(key), marked(one)] for key, one in value.items()]}
    return {key: marked(one) for key, one in value.items()}


def unmarked(value: Any) -> Any:
    """A decoded value, with each marked object replaced by its value. A damaged one stays unchanged."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key in _READ:
            try:
                return _READ[key](inner)
            except (TypeError, ValueError):
                return value  # damaged: what is stored is the most that can be said
    return {key: unmarked(one) for key, one in value.items()}


_READ: dict[str, Callable[[Any], Any]] = {
    "$bytes": lambda inner: b64decode(inner, validate=True),
    "$float": float,
    "$text": lambda inner: b64decode(inner, validate=True).decode("utf-8", _TEXT),
    "$object": lambda inner: {unmarked(name): unmarked(one) for name, one in inner},
}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
