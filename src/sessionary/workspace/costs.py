"""Tokens and cost of model responses, from the event logs of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sessionary.codec.times import parse_time
from sessionary.disk.fs import Fs
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.event_reader import RESPONSE, EventReader, Usage
from sessionary.model import SessionRef

_FIELDS = ("ts", "parent_session_id", "data.model", "data.usage")


@dataclass(slots=True)
class Costs:
    """Tokens and cost of model responses.

    Attributes:
        models: by model; None for responses that name none.
        projects: by project; None for sessions without one.
        days: by local day (``2026-03-14``); None for responses without a time.
        total: all of it.
        logs: the number of event logs that were read.
        copied: the number of responses that a fork copied from its parent; they are counted there.
        problems: the number of damaged places in the logs, and of logs in `failures`.
        failures: the logs that could not be read to their end.
    """

    models: dict[str | None, Usage] = field(default_factory=dict)
    projects: dict[str | None, Usage] = field(default_factory=dict)
    days: dict[str | None, Usage] = field(default_factory=dict)
    total: Usage = field(default_factory=Usage)
    logs: int = 0
    copied: int = 0
    problems: int = 0
    failures: list[StorageFailed] = field(default_factory=list)


def costs(
    refs: list[SessionRef],
    fs: Fs,
    *,
    since: datetime | None,
    until: datetime | None,
    passed: Callable[[], object],
) -> Costs:
    """Read the event logs of sessions; see `Workspace.costs`."""
    found = Costs()
    known = {ref.session_id for ref in refs}
    for ref in refs:
        reader = EventReader(ref.locator, fs)
        try:
            responses = reader.fields(_FIELDS, event=RESPONSE, since=since, until=until)
            _add_log(found, responses, ref, known)
        except NotFound:
            continue
        except StorageFailed as error:
            found.failures.append(error)
            found.problems += 1
        found.logs += 1
        found.problems += len(reader.problems)
        passed()
    return found


def _add_log(costs: Costs, responses: Iterable[dict[str, Any]], ref: SessionRef, known: set[str]) -> None:
    for one in responses:
        parent = one.get("parent_session_id")
        if isinstance(parent, str) and parent in known and parent != ref.session_id:
            costs.copied += 1
            continue
        model, time, usage = one.get("data.model"), parse_time(one.get("ts")), one.get("data.usage")
        costs.total.add(usage)
        for table, key in (
            (costs.models, model if isinstance(model, str) else None),
            (costs.projects, ref.project),
            (costs.days, f"{time.astimezone():%Y-%m-%d}" if time else None),
        ):
            table.setdefault(key, Usage()).add(usage)
