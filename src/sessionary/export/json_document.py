"""One JSON document, in the shape of session.schema.json: the session, its messages and problems, its sub-agents.

Each message has a line of its own, so `diff` and `git` show what changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessionary.export.documents import json_text, of_head, of_message
from sessionary.export.losses import Report
from sessionary.export.steps import Begin, End, Steps
from sessionary.transcript.typed import Numbered
from sessionary.version import __version__

SCHEMA = "urn:sessionary:session-export:1"
"""The identifier of the schema."""


@dataclass(slots=True)
class _Open:
    """A session whose object is not closed yet; `end` closes its list of messages."""

    end: str
    messages: int = 0
    children: int = 0


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    head = json_text({"schema": SCHEMA, "generator": f"sessionary {__version__}"})
    yield head[:-1] + ","
    sessions: list[_Open] = []
    for step in steps:
        if isinstance(step, Begin):
            if sessions:
                yield from _begin_child(sessions[-1])
            problems = json_text([one.as_dict() for one in step.problems])
            sessions.append(_Open(f'], "problems": {problems}, "subagents": ['))
            lead = "{" if step.depth else ""
            yield f'{lead}"session": {json_text(of_head(step.head))}, "messages": ['
        elif isinstance(step, Numbered):
            yield ("," if sessions[-1].messages else "") + json_text(of_message(step))
            sessions[-1].messages += 1
        elif isinstance(step, End):
            ended = sessions.pop()
            yield ("" if ended.children else ended.end) + ("]}" if step.depth else "],")
    left = report.as_dict()
    yield f'"losses": {json_text(left["losses"])}, "masked": {json_text(left["masked"])}}}'


def _begin_child(parent: _Open) -> Iterator[str]:
    yield "," if parent.children else parent.end
    parent.children += 1
