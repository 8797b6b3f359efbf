"""Problems of the files of work sessions, as messages. docs/formats/maestro.md lists them."""

from __future__ import annotations

from sessionary.errors import Corrupt, SchemaError, SessionaryError, StorageFailed
from sessionary.model import Problem, Severity


def of_session_file(path: str, error: SessionaryError) -> Problem:
    """Why a session.json is not a session."""
    if isinstance(error, SchemaError) and error.details.get("legacy"):
        words = "a session of Maestro's older format, not a work session; it is skipped"
        return Problem("legacy_session", Severity.note, path, None, None, words)
    if isinstance(error, SchemaError):
        words = f"not a work session: {'; '.join(error.details.get('faults', []))}"
        return Problem("no_session", Severity.hides_data, path, None, None, words, "correct the keys by hand")
    if isinstance(error, Corrupt):
        remedy = "write a new document; saving the session keeps the damaged file aside"
        return Problem("bad_session", Severity.lost_data, path, None, None, str(error), remedy)
    return Problem("unreadable_file", Severity.hides_data, path, None, None, str(error), error.hint)


def of_closed_folder(error: StorageFailed) -> Problem:
    """A folder that cannot be read may contain sessions that are not listed."""
    return Problem(
        "unreadable_folder", Severity.hides_data, error.path or "", None, None, str(error), error.hint
    )
