"""The charts of a session: the times of its tools; its work sessions, score or board if its kind has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sessionary.errors import SessionaryError
from sessionary.escaping import harmless
from sessionary.export.wording import one_line
from sessionary.model import Summary
from sessionary.viewer.library import Library, Place, key_of
from sessionary.viewer.timelines import duration, score_curve, tool_timeline, work_timeline
from sessionary.workspace.family import Kin, descent, families

if TYPE_CHECKING:
    from sessionary.layouts.maestro.spans import WorkSpan
    from sessionary.layouts.orchestrator.board import FeatureBoard
    from sessionary.workspace import Workspace

_ENTRIES = 200
"""Entries of the history of a feature that are shown, the last ones."""

_LONGEST = 300
_FAMILIES = 40
"""Work sessions at the top that the overview draws."""

_NEWEST = 12
"""Brainstorms, and features, in the overview."""


def charts(library: Library, place: Place) -> dict[str, Any]:
    """The plots of a session, and its board if it is a feature.

    Raises:
        NotFound: it is gone.
        Corrupt, SchemaError, StorageFailed: it is damaged, or cannot be read.
    """
    workspace, ref = place
    plots = []
    if ref.kind == "work":
        found = next(_families(some) for other, some in library.by_workspace() if other is workspace)
        tops = [top for top in found if top.has(ref)]
        plots.append(("Work over time", work_timeline(tops, _spans(workspace, tops)), ""))
    elif ref.kind == "brainstorm":
        scores = workspace.scores(ref)
        words = "A hollow point was replaced by a branch." if any(one.superseded for one in scores) else ""
        plots.append(("EMS", score_curve(scores), words))
    plots.append(("Time of tools", *tool_timeline(workspace.tool_times(ref))))
    shown = [{"title": title, "svg": svg, "words": words} for title, svg, words in plots if svg]
    return {"plots": shown, "board": _board(workspace.board(ref)) if ref.kind == "feature" else None}


def of_projects(library: Library) -> dict[str, Any]:
    """The newest work sessions as one plot, the scores of the newest brainstorms, and the newest features.

    A session that cannot be read is left out here; the list shows its health.
    """
    tops: list[Kin] = []
    spans: dict[str, WorkSpan] = {}
    for workspace, summaries in library.by_workspace():
        found = _families(summaries)[:_FAMILIES]
        tops += found
        spans |= _spans(workspace, found)
    return {
        "work": work_timeline(tops, spans),
        "brainstorms": list(_each(library, "brainstorm", _brainstorm)),
        "features": list(_each(library, "feature", _feature)),
    }


def _families(summaries: list[Summary]) -> list[Kin]:
    return families(one for one in summaries if one.ref.kind == "work")


def _spans(workspace: Workspace, tops: list[Kin]) -> dict[str, WorkSpan]:
    """The times of work sessions, by their locators."""
    found = {}
    for top in tops:
        for kin, _ in descent(top):
            with suppress(SessionaryError):
                found[kin.ref.locator] = workspace.work_span(kin.ref)
    return found


def _each(
    library: Library, kind: str, shown: Callable[[Place, Summary], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for place, one in [pair for pair in library.known() if pair[1].ref.kind == kind][:_NEWEST]:
        with suppress(SessionaryError):
            title = one_line(one.title or one.ref.session_id)
            yield {"key": key_of(one.ref), "title": title, **shown(place, one)}


def _brainstorm(place: Place, one: Summary) -> dict[str, Any]:
    return {"svg": score_curve(place.workspace.scores(one.ref))}


def _feature(place: Place, one: Summary) -> dict[str, Any]:
    board = place.workspace.board(one.ref)
    status = board.status
    return {"status": one_line(status.status), "progress": status.progress, "locks": len(board.locks)}


def _board(board: FeatureBoard) -> dict[str, Any]:
    """A board as JSON, its texts harmless and cut."""
    status = board.status
    return {
        "name": one_line(status.name or status.feature_id),
        "description": harmless((status.description or "")[: 10 * _LONGEST]),
        "status": one_line(status.status),
        "progress": status.progress,
        "model": None if status.state is None else one_line(status.state.model_in_use),
        "active": None
        if status.state is None or status.state.active_task is None
        else one_line(status.state.active_task),
        "phases": [
            {"name": one_line(name), "tasks": list(map(_task, tasks))} for name, tasks in board.phases
        ],
        "history": [_entry(one) for one in reversed(board.history[-_ENTRIES:])],
        "earlier": max(len(board.history) - _ENTRIES, 0),
        "locks": [one._asdict() for one in board.locks],
        "problems": len(status.problems),
    }


def _task(task: dict[str, Any]) -> dict[str, Any]:
    artifacts = task.get("artifacts")
    names = ("task_id", "description", "agent", "status", "started_at", "completed_at")
    return {name: _words(task.get(name)) for name in names} | {
        "artifacts": [_words(one) for one in artifacts[:20]] if isinstance(artifacts, list) else []
    }


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("timestamp", "command", "arguments", "agent", "model", "task_id", "status", "error")
    found = {name: _words(entry.get(name)) for name in names}
    took = entry.get("duration_ms")
    return found | {
        "took": duration(took / 1000) if isinstance(took, int | float) and 0 <= took < 1e12 else ""
    }


def _words(value: Any) -> str:
    """A value of a file that may hold anything, on one line."""
    return "" if value is None else one_line(value if isinstance(value, str) else str(value), _LONGEST)
