"""Names of the files of record sessions: `<id>.records`, with the scope of the id in front, in one flat folder.

Characters other than ASCII letters, digits, ``.``, ``_`` and ``-`` are written as ``%XX`` of their UTF-8, so a name
never leads out of its folder. The parts are joined by commas. A part that would be too long for a file system ends in
``~`` and a hash; the first line of the file has the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import quote, unquote

SUFFIX = ".records"
_LONGEST = 80
_KEPT = 40


def file_name(scope: Sequence[str], session_id: str) -> str:
    """The name of the file of a session."""
    return ",".join(map(_quoted, (*scope, session_id))) + SUFFIX


def parts_of(name: str) -> tuple[list[str], str] | None:
    """The scope and the session id in the name of a file; None for another file. Long parts stay shortened."""
    if not name.endswith(SUFFIX) or name.startswith("."):
        return None
    *scope, session_id = map(_unquoted, name.removesuffix(SUFFIX).split(","))
    return scope, session_id


def _quoted(part: str) -> str:
    # quote() keeps "~", which marks what is shortened here.
    quoted = quote(part.encode("utf-8", "surrogatepass"), safe="").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    if not quoted or len(quoted) > _LONGEST:
        return f"{quoted[:_KEPT]}~{sha256(part.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return quoted


def _unquoted(part: str) -> str:
    return unquote(part, errors="surrogateescape") if "~" not in part else part
