"""The amplifier layout: metadata.json, transcript.jsonl and events.jsonl in a folder per session.

Operations on several files of a session (forks, rewind, repair, undo) and the reading of event logs are
loaded on demand: a program that saves a turn should not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionary.lazy_exports import on_demand

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.event_reader import EventReader as EventReader
    from sessionary.layouts.amplifier.events import EventsLog as EventsLog
    from sessionary.layouts.amplifier.forks import ForkResult as ForkResult
    from sessionary.layouts.amplifier.forks import fork_session as fork_session
    from sessionary.layouts.amplifier.forks import fork_session_in_memory as fork_session_in_memory
    from sessionary.layouts.amplifier.forks import get_fork_preview as get_fork_preview
    from sessionary.layouts.amplifier.ids import is_top_level_session as is_top_level_session
    from sessionary.layouts.amplifier.lineage import get_session_lineage as get_session_lineage
    from sessionary.layouts.amplifier.lineage import is_fork as is_fork
    from sessionary.layouts.amplifier.lineage import list_session_forks as list_session_forks
    from sessionary.layouts.amplifier.repairing import Repaired as Repaired
    from sessionary.layouts.amplifier.repairing import repair as repair
    from sessionary.layouts.amplifier.rewinding import Rewound as Rewound
    from sessionary.layouts.amplifier.rewinding import rewind as rewind
    from sessionary.layouts.amplifier.store import BUNDLE_PREFIX as BUNDLE_PREFIX
    from sessionary.layouts.amplifier.store import SessionStore as SessionStore
    from sessionary.layouts.amplifier.store import extract_session_mode as extract_session_mode
    from sessionary.layouts.amplifier.transactions import Restored as Restored
    from sessionary.layouts.amplifier.transactions import Undone as Undone
    from sessionary.layouts.amplifier.transactions import forget_undo as forget_undo
    from sessionary.layouts.amplifier.transactions import restore_backup as restore_backup
    from sessionary.layouts.amplifier.transactions import undo as undo
    from sessionary.layouts.amplifier.transactions import undo_entries as undo_entries
    from sessionary.layouts.amplifier.write_op import Report as Report


__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        ".store": "BUNDLE_PREFIX SessionStore extract_session_mode",
        ".events": "EventsLog",
        ".write_op": "Report",
        ".ids": "is_top_level_session",
        ".event_reader": "EventReader",
        ".forks": "ForkResult fork_session fork_session_in_memory get_fork_preview",
        ".lineage": "get_session_lineage is_fork list_session_forks",
        ".repairing": "Repaired repair",
        ".rewinding": "Rewound rewind",
        ".transactions": "Restored Undone forget_undo restore_backup undo undo_entries",
    },
)
