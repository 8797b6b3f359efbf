"""The amplifier layout: metadata.json, transcript.jsonl and events.jsonl in a folder per session."""

from sessionary.layouts.amplifier.events import EventsLog
from sessionary.layouts.amplifier.ids import is_top_level_session
from sessionary.layouts.amplifier.saving import Report
from sessionary.layouts.amplifier.store import BUNDLE_PREFIX, SessionStore, extract_session_mode

__all__ = [
    "BUNDLE_PREFIX",
    "EventsLog",
    "Report",
    "SessionStore",
    "extract_session_mode",
    "is_top_level_session",
]
