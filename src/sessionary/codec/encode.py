r"""Encoding of sanitised values: one JSON line, or one indented document.

The text is that of `json.dumps` with ``ensure_ascii=False``: other programs that share these files write it, and
users search it with grep. Three differences:

- U+2028, U+2029 and U+0085 are escaped. JSON allows them raw, but many readers split lines there.
- A lone surrogate is written as ``\udXXX``: UTF-8 cannot encode it, and JSON readers understand the escape.
- A very large or small float may be spelt differently in a line (``1e16`` for ``1e+16``); the value is the same.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from stringzilla import find

from sessionary.codec.sanitize import sanitize

_encode = msgspec.json.Encoder().encode
_space_out = msgspec.json.format
_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

# JSON outside strings is ASCII, so these bytes can only be characters of a string.
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode_line(value: Any) -> bytes:
    """Encode one line of a JSON Lines file, without its newline.

    Args:
        value: a result of `sanitize`. Other values may be refused, or encoded differently; a result of `decode` may
            hold NaN, which would become null: use `reencode_line`.
    """
    try:
        line = _space_out(_encode(value), indent=0)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        # Lone surrogates; also integers beyond 64 bits in older versions of msgspec.
        line = _dumps(value).encode("utf-8", "backslashreplace")
    return line if line.isascii() else _escape_line_ends(line)


def encode_document(value: Any) -> bytes:
    """Encode a whole JSON file, indented by two, without a final newline. `value` is a result of `sanitize`."""
    try:
        text = _space_out(_dumps(value).encode(), indent=2)  # `json` alone would indent in Python
    except UnicodeEncodeError:  # a lone surrogate, whose escape msgspec refuses
        indented = json.dumps(value, ensure_ascii=False, indent=2)
        text = indented.encode("utf-8", "backslashreplace")
    return text if text.isascii() else _escape_line_ends(text)


def reencode_line(value: Any) -> bytes:
    """Encode a result of `decode` as one line. NaN and infinities become text; then deep values do too."""
    return encode_line(_finite(value))


def reencode_document(value: Any) -> bytes:
    """Encode a result of `decode` as a whole file. NaN and infinities become text; then deep values do too."""
    return encode_document(_finite(value))


def _finite(value: Any) -> Any:
    """The value itself; sanitised if it holds NaN or an infinity, which other programs write and `decode` accepts."""
    try:
        _dumps(value)
    except ValueError:
        return sanitize(value)
    return value


def _escape_line_ends(text: bytes) -> bytes:
    for raw, escape in _LINE_ENDS:
        if find(text, raw) >= 0:
            text = text.replace(raw, escape)
    return text
