"""What Pi refuses in a session: a file without a header, content of another shape, compactions that keep nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.layouts.base import mended_copy
from sessionary.model import Problem, Record, SessionRef, Severity


def header_of(records: Iterable[Record]) -> dict[str, Any]:
    """The header, which is the first record; an empty object for any other record."""
    first = next(iter(records), None)
    return first.value if first is not None and first.value.get("type") == "session" else {}


def entry_problems(ref: SessionRef, records: Iterable[Record]) -> Iterator[Problem]:
    """What Pi refuses, entry by entry."""
    known: set[str] = set()
    remedy = mended_copy(ref)
    for number, found in enumerate(records):
        entry, line, byte = found.value, found.line, found.byte
        kind, message = text_or_none(entry.get("type")), object_of(entry.get("message"))
        if number == 0 and kind != "session":
            words = "the file does not begin with a header: Pi does not open it"
            yield Problem("no_header", Severity.stops_resume, ref.locator, line, byte, words, remedy)
        known.update(filter(None, (text_or_none(entry.get("id")),)))
        if message.get("role") in ("assistant", "toolResult") and not isinstance(
            message.get("content"), list
        ):
            words = f"the content of a message of the role {message['role']} is no list: Pi fails on it"
            yield Problem("bad_content", Severity.stops_resume, ref.locator, line, byte, words, remedy)
        kept = text_or_none(entry.get("firstKeptEntryId"))
        if kind == "compaction" and kept is not None and kept not in known:
            words = f"the compaction keeps the entry {kept} and what follows, and that is missing"
            yield Problem("missing_entry", Severity.hides_data, ref.locator, line, byte, words, remedy)
