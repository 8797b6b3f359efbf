r"""Sanitised values as bytes: one JSON line, or one indented document.

The text is what `json.dumps` writes with ``ensure_ascii=False``, because the programs that share these files write
that and people grep them. It differs in three points:

- U+2028, U+2029 and U+0085 are written as escapes. JSON allows them raw, but many readers split lines there.
- A lone surrogate is written as ``\udXXX``: UTF-8 has no bytes for it, and readers of JSON understand the escape.
- A very large or small float may be spelt differently in a line (``1e16`` for ``1e+16``); it reads as the same number.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from stringzilla import find

_encode = msgspec.json.Encoder().encode
_space_out = msgspec.json.format
_as_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

# Outside of strings JSON is ASCII, so these bytes can only be characters of a string.
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode_line(value: Any) -> bytes:
    """One line of a JSON Lines file, without its newline.

    Args:
        value: what `sanitize` returned. Anything else may be refused, or written in a form of its own.
    """
    try:
        line = _space_out(_encode(value), indent=0)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        # Lone surrogates; and integers beyond 64 bits in older versions of msgspec.
        line = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    return line if line.isascii() else _escape_line_ends(line)


def encode_document(value: Any) -> bytes:
    """A whole JSON file, indented by two, without a newline at the end. `value` is what `sanitize` returned."""
    text = _as_text(value).encode("utf-8", "backslashreplace")
    try:
        # `json` itself indents in Python, node by node, which takes three times as long as all the rest.
        document = _space_out(text, indent=2)
    except (
        msgspec.MsgspecError,
        RecursionError,
    ):  # a lone surrogate in a key; nesting that it does not follow
        document = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2).encode(
            "utf-8", "backslashreplace"
        )
    return document if document.isascii() else _escape_line_ends(document)


def encode_common_document(value: Any) -> bytes:
    """As `encode_document`, in a fifth of the time, for what ``is_plain(…, passes=is_common)`` lets pass."""
    try:
        document = _space_out(_encode(value), indent=2)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError, RecursionError):
        return encode_document(value)
    return document if document.isascii() else _escape_line_ends(document)


def is_common(number: float) -> bool:
    """True for a float that is written without an exponent: msgspec and `json` spell those alike."""
    return number == 0 or 1e-4 <= abs(number) < 1e16


def _escape_line_ends(text: bytes) -> bytes:
    for raw, escape in _LINE_ENDS:
        if find(text, raw) >= 0:
            text = text.replace(raw, escape)
    return text
