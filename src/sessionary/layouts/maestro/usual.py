"""From bytes to records in one step, for documents of the usual form; everything else is left to `records`.

Nearly every file has just the keys that we know, each with a value of its type. msgspec checks that while it reads,
and makes no dict of the document on the way, which halves the time of a list. What it refuses, for whatever reason,
is read again by the rules that can also tell what is wrong: so this module decides nothing, and MUST give either
the record that they would give, or none.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import DecodeError, Struct, field, json
from msgspec.structs import astuple

from sessionary.layouts.maestro.records import STATUSES, Breadcrumb, WorkSession, state_of

_REFUSED: Final = (DecodeError, UnicodeDecodeError, RecursionError)
_CHANGEABLE: Final = frozenset({dict, list})
_NUMBERS: Final = frozenset({float, int, type(None)})


class _Breadcrumb(Struct, forbid_unknown_fields=True, gc=False):
    """The fields of `Breadcrumb` in its order. Numbers are looked at by hand: msgspec reads ``1.0`` as an int."""

    timestamp: str
    breadcrumb_id: str
    prompt: str
    response: str
    tools_called: list  # type: ignore[type-arg]
    files_modified: list  # type: ignore[type-arg]
    parent_session_id: str | None
    depth_level: Any
    model_used: str
    token_count: dict  # type: ignore[type-arg]
    cost: Any
    error: str | None
    kind: str = "note"
    tags: list = field(default_factory=list)  # type: ignore[type-arg]
    payload: dict | None = None  # type: ignore[type-arg]


class _Session(Struct, forbid_unknown_fields=True, gc=False):
    """The fields of `WorkSession` in its order, with what stands for one that is missing."""

    session_id: str
    session_type: str
    parent_session_id: str | None = None
    status: str = "running"
    created: str = ""
    modified: str = ""
    related_entity: dict = field(default_factory=dict)  # type: ignore[type-arg]
    breadcrumbs_dir: str = ""
    metadata: dict = field(default_factory=dict)  # type: ignore[type-arg]
    parent_wsession_id: str | None = None
    children_wsession_ids: list = field(default_factory=list)  # type: ignore[type-arg]
    state: str = "running"
    purpose: str | None = None
    context: dict = field(default_factory=dict)  # type: ignore[type-arg]
    created_at: str | None = None
    closed_at: str | None = None


_read_breadcrumb = json.Decoder(_Breadcrumb).decode
_read_session = json.Decoder(_Session).decode


def usual_breadcrumb(data: bytes) -> Breadcrumb | None:
    """The breadcrumb in the bytes of a file; None if `records.breadcrumb_of` has to look at it."""
    try:
        read = _read_breadcrumb(data)
    except _REFUSED:
        return None
    depth = read.depth_level
    if type(depth) is int and depth >= 0 and read.breadcrumb_id and type(read.cost) in _NUMBERS:
        return Breadcrumb(*astuple(read))
    return None


def usual_session(data: bytes) -> WorkSession | None:
    """The work session in the bytes of a file; None if `records.session_of` has to look at it."""
    read = _usual(data)
    return WorkSession(*astuple(read)) if read is not None else None


class Mould(Struct, frozen=True, gc=False):
    """A work session of the usual form that was read once, from which any number of records can be made.

    Attributes:
        read: what the bytes say.
        data: the bytes.
    """

    read: _Session
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Mould | None:
        """The mould for the bytes of a file; None if they have to be read for each record.

        So it is if `usual_session` refuses them, or if something in the session holds more that can be changed.
        """
        read = _usual(data)
        if read is None:
            return None
        values = (*read.related_entity.values(), *read.metadata.values(), *read.context.values())
        kinds = map(type, (*values, *read.children_wsession_ids))
        return cls(read, data) if _CHANGEABLE.isdisjoint(kinds) else None

    def record(self) -> WorkSession:
        """A record that shares nothing that can be changed with any other."""
        read = self.read
        session = WorkSession(*astuple(read))
        session.related_entity = read.related_entity.copy()
        session.metadata = read.metadata.copy()
        session.children_wsession_ids = read.children_wsession_ids.copy()
        session.context = read.context.copy()
        session.baseline = self.data
        return session


def _usual(data: bytes) -> _Session | None:
    """What the bytes of a usual file say, completed."""
    try:
        read = _read_session(data)
    except _REFUSED:
        return None
    if not (read.session_id and read.session_type and read.status in STATUSES):
        return None
    read.parent_session_id = read.parent_session_id or read.parent_wsession_id
    read.parent_wsession_id = read.parent_wsession_id or read.parent_session_id
    read.state = state_of(read.status)
    read.created_at = read.created_at or read.created or None
    return read
