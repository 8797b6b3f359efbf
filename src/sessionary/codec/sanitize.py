"""Anything a program puts into a message, as JSON: nothing dropped that JSON can hold, nothing raised.

    what it is                                      how it is stored
    ----------------------------------------------  -------------------------------------------------------------
    None, bool, int, float, str                     as they are; None also inside dicts and lists
    str, int, float of a derived type               as the plain type
    dict, list, tuple, other mappings, deque        dict or list
    named tuple, dataclass, msgspec struct, attrs   dict of its fields
    object with ``model_dump()``                    what that returns
    Enum                                            its value
    set, frozenset                                  list, sorted
    datetime, date, time                            ISO 8601 text
    timedelta                                       seconds, a number
    Path, UUID, Decimal                             text
    bytes, bytearray, memoryview                    ``{"$base64": "…"}``
    NaN, infinities                                 ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
    integer of more than 4,300 digits               hexadecimal text: most JSON readers refuse such numbers
    numpy array or number, ``array.array``          what ``tolist()`` returns
    exception                                       ``"ValueError: its message"``
    class, function                                 its dotted name
    other object with public attributes             dict of these
    anything else                                   ``str(value)``
    key that is not a string                        None, bool, number as JSON writes them, else text as above
    two keys with one text (``1`` and ``"1"``)      ``"1#2"`` for the one that was not a string
    what contains itself                            ``"<cycle>"`` at the point of return
    nesting deeper than 100                         the subtree as JSON text: there are readers that stop at 128

Lone surrogates stay in the strings; `encode_line` writes them as escapes.

Strings are shared, containers are new, each node is visited once: the cost is linear in the size of what is stored.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Final, NamedTuple

from sessionary.codec.encodings import form_of, text_of

CYCLE: Final = "<cycle>"
MAX_DEPTH: Final = 100
# The most bits of an integer with no more than the 4,300 digits that Python parses.
_MAX_BITS: Final = 14_284
_PLAIN: Final = frozenset({str, bool, type(None)})


def sanitize(value: Any) -> Any:
    """Return a copy of `value` made of dict, list, str, int, float, bool and None only, by the table above.

    Never raises, however deep, cyclic or hostile the value is.
    """
    return _walk(value, 1, set())


def _walk(value: Any, depth: int, path: set[int]) -> Any:
    """Sanitise one node. `path` holds the ids of the enclosing nodes, `depth` is one more than their containers."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int or kind is float:
        return _number(value)
    mark = id(value)
    if mark in path:
        return CYCLE
    if depth > MAX_DEPTH and (kind is dict or kind is list or kind is tuple):
        return _json_text(value, path)
    path.add(mark)
    result: Any
    if kind is dict:
        result = {}
        for key, item in value.items():
            name = key if type(key) is str else _key(key, value, result)
            result[name] = item if type(item) in _PLAIN else _walk(item, depth + 1, path)
    elif kind is list or kind is tuple:
        result = [item if type(item) in _PLAIN else _walk(item, depth + 1, path) for item in value]
    else:  # its fields may lead back to it, each time through a new dict
        result = _walk(form_of(value), depth, path)
    path.discard(mark)
    return result


def _number(value: float) -> Any:
    if type(value) is int:
        return value if value.bit_length() <= _MAX_BITS else hex(value)
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _scalar(value: Any) -> Any:
    """Convert a key: text, or a scalar that JSON has a type for."""
    form = value if value is None or type(value) in (bool, int, float) else form_of(value)
    if type(form) is int or type(form) is float:
        return _number(form)
    return form if form is None or type(form) in (str, bool) else text_of(value)


def _key(key: Any, source: dict[Any, Any], result: dict[str, Any]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    form = _scalar(key)
    text = form if type(form) is str else json.dumps(form)
    free, number = text, 2
    while free in source or free in result:
        free, number = f"{text}#{number}", number + 1
    return free


class _Piece(NamedTuple):
    """Finished text, and the container that ends with it: referenced, so that its id is not reused meanwhile."""

    text: str
    ends: Any = None


def _json_text(value: Any, path: set[int]) -> str:
    """Return the JSON text of a subtree of any depth, without recursion."""
    path = set(path)
    written: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if type(item) is _Piece:
            written.append(item.text)
            path.discard(id(item.ends))
        elif id(item) in path:
            written.append(json.dumps(CYCLE))
        else:
            todo.extend(reversed(_pieces(item, path)))
    return "".join(written)


def _pieces(item: Any, path: set[int]) -> list[Any]:
    """Split one node into finished text and its members."""
    kind = type(item)
    if item is None or kind is str or kind is bool:
        return [_Piece(json.dumps(item, ensure_ascii=False))]
    if kind is int or kind is float:
        return [_Piece(json.dumps(_number(item)))]
    path.add(id(item))
    if kind is dict:
        return _dict_pieces(item)
    if kind is list or kind is tuple:
        return _list_pieces(item)
    return [form_of(item), _Piece("", item)]


def _dict_pieces(source: dict[Any, Any]) -> list[Any]:
    pieces: list[Any] = [_Piece("{")]
    names: dict[str, Any] = {}
    for key, item in source.items():
        name = key if type(key) is str else _key(key, source, names)
        pieces += [_Piece((", " if names else "") + json.dumps(name, ensure_ascii=False) + ": "), item]
        names[name] = None
    return [*pieces, _Piece("}", source)]


def _list_pieces(source: list[Any] | tuple[Any, ...]) -> list[Any]:
    pieces: list[Any] = [_Piece("[")]
    for number, item in enumerate(source):
        pieces += [_Piece(", "), item] if number else [item]
    return [*pieces, _Piece("]", source)]
