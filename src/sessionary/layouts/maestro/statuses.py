"""Status transitions. Pure: the functions change the session in memory; the caller saves it.

    running      -> paused, completed, interrupted, failed
    paused       -> running, completed, interrupted, failed
    interrupted  -> running
    completed, failed: the end

Setting the current status again is always allowed and changes nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sessionary.errors import Invalid, TransitionError
from sessionary.layouts.maestro.records import CLOSED, STATUSES, WorkSession, state_of
from sessionary.layouts.maestro.times import session_time, utc_now

_OPEN_ENDS: Final = frozenset({"completed", "interrupted", "failed"})
NEXT: Final[dict[str, frozenset[str]]] = {
    "running": _OPEN_ENDS | {"paused"},
    "paused": _OPEN_ENDS | {"running"},
    "interrupted": frozenset({"running"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
RESULT_ID: Final = "parent_result_breadcrumb_id"
FINAL: Final = frozenset({"completed", "failed"})


def check_status(status: str) -> str:
    """Refuse an invalid status. Raises Invalid if it is not a status."""
    if type(status) is not str or status not in STATUSES:
        raise Invalid(
            f"{status!r} is not a status of a work session", hint=f"use one of {', '.join(sorted(STATUSES))}"
        )
    return status


def move(session: WorkSession, status: str, *, now: datetime | None = None) -> bool:
    """Set the status of a session, in memory; return False if it has that already.

    Raises:
        TransitionError: the status cannot be reached from the current one.
    """
    check_status(status)
    if session.status == status:
        return False
    if status not in NEXT.get(session.status, STATUSES):
        raise refusal(session, status)
    if session.status == "interrupted":
        # Its previous result was handed to the parent; further work has a result of its own.
        session.metadata.pop(RESULT_ID, None)
    moment = session_time(now or utc_now(), session.created)
    session.status = status
    session.state = state_of(status)
    session.modified = moment
    session.closed_at = moment if status in CLOSED else None
    if status == "completed":
        session.metadata["completion_time"] = moment
    return True


def refusal(session: WorkSession, status: str) -> TransitionError:
    """The error for a status that cannot be reached."""
    if session.status in FINAL:
        hint = "it has ended; start a new session"
    elif session.status == "interrupted":
        hint = "resume it first"
    else:
        hint = f"from {session.status} it can become {', '.join(sorted(NEXT[session.status]))}"
    return TransitionError(
        f"session {session.session_id} is closed ({session.status}) and cannot become {status}"
        if session.is_closed
        else f"session {session.session_id} is {session.status} and cannot become {status}",
        operation="change status",
        session=session.session_id,
        details={"status": session.status, "wanted": status},
        hint=hint,
    )


def refuse_closed(session: WorkSession, what: str) -> None:
    """Raise TransitionError if a session is closed, so that it accepts nothing more: `what` names it."""
    if session.is_closed:
        raise TransitionError(
            f"session {session.session_id} is closed ({session.status}) and accepts no {what}",
            session=session.session_id,
            details={"status": session.status},
            hint="resume it first"
            if session.status == "interrupted"
            else "a session that has ended cannot be resumed; start a new one",
        )


def open_below(session_id: str, still_open: list[str], hint: str = "close those first") -> TransitionError:
    """The error for a change of a session while sessions below it, with these ids, are open."""
    return TransitionError(
        f"session {session_id} has open sessions below it ({len(still_open)}): {', '.join(still_open[:3])}",
        session=session_id,
        details={"open": still_open},
        hint=hint,
    )


def pause_session(session: WorkSession) -> WorkSession:
    """Pause a running session, in memory. Raises TransitionError for one that has ended."""
    move(session, "paused")
    return session


def resume_session(session: WorkSession) -> WorkSession:
    """Resume a paused or interrupted session, in memory.

    Raises:
        TransitionError: it is completed or failed (ValueError).
    """
    move(session, "running")
    return session


def complete_session(session: WorkSession) -> WorkSession:
    """Complete a session, in memory. Only a `WorkStore` checks that no children are open.

    Raises:
        TransitionError: it is interrupted or failed.
    """
    move(session, "completed")
    return session


def interrupt_session(session: WorkSession, reason: str | None = None) -> WorkSession:
    """Interrupt a session, in memory; the reason goes to its metadata.

    Raises:
        TransitionError: it is completed or failed.
    """
    move(session, "interrupted")
    if reason:
        session.metadata["interruption_reason"] = reason
    return session


def is_session_closed(session: WorkSession) -> bool:
    """True if the session is completed, interrupted or failed."""
    return session.is_closed
