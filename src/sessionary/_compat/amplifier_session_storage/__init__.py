"""The import name that callers of the amplifier session store use; the code lives in `sessionary`."""

from sessionary.faces import give_way

if not give_way(__name__):
    from sessionary.layouts.amplifier import (
        BUNDLE_PREFIX,
        EventsLog,
        SessionStore,
        extract_session_mode,
        is_top_level_session,
    )

__all__ = ["BUNDLE_PREFIX", "EventsLog", "SessionStore", "extract_session_mode", "is_top_level_session"]
