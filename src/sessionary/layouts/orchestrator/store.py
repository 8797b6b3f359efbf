"""FeatureStore: the features of one project, following the orchestrator's contract.

Every write of a feature is an operation: a line of its history, flushed, and then its effect (see `feature`). Every
error has the details that the contract requires, in `error_context`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sessionary.disk.fs import OS_FS, Fs, expanded
from sessionary.layouts.orchestrator import agreements, folders, names, operations, queries, recovery, rules
from sessionary.layouts.orchestrator.acknowledgment import Verdict
from sessionary.layouts.orchestrator.context import DEFAULT_AGENT, TIMEOUT, Context, Report
from sessionary.layouts.orchestrator.operations import KEEP
from sessionary.layouts.orchestrator.queries import FeatureRow
from sessionary.layouts.orchestrator.repaired import Repaired
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.status import FeatureStatus
from sessionary.model import Problem


class FeatureStore:
    """The features of one project.

    Args:
        root: the project folder, which contains `.ai-session`; or that folder itself. The first `create` makes it.
        timeout: seconds to wait for another process that holds a feature or the list.
        agent: the agent for the history; `update` and similar calls can override it.
        require_ack: the contract file that an agent must have acknowledged before it may write.

    Attributes:
        home: the folder `.ai-session`.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT,
        agent: str = DEFAULT_AGENT,
        require_ack: str | os.PathLike[str] | None = None,
    ) -> None:
        place = Path(expanded(root))
        self.home: Path = place if place.name == names.HOME else place / names.HOME
        self._context = Context(
            OS_FS,
            self.home,
            lambda: datetime.now(UTC),
            timeout=timeout,
            agent=agent,
            require_ack=None if require_ack is None else os.fspath(require_ack),
        )

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
        store._context = store._context.over(fs, now)
        return store

    @property
    def timeout(self) -> float:
        """Seconds to wait for another process."""
        return self._context.timeout

    @property
    def agent(self) -> str:
        """The agent for the history, unless a call overrides it."""
        return self._context.agent

    @property
    def last_report(self) -> Report:
        """Notes of the last call besides its return value."""
        return self._context.report

    # -- reading

    def find(self, name: str, *, archived: bool = False) -> str:
        """The id of the feature that a name means: its id or the beginning of that in any case, or ``latest``.

        A whole id wins, and a feature in place over one in the archive. ``latest`` is the one that changed
        last; a feature with that id wins. With `archived` only the archive is searched.

        Raises:
            NotFound: none matches.
            AmbiguousId: several match.
        """
        return queries.find(self._context, name, archived=archived)

    def load(self, feature_id: str) -> FeatureState:
        """The state of a feature; oddities are in `last_report`. Takes no lock.

        Raises:
            NotFound: the feature or its state does not exist.
            Corrupt, SchemaError: the state cannot be read; `repair` restores it.
            Unsupported: it has a newer version.
        """
        return queries.load(self._context, feature_id)

    def plan(self, feature_id: str) -> dict[str, Any]:
        """The plan of a feature, read under a shared lock; ``{}`` if there is none. Problems are in `last_report`.

        Raises:
            NotFound: the feature does not exist.
            Corrupt: the plan exists but cannot be read.
            Locked: a writer held the feature for the whole time.
        """
        return queries.plan(self._context, feature_id)

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
        return queries.history(
            self._context, feature_id, command=command, model=model, agent=agent, since=since, failed=failed
        )

    def list_features(self, *, status: str | None = None, archived: bool = False) -> list[FeatureRow]:
        """Every feature, the one that changed last first; with `archived` also those in the archive.

        The folders are authoritative: the list on disk only holds whether a feature is paused or completed.
        If it cannot be read, `last_report` says so, and the histories are used.
        """
        return queries.list_features(self._context, status=status, archived=archived)

    def status(self, feature_id: str) -> FeatureStatus:
        """The status of a feature: progress, health, counts per command and model, failures, durations.

        Raises:
            NotFound: the feature does not exist.
            Locked: a writer held it for the whole time (plans are read under a shared lock).
        """
        return queries.status_of(self._context, feature_id)

    def validate(self, feature_id: str | None = None) -> list[Problem]:
        """All problems of one feature, or of all features and their folder. Reads only.

        Raises:
            NotFound: the feature does not exist.
        """
        return queries.validate(self._context, feature_id)

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
        return operations.update(
            self._context,
            feature_id,
            active_task=active_task,
            model_in_use=model_in_use,
            arguments=arguments,
            agent=agent,
            command=command,
            last_updated=last_updated,
        )

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
        return operations.save_plan(
            self._context, feature_id, phases, name=name, description=description, agent=agent
        )

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
        return operations.move_task(
            self._context, feature_id, task_id, status, artifacts=artifacts, reopen=reopen, agent=agent
        )

    def append(self, feature_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry to the history; return it as written. The state does not change.

        Only ``command`` is required. Time, agent, model and task default to clock, store and state.

        Durability: when this returns, the line survives a power cut.

        Raises:
            SchemaError: the entry breaks the contract; `details["faults"]` lists every fault.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return operations.append(self._context, feature_id, entry)

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
        return folders.create(self._context, feature_id, name=name, description=description, agent=agent)

    def pause(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Pause a feature. False if it is paused already.

        Durability: as `update`; the list is replaced before the state.

        Raises:
            TransitionError: it is completed.
            Conflict, Corrupt: the list must not be overwritten; nothing was done.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return operations.move(self._context, feature_id, "pause", rules.PAUSED, agent)

    def resume(self, feature_id: str, *, reopen: bool = False, agent: str | None = None) -> bool:
        """Resume a paused feature, or with `reopen` a completed one. As `pause`."""
        return operations.move(self._context, feature_id, "resume", rules.ACTIVE, agent, reopen=reopen)

    def complete(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Mark a feature as completed. As `pause`."""
        return operations.move(self._context, feature_id, "complete", rules.COMPLETED, agent)

    def archive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Move a completed feature to `.archive/`; return the new path. Its row stays in the list.

        Durability: when this returns, the move survives a power cut. The folder is in one place or the other.

        Raises:
            TransitionError: it is active or paused.
            AlreadyExists: the archive has a feature with this id.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return folders.archive(self._context, feature_id, agent)

    def unarchive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Restore a feature from the archive, unchanged; return the new path. `resume` can then reopen it.

        Durability: as `archive`.

        Raises:
            NotFound: the feature is not in the archive.
            AlreadyExists: a feature with this id exists outside of the archive.
            Locked, StorageFailed: as `update`.
        """
        return folders.unarchive(self._context, feature_id, agent)

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
        return recovery.repair(
            self._context, feature_id, rewrite_history=rewrite_history, bad_bytes=bad_bytes
        )

    def rebuild_index(self) -> Repaired:
        """Rebuild the list from the folders and its readable part.

        A list with a conflict, or one that cannot be read, is never overwritten: a proposal is written beside
        it, ``active-features.yaml.candidate-<time>``. A list in the form of the contract's scripts is
        repaired; the old file is kept as ``active-features.yaml.original-<time>``.

        Durability: as `repair`.
        """
        return recovery.rebuild_index(self._context)

    def migrate(self, feature_id: str, *, switch: bool = False) -> Path | None:
        """Write the state in the newest version beside the old one, as ``state.v1.0.yaml``; return its path.

        The old file is not changed. Only with `switch` the new one takes its name; the old one is then kept
        as ``state.yaml.before-<time>``. None if the state has the newest version.

        Durability: as `repair`.

        Raises:
            NotFound, Corrupt, Unsupported, Locked, StorageFailed: as `update`.
        """
        return recovery.migrate(self._context, feature_id, switch=switch)

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
        return agreements.acknowledge(self._context, agent, spec_path)

    def verify_acknowledgment(
        self, agent: str | None = None, *, spec_path: str | os.PathLike[str]
    ) -> list[Verdict]:
        """Whether the acknowledgment of an agent is valid for the contract at `spec_path`; without one, of each agent.

        Raises:
            NotFound: no contract at that path.
        """
        return agreements.verify(self._context, agent, spec_path)
