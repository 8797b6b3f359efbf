"""Names of the files of record sessions: `<id>.records`, with the scope of the id in front, in one flat folder.

Characters other than ASCII letters, digits, ``.``, ``_`` and ``-`` are written as ``%XX`` of their UTF-8, so a name
never leads out of its folder. The parts are joined by commas. A part that would be too long for a file system ends in
``~`` and a hash; the first line of the file has the whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import quote, unquote

SUFFIX = ".records"
OPENAI, CLAUDE, LANGGRAPH, ADK, PYDANTIC, IMPORT = (
    "openai-agents",
    "claude-agent-sdk",
    "langgraph",
    "google-adk",
    "pydantic-ai",
    "import",
)
FRAMEWORKS = (OPENAI, CLAUDE, LANGGRAPH, ADK, PYDANTIC, IMPORT)
"""The frameworks whose items are known, and the name for imported sessions."""
UNKNOWN = "."
_LONGEST = 64  # three parts, and what is put beside the file, fit into a name of 255 bytes
_KEPT = 24
_SHORTENED = re.compile(r"[A-Za-z0-9_%-][A-Za-z0-9._%-]{0,23}~[0-9a-f]{32}|~[0-9a-f]{32}")
_PART = re.compile(rf"{_SHORTENED.pattern}|[A-Za-z0-9_%-][A-Za-z0-9._%-]{{0,63}}")


def file_name(scope: Sequence[str], session_id: str) -> str:
    """The name of the file of a session."""
    return ",".join(map(_quoted, (*scope, session_id))) + SUFFIX


def parts_of(name: str) -> tuple[list[str], str] | None:
    """The scope and the session id in the name of a file; None for another file. Long parts stay shortened."""
    if not name.endswith(SUFFIX) or name.startswith("."):
        return None
    *scope, session_id = map(_unquoted, name.removesuffix(SUFFIX).split(","))
    return scope, session_id


def framework_of(path: str) -> str:
    """The framework that the folder of a file belongs to; "" for any other folder."""
    folder = os.path.basename(os.path.dirname(path))
    return folder if folder in FRAMEWORKS else ""


def parent_of(path: str) -> str | None:
    """The session that the session of a sub-agent belongs to, by the path of its file; None for another session."""
    parts = parts_of(os.path.basename(path)) if framework_of(path) == CLAUDE else None
    return parts[0][1] if parts is not None and len(parts[0]) == 2 else None


def project_of(path: str) -> str:
    """The framework and the scope in the path of a file: ``google-adk/app/user``, each part as in the name of the file.

    The framework of a file outside of the folders of frameworks is ``.``.
    """
    *scope, _ = os.path.basename(path).removesuffix(SUFFIX).split(",")
    return "/".join((framework_of(path) or UNKNOWN, *scope))


def name_in(project: str, session_id: str) -> str | None:
    """The name of the file of a session of a project, as `project_of` has it; None if the project does not exist.

    Args:
        session_id: the id, or the shortened form in which `parts_of` returns a long one.
    """
    framework, *scope = project.split("/")
    if framework not in (*FRAMEWORKS, UNKNOWN) or not all(_PART.fullmatch(part) for part in scope):
        return None
    return (
        ",".join((*scope, session_id if _SHORTENED.fullmatch(session_id) else _quoted(session_id))) + SUFFIX
    )


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
