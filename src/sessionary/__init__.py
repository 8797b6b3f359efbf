"""Sessionary is where agent sessions live.

Everything public is reachable from here, and nothing is imported until it is asked for: a command that prints
a version, and a program that wants only the event log, must not pay for the rest of the house. `_FACE` is the
whole public face: the name, and the room that owns it. A test pins it, so that no name appears or vanishes by
accident.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessionary.errors import (
        AlreadyExists,
        AmbiguousId,
        Conflict,
        Corrupt,
        Invalid,
        InvalidId,
        Locked,
        NotFound,
        RemoteError,
        SchemaError,
        SessionaryError,
        StorageFailed,
        TransitionError,
        Unsupported,
    )
    from sessionary.layouts.amplifier import EventsLog, SessionStore
    from sessionary.layouts.maestro import (
        Breadcrumb,
        SessionStatus,
        WorkSession,
        WorkStore,
        create_breadcrumb,
        create_session,
        list_breadcrumbs,
        list_sessions,
        load_breadcrumb,
        load_session,
        save_session,
        write_breadcrumb,
    )
    from sessionary.mailbox import Mailbox, run_inbox

__version__ = "0.1.0"

_FACE = {
    "AlreadyExists": "sessionary.errors",
    "AmbiguousId": "sessionary.errors",
    "Breadcrumb": "sessionary.layouts.maestro",
    "Conflict": "sessionary.errors",
    "Corrupt": "sessionary.errors",
    "EventsLog": "sessionary.layouts.amplifier",
    "Invalid": "sessionary.errors",
    "InvalidId": "sessionary.errors",
    "Locked": "sessionary.errors",
    "Mailbox": "sessionary.mailbox",
    "NotFound": "sessionary.errors",
    "RemoteError": "sessionary.errors",
    "SchemaError": "sessionary.errors",
    "SessionStatus": "sessionary.layouts.maestro",
    "SessionStore": "sessionary.layouts.amplifier",
    "SessionaryError": "sessionary.errors",
    "StorageFailed": "sessionary.errors",
    "TransitionError": "sessionary.errors",
    "Unsupported": "sessionary.errors",
    "WorkSession": "sessionary.layouts.maestro",
    "WorkStore": "sessionary.layouts.maestro",
    "create_breadcrumb": "sessionary.layouts.maestro",
    "create_session": "sessionary.layouts.maestro",
    "list_breadcrumbs": "sessionary.layouts.maestro",
    "list_sessions": "sessionary.layouts.maestro",
    "load_breadcrumb": "sessionary.layouts.maestro",
    "load_session": "sessionary.layouts.maestro",
    "run_inbox": "sessionary.mailbox",
    "save_session": "sessionary.layouts.maestro",
    "write_breadcrumb": "sessionary.layouts.maestro",
}

__all__ = [
    "AlreadyExists",
    "AmbiguousId",
    "Breadcrumb",
    "Conflict",
    "Corrupt",
    "EventsLog",
    "Invalid",
    "InvalidId",
    "Locked",
    "Mailbox",
    "NotFound",
    "RemoteError",
    "SchemaError",
    "SessionStatus",
    "SessionStore",
    "SessionaryError",
    "StorageFailed",
    "TransitionError",
    "Unsupported",
    "WorkSession",
    "WorkStore",
    "__version__",
    "create_breadcrumb",
    "create_session",
    "list_breadcrumbs",
    "list_sessions",
    "load_breadcrumb",
    "load_session",
    "run_inbox",
    "save_session",
    "write_breadcrumb",
]


def __getattr__(name: str) -> Any:
    room = _FACE.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(room), name)
    globals()[name] = value  # the next look-up does not come back here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
