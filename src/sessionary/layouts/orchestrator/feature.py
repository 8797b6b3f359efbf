"""An open feature: its lock, its history, its cached plan.

An operation is a line of the history. It is written and flushed first; then its effect is applied: the plan,
the row of the list, the state, in this order. So if the state is older than the last line of ours, an
operation was interrupted, and the next holder of the lock finishes it (`settle`) from the data in the line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from sessionary.codec import decode_object
from sessionary.codec.yaml_edit import edit_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, descriptor, stat_or_none, storage_errors
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.line_reader import LineFile
from sessionary.disk.lock import FileLock
from sessionary.disk.pid_file import PidFile
from sessionary.errors import Corrupt, NotFound, SessionaryError, StorageFailed
from sessionary.layouts.orchestrator import entries, names, planfile, rules, statefile
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.replay import operations_back
from sessionary.layouts.orchestrator.times import parse, stamp

LOOK_BACK = 256
"""Maximum number of lines after the last one of ours for which the next writer still finds it."""


class Feature:
    """One feature, open in this process.

    Attributes:
        lock: the kernel lock on `.sessionary.lock`; every writer holds it.
        script_lock: the lock of the contract's scripts, `.state.lock`; held along with `lock`.
        finished: the operation of a killed writer that was finished when the lock was last taken, or None.
    """

    def __init__(self, fs: Fs, folder: str, index: Index, now: Callable[[], datetime]) -> None:
        self.fs = fs
        self.folder = folder
        self.feature_id = os.path.basename(folder)
        self.index = index
        self.lock = FileLock(f"{folder}/{names.LOCK}", fs)
        self.script_lock = PidFile(f"{folder}/{names.SCRIPT_LOCK}", fs)
        self.journal = Journal(f"{folder}/{names.HISTORY}", Tail.SEAL, fs=fs, now=now)
        self._now = now
        self.finished: str | None = None
        self._settled = -1
        self._plan: tuple[tuple[int, ...], planfile.PlanFile] | None = None

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold both locks for a ``with`` block; an interrupted operation is finished first.

        Raises:
            NotFound: the feature does not exist.
            Locked: another process held one of them for all of `timeout` seconds, or a script was killed holding it.
        """
        began = time.monotonic()
        try:
            self.lock.acquire(timeout)
        except FileNotFoundError:
            listed = self.feature_id in self.index.read().rows
            raise missing(self.fs, self.folder, listed=listed) from None
        try:
            self.script_lock.acquire(timeout - (time.monotonic() - began), self._now)
            try:
                self.settle()
                yield
            finally:
                self.script_lock.release()
        finally:
            self.lock.release()

    def moved(self, target: str) -> None:
        """Mark the folder as moved, so that the lock file that moved along is removed there."""
        self.script_lock.path = f"{target}/{names.SCRIPT_LOCK}"

    def state(self) -> statefile.StateFile:
        """The current state. Raises as `statefile.read_state`."""
        return statefile.read_state(self.fs, self.folder)

    def plan(self) -> planfile.PlanFile:
        """The current plan, read again only if the file has changed. The caller holds the lock."""
        found = stat_or_none(self.fs, f"{self.folder}/{names.PLAN}")
        identity = found and (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if identity is None or self._plan is None or self._plan[0] != identity:
            plan = planfile.read_plan(self.fs, self.folder)
            if plan.error is not None:
                raise plan.error
            self._plan = identity or (), plan
        return self._plan[1]

    # -- operations

    def perform(self, entry: dict[str, Any], state: statefile.StateFile) -> None:
        """Log an operation, then apply it. The caller holds the lock.

        Durability: the line is flushed before anything else is changed. If this does not return, the
        operation is either missing, or the next writer finishes it; never partial.

        Raises:
            StorageFailed: ``not_committed`` if it will have no effect; else ``unknown``.
        """
        self.journal.append(entries.line_of(entry), self.journal.look())
        self.journal.flush()
        applied: list[str] = []
        try:
            self._apply(entry, state, applied)
        except SessionaryError as error:
            self._take_back(entry, error, applied)
            raise
        self._settled = self.journal.size

    def log(self, entry: Mapping[str, Any]) -> None:
        """Append a line that changes nothing. The caller holds the lock, and flushes the journal after releasing it."""
        self.journal.append(entries.line_of(entry), self.journal.look())
        self._settled = self.journal.size

    def settle(self) -> None:
        """Finish an interrupted operation, if there is one. The caller holds the lock."""
        self.finished = None
        found = self.journal.look()
        if found is None or found.st_size == self._settled:
            return
        operation = self._last_operation()
        if operation is not None:
            try:
                state = self.state()
            except (NotFound, Corrupt, ValueError):
                return  # an unreadable file is not overwritten here, but by `repair`, which keeps it
            at, known = parse(operation["timestamp"]), state.state.last_updated
            if at is not None and (known is None or known < at):
                # Its line is made durable before its effect: the writer may have been killed in between.
                with storage_errors("flush", self.journal.path), descriptor(self.fs, self.journal.path) as fd:
                    self.fs.fdatasync(fd)
                self._apply(operation, state, [])
                self.finished = f"{operation.get('command')} of {operation['timestamp']}"
        self._settled = found.st_size

    def _last_operation(self) -> dict[str, Any] | None:
        """The last line of ours, searched from the end of the history."""
        with LineFile(self.journal.path, self.fs) as file:
            heads = islice(file.heads_back(width=0), LOOK_BACK)
            lines = (_entry(file.read(head.byte, head.length)) for head in heads)
            return next(operations_back(entry for entry in lines if entry is not None), None)

    def _apply(self, entry: Mapping[str, Any], state: statefile.StateFile, applied: list[str]) -> None:
        """Apply an operation, and return which effects exist. Idempotent."""
        if entry.get(entries.TASK_STATUS) in rules.TASK_STATUSES and self._apply_task(entry):
            applied.append(names.PLAN)
        status = entry.get(entries.FEATURE_STATUS)
        if status in rules.FEATURE_STATUSES:
            began = stamp(state.state.started_at) if state.state.started_at else entry["timestamp"]
            self.index.put(self.feature_id, {"last_active": entry["timestamp"], "status": status}, began)
            applied.append(names.INDEX)
        current, wanted = state.document[statefile.CURRENT], entry[entries.STATE]
        changes = {
            name: wanted[name]
            for name in ("active_task", "model_in_use")
            if name in wanted and (name not in current or wanted[name] != current[name])
        }
        self.write_state(statefile.changed_state(state, {**changes, "last_updated": entry["timestamp"]}))

    def write_state(self, data: bytes) -> None:
        """Replace the state file."""
        atomic.replace(f"{self.folder}/{names.STATE}", (data,), fs=self.fs)

    def write_plan(self, found: planfile.PlanFile, document: dict[str, Any]) -> None:
        """Replace the plan; comments are kept."""
        data = dump_yaml(document) if found.data is None else edit_yaml(found.data, document)
        if data != found.data:
            atomic.replace(f"{self.folder}/{names.PLAN}", (data,), fs=self.fs)
        self._plan = None

    def _apply_task(self, entry: Mapping[str, Any]) -> bool:
        plan = self.plan()
        task = plan.tasks.get(str(entry.get("task_id")))
        if task is None:
            return False
        changes: dict[str, Any] = {}
        if task.get("status") != entry[entries.TASK_STATUS]:
            at = parse(entry["timestamp"]) or self._now()
            changes = rules.moved_task(task, entry[entries.TASK_STATUS], at)
        artifacts = with_artifacts(task, entry.get("artifacts", ()))
        if artifacts != task.get("artifacts"):
            changes["artifacts"] = artifacts
        if changes:
            self.write_plan(plan, planfile.with_task(plan.document, entry["task_id"], changes))
        return bool(changes)

    def _take_back(self, entry: Mapping[str, Any], error: SessionaryError, applied: list[str]) -> None:
        """Log that an operation failed, so that it is not finished if it had no effect.

        If logging fails too, the outcome is unknown: the line remains as an operation to finish.
        """
        stored = bool(applied) or (isinstance(error, StorageFailed) and error.outcome != "not_committed")
        failure = {name: entry.get(name) for name in entries.FIELDS if name != "error"}
        failure |= {"status": entries.FAILURE, "error": error.message}
        if not stored:
            failure[entries.REVOKES] = entry["timestamp"]
        try:
            self.journal.append(entries.line_of(failure), self.journal.look())
            self.journal.flush()
        except StorageFailed:
            stored = True
        if stored:
            self._settled = -1
            if isinstance(error, StorageFailed):
                error.outcome = "unknown"
                error.details["stored"] = [names.HISTORY, *applied]


def with_artifacts(task: Mapping[str, Any], more: Any) -> list[Any]:
    """The artifacts of a task, extended by new ones."""
    stored = task.get("artifacts")
    stored = list(stored) if isinstance(stored, list) else []
    return stored + [name for name in dict.fromkeys(more) if name not in stored]


def missing(fs: Fs, folder: str, *, listed: bool = False) -> NotFound:
    """The error for a missing feature; `listed` if its row exists."""
    home, feature_id = os.path.split(folder)
    archived = f"{home}/{names.ARCHIVE}/{feature_id}"
    hint = "`sessionary feature list` lists all"
    if listed:
        hint = (
            "it is in the list, but its folder is missing: restore it; "
            "or `sessionary feature repair --rebuild-index` removes the row"
        )
    if stat_or_none(fs, archived) is not None:
        hint = f"it is archived; `sessionary feature unarchive {feature_id}` restores it"
    return NotFound(f"No feature {feature_id}", path=folder, session=feature_id, hint=hint)


def _entry(raw: bytes) -> dict[str, Any] | None:
    if b'"state"' not in raw and b'"revokes"' not in raw:
        return None
    return decode_object(raw)
