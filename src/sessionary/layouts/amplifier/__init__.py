"""The amplifier layout: metadata.json, transcript.jsonl and events.jsonl in a folder per session.

What changes several files of a session at once (forks, rewind, repair, undo), and what reads event logs, is loaded when
it is asked for: a program that saves a turn should not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionary.lazy_exports import on_demand

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.event_reader import EventReader
    from sessionary.layouts.amplifier.events import EventsLog
    from sessionary.layouts.amplifier.forks import (
        ForkResult,
        fork_session,
        fork_session_in_memory,
        get_fork_preview,
    )
    from sessionary.layouts.amplifier.ids import is_top_level_session
    from sessionary.layouts.amplifier.lineage import get_session_lineage, is_fork, list_session_forks
    from sessionary.layouts.amplifier.repairing import Repaired, repair
    from sessionary.layouts.amplifier.rewinding import Rewound, rewind
    from sessionary.layouts.amplifier.store import BUNDLE_PREFIX, SessionStore, extract_session_mode
    from sessionary.layouts.amplifier.transactions import (
        Restored,
        Undone,
        forget_undo,
        restore_backup,
        undo,
        undo_entries,
    )
    from sessionary.layouts.amplifier.write_op import Report

_FACE = {
    "BUNDLE_PREFIX": "store",
    "EventsLog": "events",
    "Report": "write_op",
    "SessionStore": "store",
    "extract_session_mode": "store",
    "is_top_level_session": "ids",
    "EventReader": "event_reader",
    "ForkResult": "forks",
    "fork_session": "forks",
    "fork_session_in_memory": "forks",
    "get_fork_preview": "forks",
    "get_session_lineage": "lineage",
    "is_fork": "lineage",
    "list_session_forks": "lineage",
    "Repaired": "repairing",
    "Rewound": "rewinding",
    "Restored": "transactions",
    "Undone": "transactions",
    "forget_undo": "transactions",
    "repair": "repairing",
    "rewind": "rewinding",
    "restore_backup": "transactions",
    "undo": "transactions",
    "undo_entries": "transactions",
}

__all__ = [
    "BUNDLE_PREFIX",
    "EventReader",
    "EventsLog",
    "ForkResult",
    "Repaired",
    "Report",
    "Restored",
    "Rewound",
    "SessionStore",
    "Undone",
    "extract_session_mode",
    "forget_undo",
    "fork_session",
    "fork_session_in_memory",
    "get_fork_preview",
    "get_session_lineage",
    "is_fork",
    "is_top_level_session",
    "list_session_forks",
    "repair",
    "restore_backup",
    "rewind",
    "undo",
    "undo_entries",
]


__getattr__, __dir__ = on_demand(__name__, {name: f"{__name__}.{room}" for name, room in _FACE.items()})
