"""Reading a session from the rows of a database: records that do not decode, and cursors over versions of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import MsgspecError, Struct, msgpack

from sessionary.model import Cursor, Place, Problem, Severity

PAGE = 50
"""Messages that are read in one transaction."""

Versions = Sequence[tuple[Any, ...]]
"""Each message of a session in order: its id, and what changes with its content."""


class _State(Struct, array_like=True):
    """Content of a cursor: the number of messages read, the last of them, and a digest of all their versions."""

    messages: int
    last: str
    versions: bytes


def cursor_behind(versions: Versions) -> Cursor:
    """The cursor behind these messages."""
    return Cursor(msgpack.encode(_state(versions)))


def read_before(versions: Versions, after: Cursor | None) -> int | None:
    """The number of these messages before a cursor; None if one of them changed since."""
    if after is None:
        return 0
    try:
        state = msgpack.decode(after.state, type=_State)
    except MsgspecError:
        return None
    return state.messages if state == _state(versions[: state.messages]) else None


def _state(versions: Versions) -> _State:
    digest = blake2b(repr(list(versions)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return _State(len(versions), versions[-1][0] if versions else "", digest)


def decoded(data: Any, place: Place) -> Mapping[str, Any] | Problem:
    """The object that a row or a file holds."""
    from sessionary.codec import Undecodable, decode  # here, since a list that reads nothing needs neither

    try:
        value = decode(stored_bytes(data))
        words = "" if isinstance(value, dict) else "not an object"
    except Undecodable as error:
        value, words = None, str(error)
    if isinstance(value, dict):
        return value
    return Problem(
        "bad_json", Severity.lost_data, place.path or "", None, None, f"the record cannot be read: {words}"
    )


def stored_bytes(data: Any) -> bytes:
    """The bytes of a value of a row."""
    if isinstance(data, bytes):
        return data
    return str("" if data is None else data).encode("utf-8", "surrogatepass")
