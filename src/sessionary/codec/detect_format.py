"""Detection of files that are named like JSON Lines files but have another format.

They are reported as a whole: thousands of "bad lines" would not explain that a file is compressed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Foreign(NamedTuple):
    """The detected format, and how to convert it to JSON Lines."""

    name: str
    remedy: str


def _packed(name: str, tool: str) -> Foreign:
    return Foreign(f"{name}-compressed data", f"unpack it with `{tool}`")


def _text(encoding: str) -> Foreign:
    return Foreign(f"{encoding} text", f"convert it with `iconv -f {encoding} -t UTF-8`")


# Longer marks first: UTF-32 begins like UTF-16.
_MARKS: Final[tuple[tuple[bytes, Foreign], ...]] = (
    (b"\xff\xfe\0\0", _text("UTF-32")),
    (b"\0\0\xfe\xff", _text("UTF-32")),
    (b"\xff\xfe", _text("UTF-16")),
    (b"\xfe\xff", _text("UTF-16")),
    (b'{\0"\0', _text("UTF-16LE")),
    (b'\0{\0"', _text("UTF-16BE")),
    (b"\x1f\x8b", _packed("gzip", "gunzip")),
    (b"\x28\xb5\x2f\xfd", _packed("zstd", "zstd -d")),
    (b"\xfd7zXZ\0", _packed("xz", "unxz")),
    (b"BZh", _packed("bzip2", "bunzip2")),
    (b"\x04\x22\x4d\x18", _packed("lz4", "unlz4")),
    (b"PK\x03\x04", Foreign("a ZIP archive", "unpack it with `unzip`")),
    (b"SQLite format 3\0", Foreign("an SQLite database", "open it with `sqlite3`")),
)
_BINARY: Final = Foreign("binary data", "look for a backup of the file")
_RECORD = re.compile(rb'^[ \t\r]*\{[ \t\r]*"\w+"[ \t\r]*:', re.MULTILINE)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufffd]")
_HEAD = 4096


def foreign_format(data: bytes) -> Foreign | None:
    """Return the format of the bytes if they are not JSON Lines; None for JSON Lines, even damaged."""
    if data.startswith(b'{"'):
        return None
    foreign = next((foreign for mark, foreign in _MARKS if data.startswith(mark)), None) or _by_noise(data)
    # Records after an unusual beginning: a damaged file, to be read line by line.
    return None if foreign is None or _RECORD.search(data) else foreign


def _by_noise(data: bytes) -> Foreign | None:
    """Return binary data if more than 10 % of the characters are not text.

    NULs are ignored: a power cut may leave them anywhere.
    """
    head = data[:_HEAD].replace(b"\0", b"").decode("utf-8", "replace")
    return _BINARY if len(_NO_TEXT.findall(head)) * 10 > len(head) else None
