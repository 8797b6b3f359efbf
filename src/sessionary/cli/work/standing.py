"""The state of the consumers of a work session, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sessionary.cli.text import one_line
from sessionary.cli.work.render import cut
from sessionary.mailbox.mailbox import Status


def counts(status: Status) -> str:
    """The counts of a consumer in a line."""
    words = (
        [f"{len(status.dead):,} dead", f"{len(status.bad):,} bad"]
        if status.bad
        else [f"{len(status.dead):,} dead"]
    )
    parts = [
        f"{status.applied:,} applied",
        f"{status.pending:,} pending",
        f"{status.unwritten:,} incomplete",
        f"{len(status.failing):,} failed",
        *words,
    ]
    return f"{status.consumer}: {', '.join(parts)}"


def lines(statuses: Iterable[Status]) -> Iterator[str]:
    """Each consumer, with its dead letters and the files that are not messages."""
    for status in statuses:
        yield cut(counts(status))
        if status.worker:
            yield cut(f"  running: process {status.worker.get('pid', '?')}")
        for dead in status.dead:
            yield cut(
                f"  dead: {one_line(dead.breadcrumb_id)} ({one_line(dead.file)}): {one_line(dead.error)}"
            )
        yield from (cut(f"  bad: {one_line(file)}") for file in status.bad)


def as_object(status: Status) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "consumer": status.consumer,
        "applied": status.applied,
        "pending": status.pending,
        "unwritten": status.unwritten,
        "failing": status.failing,
        "dead": [dead._asdict() for dead in status.dead],
        "bad": status.bad,
        "worker": status.worker or None,
        "problems": [problem.as_dict() for problem in status.problems],
    }
