"""Decoding of JSON: strict JSON at full speed, and what Python's `json` also accepts.

msgspec reads almost everything. What it refuses but `json` accepts (a byte order mark, lone surrogates, NaN and
infinities, 1e400) is read by `json`, because the Python programs that share these files write and read it. Anything
else raises `Undecodable` with the reason.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final, NamedTuple

import msgspec

from sessionary.codec.conflicts import first_marker, is_marker, name_of

fast_decode = msgspec.json.Decoder().decode
fast_decode_lines = msgspec.json.Decoder().decode_lines
_encode = msgspec.json.Encoder().encode
REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
BOM: Final = codecs.BOM_UTF8

_CONTROL = re.compile(r"[\x00-\x1f]")


class Undecodable(ValueError):
    """Bytes that do not hold a JSON value that Python can represent.

    Attributes:
        code: ``bad_json``, ``bad_utf8``, ``conflict_marker``, ``control_characters``, ``too_deep`` or
            ``number_too_long``.
        at: offset of the first invalid byte, or None.
    """

    def __init__(self, message: str, *, code: str, at: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.at = at

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self), self.code, self.at)


def _rebuild(message: str, code: str, at: int | None) -> Undecodable:
    return Undecodable(message, code=code, at=at)


class Decoded(NamedTuple):
    """A value, and the codes of unusual features of its text (notes of `problems`)."""

    value: Any
    notes: tuple[str, ...]


def decode(raw: bytes) -> Any:
    """Decode one JSON value.

    Integers keep all digits. Of duplicate keys the last one wins.

    Raises:
        Undecodable: the bytes hold no value, several values, or one that Python cannot represent.
    """
    try:
        return fast_decode(raw)
    except REFUSED:
        return decode_patiently(raw).value


def decode_object(raw: bytes) -> dict[str, Any] | None:
    """Decode one JSON object; None for any other bytes."""
    try:
        value = decode(raw)
    except Undecodable:
        return None
    return value if isinstance(value, dict) else None


def decode_if_json(value: Any) -> Any:
    """The value of a text that is JSON, as some writers store values; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value.encode("utf-8", "surrogatepass"))
    except Undecodable:
        return value


def decode_patiently(raw: bytes) -> Decoded:
    """As `decode`, with the slow parser, which also reports unusual features. Raises as `decode`."""
    skipped = len(BOM) if raw.startswith(BOM) else 0
    try:
        text = raw[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = skipped + error.start
        raise Undecodable(f"invalid UTF-8 at byte {at}", code="bad_utf8", at=at) from None
    try:
        value = json.loads(text)
    except RecursionError:
        raise Undecodable("nested too deeply", code="too_deep") from None
    except json.JSONDecodeError as error:
        raise _conflict(raw) or _no_json(text, error.msg, skipped + len(text[: error.pos].encode())) from None
    except ValueError:
        raise Undecodable(
            "an integer has more digits than Python can parse", code="number_too_long"
        ) from None
    return Decoded(value, ("bom",) * bool(skipped) + _oddities(value))


def original_accepts(data: bytes) -> bool:
    """True if the original SessionStore reads all of these bytes as a transcript.

    It decodes strict UTF-8 with Python's universal newlines, strips each line, skips blank lines and parses the
    others with `json.loads`; one failure fails the file.
    """
    try:
        lines = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            if text := line.strip():
                json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _conflict(raw: bytes) -> Undecodable | None:
    """Return the error about a merge conflict marker, if that is why the bytes are not JSON."""
    if is_marker(raw):
        return Undecodable(name_of(raw), code="conflict_marker", at=0)
    found = first_marker(raw)
    if found is None:
        return None
    return Undecodable(f"{found.words} in line {found.line}", code="conflict_marker", at=found.byte)


def _no_json(text: str, words: str, at: int) -> Undecodable:
    if _CONTROL.search(text) and _is_lenient_json(text):
        words = f"a raw control character in a string at byte {at}"
        return Undecodable(words, code="control_characters", at=at)
    words = words.removesuffix(" starting at").removesuffix(" at")
    return Undecodable(f"not JSON at byte {at}: {words}", code="bad_json", at=at)


def _is_lenient_json(text: str) -> bool:
    """True if the text is JSON except for raw control characters in strings."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _oddities(value: Any) -> tuple[str, ...]:
    """Return codes for features that strict writers refuse, found by trying to write the value."""
    found: list[str] = []
    for write, code in ((_write_finite, "odd_number"), (_encode, "lone_surrogate")):
        try:
            write(value)
        except RecursionError:
            pass  # the parser accepts a little more nesting than the writer
        except ValueError:
            found.append(code)
    return tuple(found)


def _write_finite(value: Any) -> object:
    return json.dumps(value, allow_nan=False)
