"""The drawer of a session: damaged places, touched files, usage, and stored records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.errors import SessionaryError
from sessionary.escaping import harmless
from sessionary.export.wording import one_line, pretty_json
from sessionary.model import Problem, Severity
from sessionary.viewer.library import Library, Place
from sessionary.viewer.transcript import messages
from sessionary.workspace import documents
from sessionary.workspace.comparing import files_of
from sessionary.workspace.excerpts import Excerpt, excerpt_of
from sessionary.workspace.family import kin_of, with_agents
from sessionary.workspace.stored import LINE, StoredFile, StoredRecord, file_named

PLACES = 100
"""Problems of which the stored bytes are shown."""

AROUND = 64
"""Bytes before and behind a damaged place that are shown."""

LONGEST_SPAN = 192
"""Damaged bytes that are shown."""

RECORDS = 50
"""Stored records on a page."""

_ROW = 16
_LONGEST_TEXT = 20_000
_WORDS = 240
_MOST_FILES = 2_000
_MOST_CALLS = 200


def health(place: Place) -> dict[str, Any]:
    """The problems of a session, the worst first, with the stored bytes of their places."""
    found = sorted(place.workspace.check(place.ref), key=lambda one: -one.severity)
    return {
        "problems": [_problem(one) | (_seen(one) if at < PLACES else {}) for at, one in enumerate(found)],
        "notes": sum(one.severity == Severity.note for one in found),
    }


def _problem(one: Problem) -> dict[str, Any]:
    found = documents.of_problem(one)
    return {name: harmless(value) if isinstance(value, str) else value for name, value in found.items()}


def _seen(problem: Problem) -> dict[str, Any]:
    """The place of a problem: its bytes in rows of 16, its text in three pieces, and its value if it is JSON."""
    try:
        found = excerpt_of(problem)
    except SessionaryError as error:
        return {"unseen": harmless(error.message)}
    if found is None:
        return {}
    return {"hex": _hex(found), "text": _pieces(found), "json": _value(found)}


def _hex(found: Excerpt) -> dict[str, Any]:
    last = min(found.end, found.begin + LONGEST_SPAN)
    first = max(found.begin - AROUND, 0)
    first = max(first - (found.start + first) % _ROW, 0)
    shown = found.data[first : last + AROUND]
    return {
        "start": found.start + first,
        "bytes": shown.hex(),
        "mark": [found.begin - first, last - first],
        "before": first,
        "after": len(found.data) - first - len(shown),
    }


def _pieces(found: Excerpt) -> list[str]:
    before = found.data[max(found.begin - _WORDS, 0) : found.begin]
    damaged = found.data[found.begin : min(found.end, found.begin + _WORDS)]
    behind = found.data[found.begin + len(damaged) : found.begin + len(damaged) + _WORDS]
    return [harmless(piece.decode("utf-8", "backslashreplace")) for piece in (before, damaged, behind)]


def _value(found: Excerpt) -> str | None:
    if not found.whole:
        return None
    try:
        return pretty_json(decode(found.data))[:_LONGEST_TEXT]
    except Undecodable:
        return None


@dataclass(slots=True)
class _File:
    calls: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    at: list[int] = field(default_factory=list)


def files(place: Place) -> dict[str, Any]:
    """The files that the arguments of tool calls name, the most often named first, and the messages that do so."""
    found: dict[str, _File] = {}
    tools: Counter[str] = Counter()
    for at, one in enumerate(messages(place)):
        if one.inherited:
            continue
        for call in one.message.calls:
            tools[one_line(call.name)] += 1
            for name in set(files_of(call)):
                file = found.setdefault(name, _File())
                file.calls += 1
                file.tools[one_line(call.name)] += 1
                if len(file.at) < _MOST_CALLS:
                    file.at.append(at)
    lead = (place.workspace.summary(place.ref).cwd or "").rstrip("/") + "/"
    ordered = sorted(found.items(), key=lambda item: (-item[1].calls, item[0]))
    return {
        "files": [
            {
                "file": one_line(name.removeprefix(lead), 500),
                "calls": one.calls,
                "tools": dict(one.tools),
                "at": one.at,
            }
            for name, one in ordered[:_MOST_FILES]
        ],
        "more": max(len(ordered) - _MOST_FILES, 0),
        "tools": dict(tools.most_common()),
    }


def usage(place: Place, library: Library) -> dict[str, Any]:
    """Tokens and cost of a session by model and day, and with the sessions of its sub-agents.

    Raises:
        Invalid: the price file of the user is not valid.
    """
    summary = place.workspace.summary(place.ref)
    own = place.workspace.spending([summary])
    kin = kin_of(summary.ref, (one for one in library.summaries() if one.ref.kind == summary.ref.kind))
    agents = [] if kin is None else [one.summary for one in with_agents(kin)][1:]
    whole = place.workspace.spending([summary, *agents]) if agents else None
    return {
        "models": [
            {"model": one_line(name), **documents.of_spending(one)} for name, one in own.models.items()
        ],
        "days": [{"day": day, **documents.of_spending(one)} for day, one in own.days.items()],
        "total": documents.of_spending(own.total),
        "states_usage": not own.silent_sessions,
        "prices": own.prices,
        "agents": len(agents),
        "family": None if whole is None else documents.of_spending(whole.total),
    }


class Asked(NamedTuple):
    """The page of stored records that is asked for.

    Attributes:
        file: the file; "" for that of the conversation.
        first: the number of the first record, from 1; 0 for that of the message.
        line: the line of the message, in a file of lines.
        row: the row of the message, in a database.
    """

    file: str
    first: int
    line: int
    row: str


def records(place: Place, asked: Asked) -> dict[str, Any]:
    """Stored records of a file of a session, or of its database. Raises NotFound if the session has no such file."""
    files = place.workspace.stored_files(place.ref)
    if not files:
        return {"files": [], "file": None, "unit": "", "records": [], "first": 1, "next": None}
    file = file_named(files, asked.file)
    page = _page(place, file, asked)
    return {
        "files": [{"name": harmless(one.name), "size": one.size} for one in files],
        "file": harmless(file.name),
        "unit": file.unit,
        "records": [_record(one) for one in page[:RECORDS]],
        "first": page[0].number if page else asked.first or 1,
        "next": page[RECORDS].number if len(page) > RECORDS else None,
    }


def _page(place: Place, file: StoredFile, asked: Asked) -> list[StoredRecord]:
    """The records of a page, and the first one of the next."""
    first = asked.first or (max(asked.line, 1) if file.unit == LINE else 1)
    row = "" if asked.first else asked.row

    def found(row: str) -> list[StoredRecord]:
        records = place.workspace.stored_records(
            place.ref, file.name, first=first, width=_LONGEST_TEXT, row=row
        )
        return list(islice(records, RECORDS + 1))

    return found(row) or (found("") if row else [])  # the row may be gone


def _record(one: StoredRecord) -> dict[str, Any]:
    text = harmless(one.data[:_LONGEST_TEXT].decode("utf-8", "backslashreplace"))
    return {
        "number": one.number,
        "byte": one.byte,
        "row": harmless(one.row),
        "size": one.size,
        "text": text,
        "cut": max(one.size - _LONGEST_TEXT, 0),
    }
