"""JSON Lines: one message per line, each with the session that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from sessionary.export.documents import json_text, of_head, of_message
from sessionary.export.losses import Report
from sessionary.export.steps import Begin, End, Steps
from sessionary.transcript.typed import Numbered


def write(steps: Steps, report: Report) -> Iterator[bytes]:
    """The lines; see `Write`. They are joined as bytes: text with one `…` in a title takes twice the memory."""
    sessions: list[bytes] = []
    for step in steps:
        if isinstance(step, Begin):
            sessions.append(json_text({"session": of_head(step.head)})[:-1].encode())
        elif isinstance(step, End):
            sessions.pop()
        elif isinstance(step, Numbered):
            yield b"".join((sessions[-1], b", ", memoryview(json_text(of_message(step)).encode())[1:]))
