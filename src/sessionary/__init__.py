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
    from sessionary.layouts.brainstorm import BrainstormStore
    from sessionary.layouts.orchestrator import FeatureStore

__version__ = "0.1.0"

_FACE = {
    "AlreadyExists": "sessionary.errors",
    "AmbiguousId": "sessionary.errors",
    "BrainstormStore": "sessionary.layouts.brainstorm",
    "Conflict": "sessionary.errors",
    "Corrupt": "sessionary.errors",
    "EventsLog": "sessionary.layouts.amplifier",
    "FeatureStore": "sessionary.layouts.orchestrator",
    "Invalid": "sessionary.errors",
    "InvalidId": "sessionary.errors",
    "Locked": "sessionary.errors",
    "NotFound": "sessionary.errors",
    "RemoteError": "sessionary.errors",
    "SchemaError": "sessionary.errors",
    "SessionStore": "sessionary.layouts.amplifier",
    "SessionaryError": "sessionary.errors",
    "StorageFailed": "sessionary.errors",
    "TransitionError": "sessionary.errors",
    "Unsupported": "sessionary.errors",
}

__all__ = [
    "AlreadyExists",
    "AmbiguousId",
    "BrainstormStore",
    "Conflict",
    "Corrupt",
    "EventsLog",
    "FeatureStore",
    "Invalid",
    "InvalidId",
    "Locked",
    "NotFound",
    "RemoteError",
    "SchemaError",
    "SessionStore",
    "SessionaryError",
    "StorageFailed",
    "TransitionError",
    "Unsupported",
    "__version__",
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
