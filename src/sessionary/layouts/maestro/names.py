"""Names: where a work session, its breadcrumbs and what we keep beside them lie.

    <root>/<session>/session.json
    <root>/<session>/breadcrumbs/<depth>/<timestamp>.json
    <root>/<parent>/<session>/…                                 to any depth, in the real folder of the parent

The root is `docs/sessions` of a project. What the format calls an id becomes the name of a folder, so every id that
comes from outside is checked before it is joined to a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sessionary.errors import Invalid, InvalidId

ROOT = "docs/sessions"
SESSION = "session.json"
BREADCRUMBS = "breadcrumbs"
ERRORS = "error"
LOCK = ".lock"
LOG = "log.jsonl"

LARGEST = 1 << 28
"""Bytes of a file that is read at all: these have kilobytes, and what does not fit into memory ends the reader."""

MAX_BYTES = 255  # of a file name, on every file system that matters

_ID = re.compile(r"[^\s./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DEPTH = re.compile(r"[0-9]{1,9}")


def check_id(session_id: object) -> str:
    """Refuse an id that could not name a folder of its own below the root.

    Raises:
        InvalidId: empty, blank, a path, beginning with a dot, the name `breadcrumbs`, too long, or no text.
    """
    if not isinstance(session_id, str) or session_id == BREADCRUMBS or not _ID.fullmatch(session_id):
        raise InvalidId(
            f"{session_id!r} cannot be the id of a work session",
            session=str(session_id),
            hint="an id is one folder name: a UUID, or letters, digits, '-', '_' and '.'",
        )
    if len(session_id.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidId(f"an id may have {MAX_BYTES} bytes", session=session_id, hint="use a shorter one")
    return session_id


def new_id() -> str:
    """A random UUID (version 4), as text.

    `uuid` makes an object of it first; after a flush, when the caches are cold, that takes three times as long.
    """
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_uuid(session_id: str) -> bool:
    """True for a whole UUID, as ids are made; a beginning of one, or a word, is none."""
    return _UUID.fullmatch(session_id) is not None


def check_depth(depth: object) -> int:
    """Refuse what is no depth level.

    Raises:
        Invalid: it is not an int of 0 or more.
    """
    if type(depth) is not int or depth < 0:
        raise Invalid(f"depth_level is {depth!r}", hint="a depth is an int: 0 for a session without parent")
    return depth


def depth_of(folder: str) -> int | None:
    """The depth that the name of a folder below `breadcrumbs` says; None for others, such as `error`."""
    return int(folder) if _DEPTH.fullmatch(folder) else None


def is_crumb_name(name: str) -> bool:
    """True for a file name that a reader of breadcrumbs opens: temp files begin with a dot or end otherwise."""
    return name.endswith(".json") and name[0] != "."


def default_root() -> Path:
    """`docs/sessions` of the current folder. Asked at each call: a program may change its folder."""
    return Path.cwd() / ROOT
