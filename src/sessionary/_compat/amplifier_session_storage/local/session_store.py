"""The import name of the session store's module; the code lives in `sessionary`."""

from sessionary.layouts.amplifier import (
    BUNDLE_PREFIX,
    SessionStore,
    extract_session_mode,
    is_top_level_session,
)

__all__ = ["BUNDLE_PREFIX", "SessionStore", "extract_session_mode", "is_top_level_session"]
