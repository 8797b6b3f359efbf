"""What can be wrong with the files of work sessions, in words. docs/formats/maestro.md has the list."""

from __future__ import annotations

from sessionary.errors import Corrupt, SchemaError, SessionaryError, StorageFailed
from sessionary.model import Problem, Severity


def of_session_file(path: str, error: SessionaryError) -> Problem:
    """Why a session.json gave no session."""
    if isinstance(error, SchemaError) and error.details.get("legacy"):
        words = "a session of Maestro's older kind, not a work session; it is left out"
        return Problem("legacy_session", Severity.note, path, None, None, words)
    if isinstance(error, SchemaError):
        words = f"no work session: {'; '.join(error.details.get('faults', []))}"
        return Problem(
            "no_session", Severity.hides_data, path, None, None, words, "put the keys right by hand"
        )
    if isinstance(error, Corrupt):
        remedy = "write the document anew; a save of the session keeps the damaged file aside"
        return Problem("bad_session", Severity.lost_data, path, None, None, str(error), remedy)
    return Problem("unreadable_file", Severity.hides_data, path, None, None, str(error), error.hint)


def of_closed_folder(error: StorageFailed) -> Problem:
    """A folder that cannot be looked into may hold sessions that nobody sees."""
    return Problem(
        "unreadable_folder", Severity.hides_data, error.path or "", None, None, str(error), error.hint
    )
