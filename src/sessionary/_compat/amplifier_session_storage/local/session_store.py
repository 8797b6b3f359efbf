"""The import name of the session store's module; the code lives in `sessionary`."""

from sessionary.layouts.amplifier.ids import is_top_level_session
from sessionary.layouts.amplifier.store import BUNDLE_PREFIX, SessionStore, extract_session_mode

__all__ = ["BUNDLE_PREFIX", "SessionStore", "extract_session_mode", "is_top_level_session"]
