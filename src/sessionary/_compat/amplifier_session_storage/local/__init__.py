"""The import name of the local half of the amplifier session store; the code lives in `sessionary`."""

from sessionary.layouts.amplifier.events import EventsLog
from sessionary.layouts.amplifier.store import SessionStore

__all__ = ["EventsLog", "SessionStore"]
