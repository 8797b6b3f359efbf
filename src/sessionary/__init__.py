"""Sessionary is where agent sessions live.

Everything public is reachable from here, and nothing is imported until it is asked for: a command that prints
a version, and a program that wants only the event log, must not pay for the rest of the house. `_FACE` is the
whole public face: the name, and the room that owns it. A test pins it, so that no name appears or vanishes by
accident.
"""

from typing import TYPE_CHECKING

from sessionary.faces import on_demand

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
    from sessionary.layouts.amplifier import (
        EventReader,
        EventsLog,
        ForkResult,
        Repaired,
        Restored,
        Rewound,
        SessionStore,
        Undone,
        forget_undo,
        fork_session,
        fork_session_in_memory,
        get_fork_preview,
        get_session_lineage,
        is_fork,
        list_session_forks,
        repair,
        restore_backup,
        rewind,
        undo,
        undo_entries,
    )
    from sessionary.layouts.brainstorm import BrainstormStore
    from sessionary.layouts.orchestrator import FeatureStore

__version__ = "0.1.0"

_FACE = {
    "AlreadyExists": "sessionary.errors",
    "AmbiguousId": "sessionary.errors",
    "BrainstormStore": "sessionary.layouts.brainstorm",
    "Conflict": "sessionary.errors",
    "Corrupt": "sessionary.errors",
    "EventReader": "sessionary.layouts.amplifier",
    "EventsLog": "sessionary.layouts.amplifier",
    "FeatureStore": "sessionary.layouts.orchestrator",
    "ForkResult": "sessionary.layouts.amplifier",
    "Invalid": "sessionary.errors",
    "InvalidId": "sessionary.errors",
    "Locked": "sessionary.errors",
    "NotFound": "sessionary.errors",
    "RemoteError": "sessionary.errors",
    "Repaired": "sessionary.layouts.amplifier",
    "Restored": "sessionary.layouts.amplifier",
    "Rewound": "sessionary.layouts.amplifier",
    "SchemaError": "sessionary.errors",
    "SessionStore": "sessionary.layouts.amplifier",
    "SessionaryError": "sessionary.errors",
    "StorageFailed": "sessionary.errors",
    "TransitionError": "sessionary.errors",
    "Undone": "sessionary.layouts.amplifier",
    "Unsupported": "sessionary.errors",
    "forget_undo": "sessionary.layouts.amplifier",
    "fork_session": "sessionary.layouts.amplifier",
    "fork_session_in_memory": "sessionary.layouts.amplifier",
    "get_fork_preview": "sessionary.layouts.amplifier",
    "get_session_lineage": "sessionary.layouts.amplifier",
    "is_fork": "sessionary.layouts.amplifier",
    "list_session_forks": "sessionary.layouts.amplifier",
    "repair": "sessionary.layouts.amplifier",
    "restore_backup": "sessionary.layouts.amplifier",
    "rewind": "sessionary.layouts.amplifier",
    "undo": "sessionary.layouts.amplifier",
    "undo_entries": "sessionary.layouts.amplifier",
}

__all__ = [
    "AlreadyExists",
    "AmbiguousId",
    "BrainstormStore",
    "Conflict",
    "Corrupt",
    "EventReader",
    "EventsLog",
    "FeatureStore",
    "ForkResult",
    "Invalid",
    "InvalidId",
    "Locked",
    "NotFound",
    "RemoteError",
    "Repaired",
    "Restored",
    "Rewound",
    "SchemaError",
    "SessionStore",
    "SessionaryError",
    "StorageFailed",
    "TransitionError",
    "Undone",
    "Unsupported",
    "__version__",
    "forget_undo",
    "fork_session",
    "fork_session_in_memory",
    "get_fork_preview",
    "get_session_lineage",
    "is_fork",
    "list_session_forks",
    "repair",
    "restore_backup",
    "rewind",
    "undo",
    "undo_entries",
]


__getattr__, __dir__ = on_demand(__name__, _FACE)
