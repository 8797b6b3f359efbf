"""The stream of an export: its text in pieces, then its losses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

from sessionary.errors import SessionaryError
from sessionary.escaping import harmless
from sessionary.export.formats import FORMATS
from sessionary.export.wording import loss_words, one_line
from sessionary.viewer.library import Place
from sessionary.viewer.streams import event, failure, in_thread

PIECE = 64 * 1024
"""Bytes of an export in one event."""


async def stream(place: Place, form: str, *, redact: bool, branches: bool) -> AsyncGenerator[bytes]:
    """The events of an export: ``piece`` with text, then ``done`` with the name of the file and the losses."""
    try:
        async for found in in_thread(_pieces(place, form, redact=redact, branches=branches)):
            yield found
    except SessionaryError as error:
        yield event("failed", failure(error))


def _pieces(place: Place, form: str, *, redact: bool, branches: bool) -> Iterator[bytes]:
    export = place.workspace.export(place.ref, form, redact=redact, branches=branches)
    waiting, size = list[bytes](), 0
    for line in export:
        waiting.append(line)
        size += len(line)
        if size >= PIECE:
            yield event("piece", b"".join(waiting).decode())
            waiting, size = [], 0
    yield event("piece", b"".join(waiting).decode())
    report = export.report
    yield event(
        "done",
        {
            "name": export.file_name,
            "messages": report.messages,
            "losses": [harmless(loss_words(loss)) for loss in report.losses],
            "masked": {one_line(rule): count for rule, count in sorted(report.masked.items())},
        },
    )


def formats() -> list[dict[str, Any]]:
    """The formats: the name of each, and the end of its file names."""
    return [{"name": name, "suffix": one.suffix} for name, one in FORMATS.items()]
