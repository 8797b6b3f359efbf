"""Names of the files of a work session, its breadcrumbs and our side files.

    <root>/<session>/session.json
    <root>/<session>/breadcrumbs/<depth>/<timestamp>.json
    <root>/<parent>/<session>/…                                 to any depth, in the real folder of the parent

The root is `docs/sessions` of a project. An id is the name of a folder, so every id from outside is checked
before it is joined to a path.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from sessionary.errors import Invalid, InvalidId

ROOT = "docs/sessions"
SESSION = "session.json"
BREADCRUMBS = "breadcrumbs"
ERRORS = "error"
LOCK = ".lock"
LOG = "log.jsonl"

LARGEST = 1 << 28
"""Maximum size of a file that is read: these have kilobytes, and a file larger than memory would kill the reader."""

MAX_BYTES = 255  # of a file name, on all common file systems

_ID = re.compile(r"[^\s./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DEPTH = re.compile(r"[0-9]{1,9}")


def check_id(session_id: object) -> str:
    """Refuse an id that cannot name a folder of its own below the root.

    Raises:
        InvalidId: empty, blank, a path, beginning with a dot, the name `breadcrumbs`, too long, or not text.
    """
    if not isinstance(session_id, str) or session_id == BREADCRUMBS or not _ID.fullmatch(session_id):
        raise InvalidId(
            f"{session_id!r} cannot be the id of a work session",
            session=str(session_id),
            hint="an id is one folder name: a UUID, or letters, digits, '-', '_' and '.'",
        )
    if len(session_id.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidId(
            f"an id may have at most {MAX_BYTES} bytes", session=session_id, hint="use a shorter one"
        )
    return session_id


def new_id() -> str:
    """A random UUID (version 4), as text."""
    return str(uuid.uuid4())


def is_uuid(session_id: str) -> bool:
    """True for a complete UUID."""
    return _UUID.fullmatch(session_id) is not None


def check_depth(depth: object) -> int:
    """Refuse an invalid depth level. Raises Invalid if it is not an int of 0 or more."""
    if type(depth) is not int or depth < 0:
        raise Invalid(
            f"invalid depth_level {depth!r}", hint="a depth is an int: 0 for a session without parent"
        )
    return depth


def depth_of(folder: str) -> int | None:
    """The depth in the name of a folder below `breadcrumbs`; None for others, such as `error`."""
    return int(folder) if _DEPTH.fullmatch(folder) else None


def is_crumb_name(name: str) -> bool:
    """True for a file name that readers of breadcrumbs open: temporary files begin with a dot or end otherwise."""
    return name.endswith(".json") and name[0] != "."


def default_root() -> Path:
    """`docs/sessions` of the current folder. Determined at each call, since a program may change its folder."""
    return Path.cwd() / ROOT
