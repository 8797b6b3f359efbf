r"""Escape characters that a terminal or a page would obey instead of showing.

A transcript contains whatever a web page or a program put into it. Shown unchanged, it could clear the screen, change
the window title, write the clipboard, or reorder words. So every control character is escaped as in Python: ``\x1b``,
``\u202e``. In JSON text it is escaped as in JSON, which does not change the decoded value.
"""

from __future__ import annotations

import re

# Controls except newline, C1 controls, bidirectional overrides and marks, invisible separators, lone
# surrogates, tags and the byte order mark. Joiners stay: emoji and several scripts need them.
# `re` compiles patterns when they are first used: a list of plain titles needs none.
_ACTS = (
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# The same inside a JSON string, whose encoder has escaped the controls.
_IN_JSON = "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
_TAB = 4


def is_utf8(text: str) -> bool:
    """False for text with lone surrogates, such as the name of a file that is not valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def harmless(text: str) -> str:
    """The text with control characters escaped; newlines stay, tabs become blanks."""
    if text.isprintable():  # fast path for nearly every title and line
        return text
    return re.sub(_ACTS, _shown, text.replace("\r\n", "\n"))


def harmless_json(text: str) -> str:
    """JSON text with control characters escaped."""
    return text if text.isprintable() else re.sub(_IN_JSON, _escaped, text)


def _shown(match: re.Match[str]) -> str:
    char = match.group()
    if char == "\t":
        return " " * _TAB
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(match: re.Match[str]) -> str:
    import json  # imported here: rarely needed

    return json.dumps(match.group())[1:-1]
