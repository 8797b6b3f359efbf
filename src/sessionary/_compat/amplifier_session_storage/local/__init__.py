"""The import name of the local half of the amplifier session store; the code lives in `sessionary`."""

from sessionary.layouts.amplifier import EventsLog, SessionStore

__all__ = ["EventsLog", "SessionStore"]
