"""Queries on the features of a project. Nothing here writes, and only plans are read under a lock."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.layouts.clock import believed, future_note
from sessionary.layouts.orchestrator import agreements, checking, names, planfile, reading, status, times
from sessionary.layouts.orchestrator.context import Context
from sessionary.layouts.orchestrator.feature import missing
from sessionary.layouts.orchestrator.history import chosen, read_history
from sessionary.layouts.orchestrator.indexfile import IndexFile
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem


class FeatureRow(NamedTuple):
    """One feature in a list.

    Attributes:
        feature_id: the id.
        status: ``active``, ``paused`` or ``completed``.
        state: task, model and times; None if it cannot be read.
        archived: True if the feature is in the archive.
        problems: why there is no state, or oddities of it.
    """

    feature_id: str
    status: str
    state: FeatureState | None
    archived: bool
    problems: list[Problem]


def find(context: Context, name: str, *, archived: bool) -> str:
    """The id of the feature that a name means; see `FeatureStore.find`."""
    with context.call("read", names.INDEX, None):
        archive = f"{context.root}/{names.ARCHIVE}"
        for home in (archive,) if archived else (context.root, archive):
            found = one_named(name, reading.feature_ids(context.fs, home), "features")
            if found is not None:
                return found
    rows = list_features(context, status=None, archived=archived) if name == LATEST else []
    for row in rows:
        if row.archived == archived:
            return row.feature_id
    raise missing(context.fs, f"{context.root}/{name}")


def load(context: Context, feature_id: str) -> FeatureState:
    """The state of a feature; see `FeatureStore.load`."""
    with context.call("read", names.STATE, feature_id):
        found = reading.read_state(context.fs, context.folder(feature_id))
        context.report.problems += found.problems
        if found.state is None:
            assert found.error is not None
            raise found.error
        return found.state


def plan(context: Context, feature_id: str) -> dict[str, Any]:
    """The plan of a feature; see `FeatureStore.plan`."""
    with context.call("read", names.PLAN, feature_id):
        folder = context.folder(feature_id)
        found = reading.read_plan(context.fs, folder, context.timeout)
        context.report.problems += found.problems
        return planfile.readable_plan(found, folder).document


def history(
    context: Context,
    feature_id: str,
    *,
    command: str | None,
    model: str | None,
    agent: str | None,
    since: datetime | str | None,
    failed: bool,
) -> list[dict[str, Any]]:
    """The matching entries of a history; see `FeatureStore.history`."""
    with context.call("read", names.HISTORY, feature_id):
        moment = None if since is None else times.moment_of("since", since)
        found = read_history(context.fs, f"{context.folder(feature_id)}/{names.HISTORY}")
        context.report.problems += list(checking.history_problems(found))
        filters = {"command": command, "model": model, "agent": agent}
        return list(chosen(found.values, **filters, since=moment, failed=failed))


def list_features(context: Context, *, status: str | None, archived: bool) -> list[FeatureRow]:
    """Every feature, newest first; see `FeatureStore.list_features`."""
    with context.call("read", names.INDEX, None):
        index = context.index.read()
        context.report.problems += index.problems
        rows = _rows(context, context.root, index, archived=False)
        if archived:
            rows += _rows(context, f"{context.root}/{names.ARCHIVE}", index, archived=True)
        rows = [row for row in rows if status in (None, row.status)]
        return sorted(rows, key=_newest, reverse=True)


def status_of(context: Context, feature_id: str) -> status.FeatureStatus:
    """The status of a feature; see `FeatureStore.status`."""
    with context.call("read", names.STATE, feature_id):
        folder = context.folder(feature_id)
        state = reading.read_state(context.fs, folder)
        plan = reading.read_plan(context.fs, folder, context.timeout)
        history = reading.history_of(context.fs, folder)
        index = context.index.read()
        counts, progress = status.counted_tasks(plan.tasks)
        head = plan.document.get("feature")
        head = head if isinstance(head, dict) else {}
        problems = [*state.problems, *plan.problems, *checking.history_problems(history)]
        context.report.problems += problems
        updated = state.state.last_updated if state.state else None
        return status.FeatureStatus(
            feature_id,
            head.get("name") if isinstance(head.get("name"), str) else None,
            head.get("description") if isinstance(head.get("description"), str) else None,
            reading.status_in(index, feature_id, history),
            state.state,
            status.health_of(updated, times.in_utc(context.now())),
            counts,
            progress,
            status.stats_of(history.values),
            status.artifacts_of(context.fs, folder),
            history.values[-status.LAST :],
            problems,
        )


def validate(context: Context, feature_id: str | None) -> list[Problem]:
    """The problems of one feature, or of all; see `FeatureStore.validate`."""
    with context.call("read", context.root, feature_id):
        ids = reading.feature_ids(context.fs, context.root) if feature_id is None else [feature_id]
        found = [
            problem for each in ids for problem in checking.feature_problems(context.fs, context.folder(each))
        ]
        for folder in map(context.folder, ids):
            state = reading.read_state(context.fs, folder).state
            updated = None if state is None else state.last_updated
            found += future_note("last_updated", updated, f"{folder}/{names.STATE}")
        if feature_id is None:
            found += checking.store_problems(
                context.fs, context.root, ids, context.index.read(), writable=_may_create(context)
            )
            found += agreements.stale(context)
        return found


def _rows(context: Context, home: str, index: IndexFile, *, archived: bool) -> list[FeatureRow]:
    rows = []
    for feature_id in reading.feature_ids(context.fs, home):
        folder = f"{home}/{feature_id}"
        state = reading.read_state(context.fs, folder)
        now = reading.status_of_feature(context.fs, folder, index, reading.history_of)
        rows.append(FeatureRow(feature_id, now, state.state, archived, state.problems))
    return rows


def _may_create(context: Context) -> bool:
    """True if a feature can be created: in the folder, or if it is missing, in its parent."""
    place = context.root if reading.is_folder(context.fs, context.root) else os.path.dirname(context.root)
    return os.access(place, os.W_OK | os.X_OK)


def _newest(row: FeatureRow) -> datetime:
    return believed(row.state.last_updated if row.state else None)
