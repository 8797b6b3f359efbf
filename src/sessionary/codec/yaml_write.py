"""YAML writer whose output no reader misinterprets.

Every text is in double quotes with the escapes of JSON: YAML 1.1 and 1.2 then agree on every word, no character acts
as an indicator, no line is folded. Line breaks of YAML and characters that it refuses raw (NEL, U+2028, control
characters, a byte order mark) are escaped; all others are written as they are. Only plain words are keys without
quotes.

The writer is our own because of its style, that of the shared files: lists indented below their key, short lists of
words in brackets. libyaml cannot indent lists, and a file in which every line moves at the first save produces noise
in version control. Tests read the output with both common readers.
"""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring
from typing import Any, Final

from sessionary.codec.yaml_read import LIMITS
from sessionary.errors import Invalid

_STEP: Final = "  "
_WIDTH: Final = 100
_SIMPLE_KEY: Final = 1000  # readers look for the colon within 1024 characters

_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_RESERVED: Final = frozenset("y n yes no on off true false null".split())
_WORD = re.compile(r"[\w+][\w.+/:-]{0,39}")


def dump_yaml(value: Any) -> bytes:
    """Encode a value as a YAML file: UTF-8, two blanks per level, keys in their order, a final newline.

    Args:
        value: dicts with text keys, lists, tuples, texts, numbers, booleans and None.

    Raises:
        Invalid: it holds another type or a lone surrogate, or is nested deeper than `load_yaml` accepts.
    """
    out: list[str] = []
    if isinstance(value, dict) and value:
        _map(out, value, "", 1)
    elif isinstance(value, list | tuple) and value:
        _items(out, value, "", 1)
    else:
        out.append(scalar_text(value))
    out.append("")
    return "\n".join(out).encode()


def scalar_text(value: Any) -> str:
    """Format a single value, or an empty collection."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _digits(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, dict | list | tuple) and not value:
        return "{}" if isinstance(value, dict) else "[]"
    raise Invalid(
        f"a {type(value).__name__} cannot be stored as YAML",
        operation="encode",
        hint="store it as text, a number, a list or a map",
    )


def quoted(text: str) -> str:
    """Format a text in double quotes."""
    if _SURROGATE.search(text):
        raise Invalid(
            f"a lone surrogate in {text[:40]!r} cannot be stored as UTF-8",
            operation="encode",
            hint="replace the broken character",
        )
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", encode_basestring(text))


def key_text(key: Any) -> str:
    """Format a key: without quotes if it is a plain word that YAML does not reserve."""
    if not isinstance(key, str):
        raise Invalid(f"the key {key!r} is not text", operation="encode", hint="use texts as keys")
    return key if is_plain_key(key) else quoted(key)


def is_plain_key(key: str) -> bool:
    """True if every reader takes the unquoted key for exactly this text."""
    return _PLAIN_KEY.fullmatch(key) is not None and key.lower() not in _RESERVED


def in_brackets(items: Any) -> bool:
    """True for a short list of words or numbers, which is written on one line."""
    total = 0
    for item in items:
        if isinstance(item, str):
            if not _WORD.fullmatch(item):
                return False
            total += len(item) + 4
        elif isinstance(item, int | float):
            total += 8
        else:
            return False
    return total <= _WIDTH


def _map(out: list[str], value: dict[str, Any], pad: str, depth: int) -> None:
    for key, child in value.items():
        text = key_text(key)
        if len(text) > _SIMPLE_KEY:
            out.append(f"{pad}? {text}")
            text = ""
        _child(out, f"{pad}{text}:", child, pad + _STEP, depth)


def _items(out: list[str], items: Any, pad: str, depth: int) -> None:
    for item in items:
        if isinstance(item, dict) and item:
            at = len(out)
            _map(out, item, pad + _STEP, _deeper(depth))
            out[at] = f"{pad}- {out[at][len(pad) + 2 :]}"  # the first key follows the dash on its line
        else:
            _child(out, f"{pad}-", item, pad + _STEP, depth)


def _child(out: list[str], head: str, child: Any, pad: str, depth: int) -> None:
    if isinstance(child, dict) and child:
        out.append(head)
        _map(out, child, pad, _deeper(depth))
    elif isinstance(child, list | tuple) and child:
        _deeper(depth)
        if in_brackets(child):
            out.append(f"{head} [{', '.join(map(scalar_text, child))}]")
        else:
            out.append(head)
            _items(out, child, pad, depth + 1)
    else:
        out.append(f"{head} {scalar_text(child)}")


def _deeper(depth: int) -> int:
    if depth >= LIMITS.depth:
        raise Invalid(
            f"nested more than {LIMITS.depth} deep", operation="encode", hint="store the deep part as text"
        )
    return depth + 1


def _digits(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:
        raise Invalid(
            "an integer has more digits than can be read", operation="encode", hint="store it as text"
        ) from None


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = float.__repr__(value)
    if "." not in text and "e" in text:
        text = text.replace("e", ".0e")  # YAML 1.1 requires a point in a number with an exponent
    return text
