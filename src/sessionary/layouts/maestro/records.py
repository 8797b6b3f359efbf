"""The two records of a work session as Python objects, and their conversion from JSON documents.

Both are mutable, with their fields in the order of the specification, because callers build and change them.
Unknown keys are kept in `unknown_keys`, outside of the fields: they are written back, and never make a record
unreadable. Missing values get neutral defaults; a document that may be another kind of file (no id, no type)
is refused, with all faults at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, cast

from sessionary.errors import SchemaError
from sessionary.layouts.maestro.times import is_stamp, iso, parse_time, stamp_of, utc_now

NOTHING: Final = cast("Mapping[str, Any]", MappingProxyType({}))


class SessionStatus(Enum):
    """Status of a work session."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class SessionType(Enum):
    """The kind of work of a session. Other words are allowed, and reported by `check`."""

    WORK_TRACK = "work_track"
    WORK_PHASE = "work_phase"
    WORK_TASK = "work_task"
    WORK_ISSUE = "work_issue"
    WORK_SUBWORK = "work_subwork"
    DISCUSSION = "discussion"
    ANALYZE = "analyze"
    FIX = "fix"


STATUSES: Final = frozenset(status.value for status in SessionStatus)
TYPES: Final = frozenset(kind.value for kind in SessionType)
CLOSED: Final = frozenset({"completed", "interrupted", "failed"})


def state_of(status: str) -> str:
    """The state that follows from a status: ``running``, ``paused`` or ``closed``."""
    return "closed" if status in CLOSED else "paused" if status == "paused" else "running"


def _now() -> str:
    return iso(utc_now())


@dataclass
class WorkSession:
    """One work session, as in its session.json.

    Attributes:
        session_id: its id, and the name of its folder; the cookie for senders of breadcrumbs.
        session_type: a value of `SessionType`.
        parent_session_id: the parent session; if it differs from the folder, this is used.
        status: a value of `SessionStatus`.
        created, modified: ISO 8601; empty if missing. Without a zone, they are local times.
        related_entity: what the work is about: ``track_id``, ``phase_id``, ``task_id``, ``issue_id``, ``name``.
        breadcrumbs_dir: the folder of its breadcrumbs, relative to the project; written, never used.
        metadata: other data.
        parent_wsession_id: the same as `parent_session_id`; either sets the other.
        children_wsession_ids: the sessions that were started below this one; their own parent ids take precedence.
        state: ``running``, ``paused`` or ``closed``; follows from `status`.
        purpose: a line for users.
        context: ``{"kind": …, "ref": …}``.
        created_at: the same as `created`.
        closed_at: when it was closed; None while it is open.
        unknown_keys: all other keys of the document, kept unchanged (not a field).
    """

    session_id: str
    session_type: str
    parent_session_id: str | None = None
    status: str = SessionStatus.RUNNING.value
    created: str = field(default_factory=_now)
    modified: str = field(default_factory=_now)
    related_entity: dict[str, Any] = field(default_factory=dict)
    breadcrumbs_dir: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    parent_wsession_id: str | None = None
    children_wsession_ids: list[str] = field(default_factory=list)
    state: str = "running"
    purpose: str | None = None
    context: dict[str, Any] = field(default_factory=dict)
    created_at: str | None = None
    closed_at: str | None = None

    # Not fields: class attributes without annotation, so that `asdict` gives what the original program can
    # read.
    unknown_keys = NOTHING
    baseline = b""
    """The bytes of the file when this object was last loaded or saved; a save compares with them."""

    @property
    def parent(self) -> str | None:
        """The id of the parent, by either of its two names."""
        return self.parent_wsession_id or self.parent_session_id or None

    @property
    def is_closed(self) -> bool:
        """True if the session is completed, interrupted or failed."""
        return self.status in CLOSED


@dataclass
class Breadcrumb:
    """One interaction, or one message to the consumer of a session: the content of a breadcrumb file.

    Attributes:
        timestamp: ``YYYYMMDD_HHMMSS_microseconds``, UTC; local in a session whose times name no zone.
        breadcrumb_id: its identity (a UUID); a copy under another file name has the same one.
        prompt, response: texts; the response may be JSON text.
        tools_called: ``{"tool", "args", "result", "error", "timestamp"}`` each.
        files_modified: ``{"path", "operation", "diff", "timestamp", "size"}`` each; the operation is ``create``,
            ``modify`` or ``delete``.
        parent_session_id: the parent of a sub-worker's session, else None.
        depth_level: depth in the session tree, 0 at the top; the name of the folder that holds the file.
        model_used: the model's name; ``manual`` for a user.
        token_count: ``{"input": n, "output": m}``.
        cost: US dollars; None if unknown.
        error: the error; None if there is none.
        kind: ``note``, ``decision``, ``result``, ``handoff``, ``gate``, …
        tags: tags to find it by.
        payload: data for programs.
        unknown_keys: all other keys of the document, kept unchanged (not a field).
    """

    timestamp: str
    breadcrumb_id: str
    prompt: str
    response: str
    tools_called: list[dict[str, Any]]
    files_modified: list[dict[str, Any]]
    parent_session_id: str | None
    depth_level: int
    model_used: str
    token_count: dict[str, int]
    cost: float | None
    error: str | None
    kind: str = "note"
    tags: list[str] = field(default_factory=list)
    payload: dict[str, Any] | None = None

    unknown_keys = NOTHING


SESSION_KEYS: Final = tuple(each.name for each in fields(WorkSession))
CRUMB_KEYS: Final = tuple(each.name for each in fields(Breadcrumb))

_KNOWN_SESSION: Final = frozenset(SESSION_KEYS)
_KNOWN_CRUMB: Final = frozenset(CRUMB_KEYS)

# The required type of each key of a breadcrumb, and the default for a missing or null one.
_CRUMB_TYPES: Final[dict[str, tuple[type | tuple[type, ...], Callable[[], Any] | None]]] = {
    "timestamp": (str, None),
    "breadcrumb_id": (str, None),
    "prompt": (str, str),
    "response": (str, str),
    "tools_called": (list, list),
    "files_modified": (list, list),
    "parent_session_id": ((str, type(None)), lambda: None),
    "depth_level": (int, int),
    "model_used": (str, str),
    "token_count": (dict, dict),
    "cost": ((int, float, type(None)), lambda: None),
    "error": ((str, type(None)), lambda: None),
    "kind": (str, lambda: "note"),
    "tags": (list, list),
    "payload": ((dict, type(None)), lambda: None),
}
_SESSION_TYPES: Final[dict[str, type]] = {
    **dict.fromkeys(SESSION_KEYS, str),
    **dict.fromkeys(("related_entity", "metadata", "context"), dict),
    "children_wsession_ids": list,
}


def breadcrumb_of(document: Any, *, name: str = "") -> Breadcrumb:
    """Return the breadcrumb in a JSON object.

    Args:
        name: the name of its file, the default for a missing timestamp.

    Raises:
        SchemaError: it is not a breadcrumb; `details["faults"]` lists every fault.
    """
    if type(document) is not dict:
        raise SchemaError(
            "not a breadcrumb: not a JSON object", faults=[f"it is a {_word(document)}, not an object"]
        )
    values: dict[str, Any] = {}
    faults: list[str] = []
    for key, (wanted, default) in _CRUMB_TYPES.items():
        value = document.get(key)
        if value is None and default is not None:
            value = default()
        elif key == "timestamp" and value is None:
            value = name.removesuffix(".json") or None
        if not isinstance(value, wanted) or isinstance(value, bool) or (key == "breadcrumb_id" and not value):
            faults.append(f"{key} is missing" if value in (None, "") else f"{key} is a {_word(value)}")
        values[key] = value
    if not faults and values["depth_level"] < 0:
        faults.append("depth_level is negative")
    if faults:
        raise SchemaError(f"not a breadcrumb: {'; '.join(faults)}", faults=faults)
    crumb = Breadcrumb(**values)
    unknown = {key: value for key, value in document.items() if key not in _KNOWN_CRUMB}
    if unknown:
        crumb.unknown_keys = unknown
    return crumb


def session_of(document: Any) -> WorkSession:
    """Return the work session in a JSON object.

    Raises:
        SchemaError: it is not one; `details["faults"]` lists every fault, `details["legacy"]` is set for a
        session.json of Maestro's older format.
    """
    faults = session_faults(document)
    if faults:
        legacy = is_legacy(document)
        words = (
            "a session of Maestro's older format, which work sessions replaced"
            if legacy
            else f"not a work session: {'; '.join(faults)}"
        )
        raise SchemaError(words, faults=faults, details={"legacy": True} if legacy else None)
    values = {key: document[key] for key in SESSION_KEYS if document.get(key) is not None}
    session = WorkSession(**{"created": "", "modified": "", **values})
    session.parent_session_id = session.parent_session_id or session.parent_wsession_id
    session.parent_wsession_id = session.parent_wsession_id or session.parent_session_id
    session.state = state_of(session.status)
    session.created_at = session.created_at or session.created or None
    if not document.keys() <= _KNOWN_SESSION:
        session.unknown_keys = {key: value for key, value in document.items() if key not in _KNOWN_SESSION}
    return session


def session_faults(document: Any) -> list[str]:
    """Why a document is not a work session; empty if it is one."""
    if type(document) is not dict:
        return [f"it is a {_word(document)}, not an object"]
    faults = [f"{key} is missing" for key in ("session_id", "session_type") if not document.get(key)]
    for key, wanted in _SESSION_TYPES.items():
        value = document.get(key)
        if value is not None and type(value) is not wanted:
            faults.append(f"{key} is a {_word(value)}")
    status = document.get("status")
    if type(status) is str and status not in STATUSES:
        faults.append(f"unknown status {status!r}; known are {', '.join(sorted(STATUSES))}")
    return faults


def is_legacy(document: Any) -> bool:
    """True for a session.json of Maestro's older format, which is stored in the same folders."""
    return (
        type(document) is dict
        and "session_id" not in document
        and "id" in document
        and ("root_task" in document or "subtasks" in document)
    )


def document_of(session: WorkSession) -> dict[str, Any]:
    """The document to write: the fields in order, derived ones recomputed, then unknown keys."""
    document: dict[str, Any] = {key: getattr(session, key) for key in SESSION_KEYS}
    document["parent_session_id"] = document["parent_wsession_id"] = session.parent
    document["state"] = state_of(session.status)
    document["created_at"] = session.created_at or session.created or None
    document.update(session.unknown_keys)
    return document


def crumb_document(crumb: Breadcrumb) -> dict[str, Any]:
    """The document to write: the keys of the original program, then unknown keys."""
    return {key: getattr(crumb, key) for key in CRUMB_KEYS} | dict(crumb.unknown_keys)


def sort_key(crumb: Breadcrumb) -> tuple[str, int, str]:
    """Sort key of breadcrumbs: time, depth, id. A time of another form is compared by its instant."""
    stamp = crumb.timestamp
    if not is_stamp(stamp):
        moment = parse_time(stamp, UTC)
        stamp = stamp_of(moment) if moment else stamp
    return stamp, crumb.depth_level, crumb.breadcrumb_id


def _word(value: Any) -> str:
    words = {dict: "object", list: "list", str: "text", bool: "boolean", type(None): "null"}
    return words.get(type(value), "number")
