"""The import name of the events log's module; the code lives in `sessionary`."""

from sessionary.layouts.amplifier.events import EventsLog

__all__ = ["EventsLog"]
