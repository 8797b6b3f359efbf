"""The stream of steps that every format is written from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from sessionary.model import Problem, Summary, Usage
from sessionary.transcript.typed import Numbered


class Head(NamedTuple):
    """A session; the fields are those of `Summary`. `path` is where it is stored.

    `kind` is ``file`` for a file of messages that belongs to no known session. `cost` is that of the list prices, in US
    dollars, without the tokens of `unpriced`, whose price is unknown; what the agent states is `usage.cost`.
    """

    id: str
    kind: str
    path: str
    agent: str | None = None
    title: str | None = None
    project: str | None = None
    parent: str | None = None
    cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    models: tuple[str, ...] = ()
    created: datetime | None = None
    updated: datetime | None = None
    usage: Usage | None = None
    cost: float | None = None
    unpriced: int = 0


class Begin(NamedTuple):
    """A session begins. `depth` is 0 for the exported session, 1 for a sub-agent's, and so on.

    `problems` are all of the session, those of single lines included; the latter follow as steps of their own too.
    """

    head: Head
    problems: tuple[Problem, ...]
    depth: int


class End(NamedTuple):
    """The session that began last and has not ended ends."""

    depth: int


Step = Begin | Numbered | Problem | End
"""Between `Begin` and `End`: first the messages and problems of the session, then the sessions of its sub-agents."""

Steps = Iterator[Step]


def head_of(summary: Summary, cost: float | None, unpriced: int) -> Head:
    """The head of a session with this summary, and its cost."""
    ref = summary.ref
    return Head(
        ref.session_id,
        ref.kind,
        ref.locator,
        summary.agent,
        summary.title,
        ref.project,
        summary.parent,
        summary.cwd,
        summary.branch,
        summary.version,
        tuple(summary.models),
        summary.created,
        summary.updated,
        summary.total_usage(),
        cost,
        unpriced,
    )
