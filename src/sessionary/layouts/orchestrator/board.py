"""A feature as a board: its status, the phases of its plan with their tasks, its history, and who holds its locks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sessionary.disk.fs import Fs, not_found, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.disk.pid_file import read_holder
from sessionary.errors import Locked
from sessionary.layouts.orchestrator import names, planfile
from sessionary.layouts.orchestrator.history import read_history
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.status import FeatureStatus, status_of


class HeldLock(NamedTuple):
    """A lock of a feature that a process holds or has left.

    Attributes:
        file: its name: ``.sessionary.lock``, or ``.state.lock`` of the contract's scripts.
        pid: the process; None if it is unknown.
        since: when it was taken (UTC); None if it is unknown.
        running: False if the process has ended, so that the lock is left over.
    """

    file: str
    pid: int | None
    since: datetime | None
    running: bool


@dataclass(frozen=True, slots=True)
class FeatureBoard:
    """A feature with its plan and its history.

    Attributes:
        status: its status, and the problems of its files.
        phases: the name of each phase with its tasks, in the order of the plan; tasks as in the file.
        history: the readable entries, in the order of the file.
        locks: the locks that are held.
    """

    status: FeatureStatus
    phases: list[tuple[str, list[dict[str, Any]]]]
    history: list[dict[str, Any]]
    locks: list[HeldLock]


def board_of(fs: Fs, folder: str, now: datetime) -> FeatureBoard:
    """The board of the feature in a folder. Waits for no lock. Raises NotFound if the folder is gone."""
    if stat_or_none(fs, folder) is None:
        raise not_found(folder, f"No feature {os.path.basename(folder)}")
    plan, history = planfile.read_plan(fs, folder), read_history(fs, folder)
    index = Index(fs, os.path.dirname(folder), 0.0).read()
    return FeatureBoard(
        status_of(fs, folder, plan, index, now, history),
        [
            (str(phase.get("name") or phase.get("phase_id") or "?"), maps_in(phase.get("tasks")))
            for phase in maps_in(plan.document.get("phases"))
        ],
        history.values,
        list(_locks(fs, folder)),
    )


def maps_in(value: Any) -> list[dict[str, Any]]:
    """The maps of a list in a plan, which may hold anything."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _locks(fs: Fs, folder: str) -> Iterator[HeldLock]:
    path = f"{folder}/{names.LOCK}"
    if stat_or_none(fs, path) is not None and os.access(path, os.W_OK):
        try:
            with FileLock(path, fs).once(0.0, exclusive=False):
                pass
        except Locked as error:
            yield HeldLock(names.LOCK, error.details.get("pid"), _time(error.details.get("since")), True)
    holder = read_holder(f"{folder}/{names.SCRIPT_LOCK}", fs)
    if holder is not None:
        since = datetime.fromtimestamp(holder.since, UTC)
        yield HeldLock(names.SCRIPT_LOCK, holder.pid, since, holder.running)


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError):
        return None
