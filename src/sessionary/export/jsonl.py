"""JSON Lines: one message per line, each with the session that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionary.export.documents import json_text, of_head, of_message
from sessionary.export.losses import Report
from sessionary.export.steps import Begin, End, Steps
from sessionary.transcript.typed import Numbered


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    sessions: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, Begin):
            sessions.append(of_head(step.head))
        elif isinstance(step, End):
            sessions.pop()
        elif isinstance(step, Numbered):
            yield json_text({"session": sessions[-1], **of_message(step)})
