"""Names of files that two devices created under one name: each file gets a name of its own, made from its bytes.

`20260101_120000_000001.json` becomes `20260101_120000_000001~1a2b3c4d.json`. So no reader ever finds other bytes under
a name that was read before, and the name that both files had is free again.
"""

from __future__ import annotations

import re
from hashlib import sha256

_OWN_NAME = re.compile(r"(.*)~([0-9a-f]{8})(\.[^./]*)?", re.DOTALL)


def own_name(name: str, data: bytes) -> str:
    """Return the unique name of a file, derived from its content."""
    folder, slash, name = name.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    named = f"{stem}~{_mark(data)}.{suffix}" if dot else f"{name}~{_mark(data)}"
    return folder + slash + named


def original_name(name: str, data: bytes) -> str:
    """Return the name that a file was created under; a unique name is undone if it belongs to these bytes."""
    found = _OWN_NAME.fullmatch(name)
    return found[1] + (found[3] or "") if found is not None and found[2] == _mark(data) else name


def contested_name(name: str) -> str | None:
    """Return the original name of a file with a unique name; None for other names."""
    if "~" not in name:
        return None
    found = _OWN_NAME.fullmatch(name)
    return found[1] + (found[3] or "") if found is not None else None


def _mark(data: bytes) -> str:
    return sha256(data).hexdigest()[:8]
