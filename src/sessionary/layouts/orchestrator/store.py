"""FeatureStore: the features of one project, following the orchestrator's contract.

Every write of a feature is an operation: a line of its history, flushed, and then its effect (see `feature`). Every
error has the details that the contract requires, in `error_context`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from sessionary.codec.times import in_utc
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, is_folder, stat_or_none
from sessionary.errors import (
    AlreadyExists,
    Invalid,
    NotFound,
    SchemaError,
    SessionaryError,
    StorageFailed,
    TransitionError,
)
from sessionary.layouts.clock import future_note
from sessionary.layouts.orchestrator import (
    acknowledgment,
    checking,
    creating,
    entries,
    names,
    planfile,
    reading,
    repairing,
    rules,
    status,
)
from sessionary.layouts.orchestrator.acknowledgment import Verdict
from sessionary.layouts.orchestrator.call_report import Report, error_context
from sessionary.layouts.orchestrator.feature import Feature, missing, with_artifacts
from sessionary.layouts.orchestrator.history import chosen, read_history
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.repairing import Repaired
from sessionary.layouts.orchestrator.statefile import CURRENT, FeatureState, StateFile
from sessionary.layouts.orchestrator.status import FeatureRow, FeatureStatus, rows_of
from sessionary.layouts.orchestrator.times import later, moment_of, parse, stamp
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem

TIMEOUT: Final = 5.0
OPEN_FEATURES: Final = 32
DEFAULT_AGENT: Final = "sessionary"
TOUCH_EVERY: Final = timedelta(minutes=1)
"""Least time between two updates of `last_active` of a feature in the list."""


class _Keep:
    """Marks a parameter that was not given."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final[Any] = _Keep()


class FeatureStore:
    """The features of one project.

    Args:
        root: the project folder, which contains `.ai-session`; or that folder itself. The first `create` makes it.
        timeout: seconds to wait for another process that holds a feature or the list.
        agent: the agent for the history; `update` and similar calls can override it.
        require_ack: the contract file that an agent must have acknowledged before it may write.

    Attributes:
        home: the folder `.ai-session`.
        last_report: notes of the last call besides its return value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT,
        agent: str = DEFAULT_AGENT,
        require_ack: str | os.PathLike[str] | None = None,
    ) -> None:
        place = Path(os.path.abspath(expanded(root)))
        self.home: Path = place if place.name == names.HOME else place / names.HOME
        self.timeout = timeout
        self.agent = agent
        self.last_report: Report = Report()
        self._require_ack = None if require_ack is None else os.fspath(require_ack)
        self._root = os.path.realpath(self.home)
        self._touched: dict[str, datetime] = {}
        self._open(OS_FS, lambda: datetime.now(UTC))

    def _open(self, fs: Fs, now: Callable[[], datetime]) -> None:
        self._fs = fs
        self._now = now
        self._index = index = Index(fs, self._root, self.timeout)
        # The last ones used, so that their files stay open between calls; they are closed with the last reference.
        self._feature = lru_cache(OPEN_FEATURES)(lambda folder: Feature(fs, folder, index, now))

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        root: str | os.PathLike[str],
        *,
        now: Callable[[], datetime] | None = None,
        **settings: Any,
    ) -> Self:
        """A store over another file system or clock, for tests."""
        store = cls(root, **settings)
        store._open(fs, now or store._now)
        return store

    def _call(self, operation: str, file: str, feature_id: str | None) -> AbstractContextManager[None]:
        """Begin a call: an empty report, and a block whose errors name the operation and the file."""
        self.last_report = Report(operation, feature_id)
        return error_context(self._root, operation, file, feature_id)

    @contextmanager
    def _writing(self, feature_id: str, agent: str | None, file: str = names.STATE) -> Iterator[Feature]:
        """A feature under its lock, for a write; errors name `file` unless they name another."""
        with self._call("update", file, feature_id):
            names.check_id(feature_id)
            self._check_acknowledged(agent)
            feature = self._feature(f"{self._root}/{feature_id}")
            with feature.held(self.timeout):
                yield feature

    def _report(self, problems: Iterable[Problem]) -> None:
        self.last_report.problems += problems

    # -- reading

    def find(self, name: str, *, archived: bool = False) -> str:
        """The id of the feature that a name means: its id or the beginning of that in any case, or ``latest``.

        A whole id wins, and a feature in place over one in the archive. ``latest`` is the one that changed
        last; a feature with that id wins. With `archived` only the archive is searched.

        Raises:
            NotFound: none matches.
            AmbiguousId: several match.
        """
        with self._call("read", names.INDEX, None):
            archive = f"{self._root}/{names.ARCHIVE}"
            for home in (archive,) if archived else (self._root, archive):
                found = one_named(name, reading.feature_ids(self._fs, home), "features")
                if found is not None:
                    return found
        rows = self.list_features(archived=archived) if name == LATEST else []
        for row in rows:
            if row.archived == archived:
                return row.feature_id
        raise missing(self._fs, f"{self._root}/{name}")

    def load(self, feature_id: str) -> FeatureState:
        """The state of a feature; oddities are in `last_report`. Takes no lock.

        Raises:
            NotFound: the feature or its state does not exist.
            Corrupt, SchemaError: the state cannot be read; `repair` restores it.
            Unsupported: it has a newer version.
        """
        with self._call("read", names.STATE, feature_id):
            found = reading.read_state(self._fs, self._folder(feature_id))
            self._report(found.problems)
            if found.error is not None:
                raise found.error
            assert found.state is not None
            return found.state

    def plan(self, feature_id: str) -> dict[str, Any]:
        """The plan of a feature, read under a shared lock; ``{}`` if there is none. Problems are in `last_report`.

        Raises:
            NotFound: the feature does not exist.
            Corrupt: the plan exists but cannot be read.
            Locked: a writer held the feature for the whole time.
        """
        with self._call("read", names.PLAN, feature_id):
            folder = self._folder(feature_id)
            found = planfile.read_plan(self._fs, folder, self.timeout)
            self._report(found.problems)
            return planfile.readable_plan(found, folder).document

    def history(
        self,
        feature_id: str,
        *,
        command: str | None = None,
        model: str | None = None,
        agent: str | None = None,
        since: datetime | str | None = None,
        failed: bool = False,
    ) -> list[dict[str, Any]]:
        """The entries that match all filters, in file order. Skipped lines are reported in `last_report`.

        Raises:
            NotFound: the feature does not exist.
            Invalid: `since` is not a time.
        """
        with self._call("read", names.HISTORY, feature_id):
            moment = None if since is None else moment_of("since", since)
            found = read_history(self._fs, self._folder(feature_id), strict=True)
            self._report(checking.history_problems(found))
            filters = {"command": command, "model": model, "agent": agent}
            return list(chosen(found.values, **filters, since=moment, failed=failed))

    def list_features(self, *, status: str | None = None, archived: bool = False) -> list[FeatureRow]:
        """Every feature, the one that changed last first; with `archived` also those in the archive.

        The folders are authoritative: the list on disk only holds whether a feature is paused or completed.
        If it cannot be read, `last_report` says so, and the histories are used.
        """
        with self._call("read", names.INDEX, None):
            index = self._index.read()
            self._report(index.problems)
            rows = rows_of(self._fs, self._root, index, archived=archived)
            return [row for row in rows if status in (None, row.status)]

    def status(self, feature_id: str) -> FeatureStatus:
        """The status of a feature: progress, health, counts per command and model, failures, durations.

        Raises:
            NotFound: the feature does not exist.
            Locked: a writer held it for the whole time (plans are read under a shared lock).
        """
        with self._call("read", names.STATE, feature_id):
            folder = self._folder(feature_id)
            plan = planfile.read_plan(self._fs, folder, self.timeout)
            found = status.status_of(self._fs, folder, plan, self._index.read(), in_utc(self._now()))
            self._report(found.problems)
            return found

    def validate(self, feature_id: str | None = None) -> list[Problem]:
        """All problems of one feature, or of all features and their folder. Reads only.

        Raises:
            NotFound: the feature does not exist.
        """
        with self._call("read", self._root, feature_id):
            ids = reading.feature_ids(self._fs, self._root) if feature_id is None else [feature_id]
            folders = [self._folder(each) for each in ids]
            found = [problem for folder in folders for problem in checking.feature_problems(self._fs, folder)]
            for folder in folders:
                state = reading.read_state(self._fs, folder).state
                found += future_note("last_updated", state and state.last_updated, f"{folder}/{names.STATE}")
            if feature_id is None:
                found += checking.store_problems(
                    self._fs, self._root, ids, self._index.read(), writable=self._may_create()
                )
                found += acknowledgment.stale(self._fs, self._root, self._require_ack)
            return found

    def _may_create(self) -> bool:
        """True if a feature can be created: in the folder, or if it is missing, in its parent."""
        place = self._root if is_folder(self._fs, self._root) else os.path.dirname(self._root)
        return os.access(place, os.W_OK | os.X_OK)

    def _folder(self, feature_id: str) -> str:
        """The folder of a feature, possibly in the archive. Raises NotFound."""
        folder = reading.folder_of(self._fs, self._root, names.check_id(feature_id))
        if folder is None:
            listed = feature_id in self._index.read().rows
            raise missing(self._fs, f"{self._root}/{feature_id}", listed=listed)
        return folder

    # -- state, plan, tasks and history

    def update(
        self,
        feature_id: str,
        *,
        active_task: str | None = KEEP,
        model_in_use: str = KEEP,
        arguments: str | None = None,
        agent: str | None = None,
        command: str = "update-state",
        last_updated: datetime | str | None = None,
    ) -> FeatureState:
        """Set some fields of the state and log it, even if nothing changes. Return the new state.

        Other fields keep the values that they have when the lock is taken, so of two writers of one field the
        later one wins, and writers of different fields do not undo each other. ``last_updated`` always
        increases: if the clock stands still or goes back, it is the old time plus a microsecond.

        Durability: the line of the history is on disk before the state is changed; when this returns, the
        state is too. If it raises ``not_committed``, nothing has changed, and the history records the
        failure.

        Raises:
            NotFound: the feature does not exist.
            SchemaError: an unknown model; a task that the plan does not have; a time older than the stored
            one, or more than a day in the future; a command, arguments or an agent that are not text.
            TransitionError: the task is completed or blocked.
            Corrupt: the state cannot be read; `repair` restores it.
            Locked, StorageFailed: as everywhere.
        """
        given = {"active_task": active_task, "model_in_use": model_in_use}
        given = {name: value for name, value in given.items() if value is not KEEP}
        with self._writing(feature_id, agent) as feature:
            if not entries.is_task_id(given.get("active_task")):
                raise SchemaError(
                    f"active_task is {active_task!r}",
                    faults=["active_task: give the id of a task, on one line, or None"],
                    hint="nothing was written",
                )
            if "model_in_use" in given:
                rules.check_word("model_in_use", model_in_use, rules.MODELS)
            state = self._state_of(feature)
            if given.get("active_task") is not None:
                self._check_task(feature, given["active_task"])
            at = self._moment(state, last_updated)
            words = " ".join(f"{name}={value}" for name, value in given.items())
            entry = self._entry(state, at, command, words if arguments is None else arguments, agent, given)
            feature.perform(entry, state)
            self._touch(feature, state, at)
            current = entry[entries.STATE]
            task, model = current["active_task"], current["model_in_use"]
            return FeatureState(feature_id, task, model, state.state.started_at, at)

    def save_plan(
        self,
        feature_id: str,
        phases: Sequence[dict[str, Any]],
        *,
        name: str | None = None,
        description: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Replace the phases of the plan, and optionally its name and description; return the plan.

        Tasks need an id; other missing fields are filled in, and missing progress is taken from the old plan.
        Only `task` changes the progress of a task. Comments and unknown keys are kept. A plan that is not
        valid YAML, or not a map, is kept as ``implementation-plan.yaml.corrupt-<time>`` and replaced.

        Durability: the plan is the old one or the new one. When this returns, the new one and its line of the
        history survive a power cut. The plan is replaced before its line is written: if interrupted in
        between, it is stored without being logged.

        Raises:
            SchemaError: with all faults at once.
            NotFound, Corrupt, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, agent, names.PLAN) as feature:
            state = self._state_of(feature)
            old = feature.plan()
            blank = planfile.new_plan(feature_id, feature_id, "", self._now())["feature"]
            head = {"name": name, "description": description}
            document = planfile.replanned(
                old, phases, blank, {k: v for k, v in head.items() if v is not None}
            )
            tasks = planfile.tasks_of(document)
            rules.check_active_task(state.state.active_task, tasks)
            words = f"phases={len(phases)} tasks={len(tasks)}"
            self._write_plan(feature, old, document, "plan", words, agent)
            return document

    def set_name(self, feature_id: str, name: str, *, agent: str | None = None) -> str | None:
        """Set the name of a feature in its plan; return the one that it had. An equal name writes nothing.

        Durability: as `save_plan`.

        Raises:
            Invalid: the name is empty.
            Corrupt: the plan cannot be read; `repair` restores it.
            NotFound, Locked, StorageFailed: as `update`.
        """
        if not name.strip():
            raise Invalid(
                "the name is empty", operation="update", hint="give a name, or the id of the feature"
            )
        with self._writing(feature_id, agent, names.PLAN) as feature:
            old = planfile.readable_plan(feature.plan(), feature.folder)
            before = old.head.get("name")
            if before != name:
                blank = planfile.new_plan(feature_id, name, "", self._now())
                self._write_plan(feature, old, planfile.renamed(old, name, blank), "rename", name, agent)
            return before if isinstance(before, str) else None

    def _write_plan(
        self, feature: Feature, old: planfile.PlanFile, document: dict[str, Any], *logged: Any
    ) -> None:
        """Store a plan, then its line of the history: command, arguments, agent. The caller holds the lock."""
        state = self._state_of(feature)
        at = self._moment(state)
        entry = self._entry(state, at, *logged)
        if not old.readable:
            path = f"{feature.folder}/{names.PLAN}"
            kept = atomic.quarantine(path, "corrupt", fs=self._fs, now=self._now())
            note = "the plan could not be read; it is kept here"
            self._report([rules.note("plan_replaced", kept, note, None)])
            old = old._replace(data=None)
        feature.write_plan(old, document)
        try:
            feature.perform(entry, state)
        except StorageFailed as error:
            # The line cannot hold a plan, so the plan comes first here: it is stored, whatever happens
            # to the line.
            error.outcome = "unknown"
            error.details["stored"] = [names.PLAN, *error.details.get("stored", ())]
            raise
        self._touch(feature, state, at)

    def task(
        self,
        feature_id: str,
        task_id: str,
        status: str,
        *,
        artifacts: Iterable[str] = (),
        reopen: bool = False,
        agent: str | None = None,
    ) -> bool:
        """Set the status of a task, and add artifacts to it. False if nothing changed; then nothing is logged.

        Entering ``in_progress`` for the first time sets ``started_at``, completing sets ``completed_at``,
        reopening clears it. A completed or blocked task is no longer the active one.

        Durability: as `update`; the plan is replaced before the state.

        Raises:
            NotFound: the feature or the task does not exist.
            TransitionError: the transition is not allowed; reopening a completed task needs `reopen`.
            SchemaError, Corrupt, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, agent, names.PLAN) as feature:
            task = planfile.task_in(feature.plan(), feature.folder, task_id)
            added = [artifacts] if isinstance(artifacts, str) else list(artifacts)
            if not all(isinstance(name, str) for name in added):
                raise SchemaError("artifacts are names of files", faults=["artifacts: give texts"])
            old = str(task.get("status"))
            moves = rules.task_moves(task_id, old, status, feature=feature_id, reopen=reopen)
            if not moves and with_artifacts(task, added) == (task.get("artifacts") or []):
                return False
            state = self._state_of(feature)
            ends = state.state.active_task == task_id and status in (rules.COMPLETED, rules.BLOCKED)
            at = self._moment(state)
            given = {"active_task": None} if ends else {}
            entry = self._entry(state, at, "task", f"{task_id} {status}", agent, given)
            entry |= {"task_id": task_id, entries.TASK_STATUS: status}
            if added:
                entry["artifacts"] = added
            feature.perform(entry, state)
            self._touch(feature, state, at)
            return True

    def append(self, feature_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry to the history; return it as written. The state does not change.

        Only ``command`` is required. Time, agent, model and task default to clock, store and state.

        Durability: when this returns, the line survives a power cut.

        Raises:
            SchemaError: the entry breaks the contract; `details["faults"]` lists every fault.
            NotFound, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, entry.get("agent"), names.HISTORY) as feature:
            fill: dict[str, Any] = {"agent": self.agent, "task_id": None}
            if "model" not in entry or "task_id" not in entry:
                state = reading.read_state(self._fs, feature.folder).state
                if state is not None:
                    fill = {"model": state.model_in_use, **fill, "task_id": state.active_task}
            made = entries.checked(entry, now=self._now(), fill=fill)
            moment_of("timestamp", made["timestamp"], self._now())
            feature.log(made)
        with self._call("update", names.HISTORY, feature_id):
            feature.journal.flush()
        return made

    def _entry(
        self,
        state: StateFile,
        at: datetime,
        command: str,
        arguments: str,
        agent: str | None,
        given: Mapping[str, Any] = {},
    ) -> dict[str, Any]:
        """The line of an operation, with the resulting state.

        Raises:
            SchemaError: a value that the caller gave breaks the contract.
        """
        now = state.state
        current = {"active_task": now.active_task, "model_in_use": now.model_in_use, **given}
        made = entries.operation(at, command, arguments, agent or self.agent, current)
        if faults := entries.faults_of(made):
            path = f"{self._root}/{now.feature_id}/{names.HISTORY}"
            raise SchemaError("; ".join(faults), faults=faults, path=path, hint="nothing was written")
        made[entries.STATE] = {**current, "started_at": state.document[CURRENT].get("started_at")}
        return made

    def _moment(self, state: StateFile, asked: datetime | str | None = None) -> datetime:
        """The time of a change: always after the stored one, whatever the clock."""
        stored, now = state.state.last_updated, in_utc(self._now())
        if asked is not None:
            moment = moment_of("last_updated", asked, now)
            if stored is not None and moment <= stored:
                raise SchemaError(
                    f"last_updated {stamp(moment)} is not after the stored {stamp(stored)}",
                    faults=["last_updated: times only increase"],
                    hint="omit it to use the clock",
                )
            return moment
        if stored is not None and now < stored:
            words = f"the clock, {stamp(now)}, is before the stored {stamp(stored)}"
            path = f"{self._root}/{state.state.feature_id}/{names.STATE}"
            self._report([rules.note("clock_went_back", path, words, "set the clock")])
        return later(now, stored)

    def _state_of(self, feature: Feature) -> StateFile:
        state = feature.state()
        self._report(state.problems)
        return state

    def _check_task(self, feature: Feature, task_id: str | None) -> None:
        plan = feature.plan()
        rules.check_active_task(task_id, plan.tasks)
        if not plan.tasks:
            path = f"{feature.folder}/{names.PLAN}"
            self._report(checking.active_task_problems(path, task_id, plan.tasks))

    def _touch(self, feature: Feature, state: StateFile, at: datetime) -> None:
        """Update `last_active` in the list, at most once a minute. A failure is reported, not raised.

        The state is already stored, and reads derive the exact time from it.
        """
        feature_id = feature.feature_id
        last = self._touched.get(feature_id)
        if last is not None and timedelta(0) <= at - last < TOUCH_EVERY:
            return
        self._touched[feature_id] = at
        try:
            with self._index.held():
                found = self._index.load()
                known = parse(found.rows.get(feature_id, {}).get("last_active"))
                if known is None or not timedelta(0) <= at - known < TOUCH_EVERY:
                    began = stamp(state.state.started_at or at)
                    self._index.put_locked(found, feature_id, {"last_active": stamp(at)}, began)
        except (SessionaryError, FileNotFoundError) as error:
            words = f"last_active of {feature_id} was not written: {error}"
            self._report([rules.note("row_not_written", self._index.path, words, None)])

    # -- the feature as a whole

    def create(
        self,
        feature_id: str | None = None,
        *,
        name: str | None = None,
        description: str = "",
        agent: str | None = None,
    ) -> str:
        """Create a feature: its folder with plan, empty history, state and artifacts, and its row in the list.

        Without an id one is made from the name and today's date; if it is taken, with a number before the date.

        Durability: when this returns, everything survives a power cut. If it raises ``not_committed``, the
        feature does not exist; if only the list could not be written, the folder is in
        `.archive/.failed-<id>`. A crash before the list is written leaves the complete feature without its
        row, which `validate` reports and `repair` adds.

        Raises:
            InvalidId: the id does not have the form of the contract; or neither an id nor a usable name was given.
            AlreadyExists: a feature with this id exists or existed.
            Conflict, Corrupt: the list must not be overwritten; nothing was created.
            Locked, StorageFailed: as everywhere.
        """
        with self._call("create", self._root, feature_id):
            self._check_acknowledged(agent)
            if feature_id is not None:
                names.check_new_id(feature_id)
            new = creating.New(feature_id, name or feature_id or "", description, self._now())
            self.last_report.feature_id = made = creating.create(self._fs, self._index, new)
            return made

    def pause(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Pause a feature. False if it is paused already.

        Durability: as `update`; the list is replaced before the state.

        Raises:
            TransitionError: it is completed.
            Conflict, Corrupt: the list must not be overwritten; nothing was done.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return self._move(feature_id, "pause", rules.PAUSED, agent)

    def resume(self, feature_id: str, *, reopen: bool = False, agent: str | None = None) -> bool:
        """Resume a paused feature, or with `reopen` a completed one. As `pause`."""
        return self._move(feature_id, "resume", rules.ACTIVE, agent, reopen=reopen)

    def complete(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Mark a feature as completed. As `pause`."""
        return self._move(feature_id, "complete", rules.COMPLETED, agent)

    def _move(
        self, feature_id: str, command: str, status: str, agent: str | None, *, reopen: bool = False
    ) -> bool:
        """Set the status of a feature; False if it has that already."""
        with self._writing(feature_id, agent, self._index.path) as feature:
            index = self._index.load()
            if index.error is not None:
                raise index.error
            now = reading.status_of_feature(self._fs, feature.folder, index, strict=True)
            if not rules.feature_moves(feature_id, now, status, reopen=reopen):
                return False
            state = self._state_of(feature)
            entry = self._entry(state, self._moment(state), command, "", agent)
            feature.perform({**entry, entries.FEATURE_STATUS: status}, state)
            return True

    def archive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Move a completed feature to `.archive/`; return the new path. Its row stays in the list.

        Durability: when this returns, the move survives a power cut. The folder is in one place or the other.

        Raises:
            TransitionError: it is active or paused.
            AlreadyExists: the archive has a feature with this id.
            NotFound, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, agent, self._index.path) as feature:
            now = reading.status_of_feature(self._fs, feature.folder, self._index.load(), strict=True)
            if now != rules.COMPLETED:
                raise TransitionError(
                    f"feature {feature_id} is {now} and cannot be archived", hint="complete it first"
                )
            return self._moved(feature, f"{self._root}/{names.ARCHIVE}/{feature_id}")

    def unarchive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Restore a feature from the archive, unchanged; return the new path. `resume` can then reopen it.

        Durability: as `archive`.

        Raises:
            NotFound: the feature is not in the archive.
            AlreadyExists: a feature with this id exists outside of the archive.
            Locked, StorageFailed: as `update`.
        """
        with self._call("update", self._root, feature_id):
            self._check_acknowledged(agent)
            archived = f"{self._root}/{names.ARCHIVE}/{names.check_id(feature_id)}"
            target = f"{self._root}/{feature_id}"
            if stat_or_none(self._fs, target) is not None:
                raise AlreadyExists(
                    f"{feature_id} also exists outside of the archive",
                    path=target,
                    hint="rename one of the two folders: the id of a feature is the name of its folder",
                )
            if not is_folder(self._fs, archived):
                raise NotFound(
                    f"No feature {feature_id} in the archive",
                    path=archived,
                    hint="`sessionary feature list --archived` lists the archive",
                )
            feature = self._feature(archived)
            with feature.held(self.timeout):
                return self._moved(feature, target)

    def _moved(self, feature: Feature, target: str) -> Path:
        atomic.move_folder(feature.folder, target, fs=self._fs)
        feature.moved(target)
        self._feature.cache_clear()
        return Path(target)

    # -- recovery

    def repair(
        self, feature_id: str, *, rewrite_history: bool = False, bad_bytes: str = "replace"
    ) -> Repaired:
        """Repair what `validate` finds in a feature: the state from the history, missing files, the row of the list.

        With `rewrite_history` also entries that span several lines, and durations in nanoseconds: the history
        is rewritten, the old one is kept as ``history.jsonl.original-<time>``. An unreadable state is kept as
        ``state.yaml.corrupt-<time>``. Idempotent.

        An entry with invalid UTF-8 is kept in the new history with U+FFFD in place of the bytes; with
        ``bad_bytes="drop"`` it is dropped. Data that could not be recovered is in `Repaired.lost`, and
        `validate` reports it as a note as long as the old history is kept.

        Durability: each file is the old one or the new one; the replaced one is kept before.

        Raises:
            NotFound: the feature does not exist.
            Invalid: `bad_bytes` is neither ``replace`` nor ``drop``.
            Unsupported: its state has a newer version; nothing is changed.
            Locked, StorageFailed: as `update`.
        """
        if bad_bytes not in ("replace", "drop"):
            raise Invalid(f"Unknown bad_bytes value: {bad_bytes!r}", hint="use 'replace' or 'drop'")
        with self._call("update", names.STATE, feature_id):
            feature = self._feature(f"{self._root}/{names.check_id(feature_id)}")
            with feature.held(self.timeout):
                done = repairing.repair_feature(
                    feature,
                    self._now(),
                    rewrite_history=rewrite_history,
                    replace_bad=bad_bytes == "replace",
                    agent=self.agent,
                )
            self._report(done.problems)
            return done

    def rebuild_index(self) -> Repaired:
        """Rebuild the list from the folders and its readable part.

        A list with a conflict, or one that cannot be read, is never overwritten: a proposal is written beside
        it, ``active-features.yaml.candidate-<time>``. A list in the form of the contract's scripts is
        repaired; the old file is kept as ``active-features.yaml.original-<time>``.

        Durability: as `repair`.
        """
        with self._call("update", names.INDEX, None):
            try:
                done = repairing.rebuild_index(self._fs, self._index, self._now())
            except FileNotFoundError:
                raise NotFound(f"No {names.HOME} in {self.home.parent}", path=self._root) from None
            self._report(done.problems)
            return done

    def migrate(self, feature_id: str, *, switch: bool = False) -> Path | None:
        """Write the state in the newest version beside the old one, as ``state.v1.0.yaml``; return its path.

        The old file is not changed. Only with `switch` the new one takes its name; the old one is then kept
        as ``state.yaml.before-<time>``. None if the state has the newest version.

        Durability: as `repair`.

        Raises:
            NotFound, Corrupt, Unsupported, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, None) as feature:
            return repairing.migrate_state(feature, self._now(), switch=switch)

    # -- the contract

    def acknowledge(self, agent: str, spec_path: str | os.PathLike[str]) -> Path:
        """Record that an agent has read the contract at `spec_path`, with the checksum of its exact bytes.

        Acknowledging again replaces the block of that agent; the rest of the file is kept.

        Durability: the file is the old one or the new one; the new one survives a power cut on return.

        Raises:
            NotFound: no contract at that path.
            Invalid: the agent has no name.
            Locked, StorageFailed: as everywhere.
        """
        with self._call("create", names.ACKNOWLEDGMENT, None):
            return acknowledgment.record(self._fs, self._index, spec_path, agent, self._now())

    def verify_acknowledgment(
        self, agent: str | None = None, *, spec_path: str | os.PathLike[str]
    ) -> list[Verdict]:
        """Whether the acknowledgment of an agent is valid for the contract at `spec_path`; without one, of each agent.

        Raises:
            NotFound: no contract at that path.
        """
        with self._call("read", names.ACKNOWLEDGMENT, None):
            return acknowledgment.verdicts(self._fs, self._root, spec_path, agent)

    def _check_acknowledged(self, agent: str | None) -> None:
        if self._require_ack is not None:
            acknowledgment.require(self._fs, self._root, self._require_ack, agent or self.agent)
