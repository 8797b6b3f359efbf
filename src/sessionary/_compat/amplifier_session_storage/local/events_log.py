"""The import name of the events log's module; the code lives in `sessionary`."""

from sessionary.layouts.amplifier import EventsLog

__all__ = ["EventsLog"]
