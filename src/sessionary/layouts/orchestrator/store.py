"""FeatureStore: the features of one project, by the orchestrator's contract.

Every write of a feature is an operation: a line of its history, flushed, and then its effect (see `feature`). Every
error carries the contract's block, `error_context`.
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
        root: the folder of the project, which holds `.ai-session`; or that folder itself. Made by the first `create`.
        timeout: seconds to wait for another process that holds a feature or the list.
        agent: who writes, for the history; `update` and its kin can say otherwise.
        require_ack: the file of the contract that an agent must have acknowledged before it may write.

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
        """A store over another file system seam or clock: for proofs and doubles."""
        store = cls(root, **settings)
        store._context = store._context.over(fs, now)
        return store

    @property
    def timeout(self) -> float:
        """Seconds to wait for another process."""
        return self._context.timeout

    @property
    def agent(self) -> str:
        """Who writes, unless a call says otherwise."""
        return self._context.agent

    @property
    def last_report(self) -> Report:
        """What the last call reports beyond its return value."""
        return self._context.report

    # -- reading

    def find(self, name: str, *, archived: bool = False) -> str:
        """The id of the feature that a name means: its id or the beginning of that in any case, or ``latest``.

        A whole id wins, and a feature that is there over one that was put away. ``latest`` is the one that changed
        last; an id that is so called wins. With `archived` only features that were put away are looked at.

        Raises:
            NotFound: there is none.
            AmbiguousId: several begin so.
        """
        return queries.find(self._context, name, archived=archived)

    def load(self, feature_id: str) -> FeatureState:
        """The state of a feature; what is unusual about it is in `last_report`. Takes no lock.

        Raises:
            NotFound: no such feature, or it has no state.
            Corrupt, SchemaError: the state cannot be read; `repair` restores it.
            Unsupported: it is of a newer version.
        """
        return queries.load(self._context, feature_id)

    def plan(self, feature_id: str) -> dict[str, Any]:
        """The plan of a feature, read under a shared lock; ``{}`` if there is none. Problems are in `last_report`.

        Raises:
            NotFound: no such feature.
            Corrupt: there is a plan, and it cannot be read.
            Locked: a writer held the feature all the time.
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
        """The entries that fit every filter that is given, in file order. What was skipped is in `last_report`.

        Raises:
            NotFound: no such feature.
            Invalid: `since` is no time.
        """
        return queries.history(
            self._context, feature_id, command=command, model=model, agent=agent, since=since, failed=failed
        )

    def list_features(self, *, status: str | None = None, archived: bool = False) -> list[FeatureRow]:
        """Every feature, the one that changed last first; with `archived` those that were put away, too.

        The folders are the truth: the list on disk only says who is paused or completed. Where it cannot be read,
        `last_report` says so, and the histories are asked.
        """
        return queries.list_features(self._context, status=status, archived=archived)

    def status(self, feature_id: str) -> FeatureStatus:
        """Where a feature stands: progress, health, counts per command and model, failures, durations.

        Raises:
            NotFound: no such feature.
            Locked: a writer held it all the time (plans are read under a shared lock).
        """
        return queries.status_of(self._context, feature_id)

    def validate(self, feature_id: str | None = None) -> list[Problem]:
        """Everything that is not as it should be in one feature, or in all and beside them. Reads only.

        Raises:
            NotFound: no such feature.
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
        """Set what is given of the state; log it, even if nothing changes. Returns the state as it is then.

        What is not given keeps the value that it has when the lock is taken, so of two writers of one field the later
        holder wins, and writers of two fields do not undo each other. ``last_updated`` always increases: where the
        clock stands still or goes back it is the old time and a microsecond.

        Durability: the line of the history is on disk before the state is touched; when this returns, the state is
        too. If it raises ``not_committed``, nothing has changed, and the history says that it failed.

        Raises:
            NotFound: no such feature.
            SchemaError: no such model; a task that the plan does not have; a time older than the stored one, or more
                than a day after the clock; a command, arguments or an agent that are no text.
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
        """Replace the phases of the plan, and its name and description if they are given; returns the plan.

        Tasks need an id; what else they do not say is filled in, and what they do not say of their progress stays as
        it was. How far a task is changes by `task` alone. Comments and unknown keys stay. A plan that is not YAML, or
        not a map, is kept as ``implementation-plan.yaml.corrupt-<time>`` and replaced.

        Durability: the plan is the old one or the new one, whole. When this returns, the new one and its line of the
        history survive a power cut. A plan is replaced before its line is written: cut off in between, it is there
        without being logged.

        Raises:
            SchemaError: with every fault at once.
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
        """Move a task to another status, and add artifacts to it. False if nothing changed; then nothing is logged.

        Entering ``in_progress`` for the first time sets ``started_at``, completing sets ``completed_at``, reopening
        clears it. A task that is completed or blocked is no longer the active one.

        Durability: as `update`; the plan is replaced before the state.

        Raises:
            NotFound: no such feature, or no such task.
            TransitionError: the one status cannot become the other; what is completed needs `reopen`.
            SchemaError, Corrupt, Locked, StorageFailed: as `update`.
        """
        return operations.move_task(
            self._context, feature_id, task_id, status, artifacts=artifacts, reopen=reopen, agent=agent
        )

    def append(self, feature_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry to the history; returns it as it was written. The state does not change.

        Only ``command`` must be given. Time, agent, model and task are filled in from clock, store and state.

        Durability: when this returns, the line survives a power cut.

        Raises:
            SchemaError: the entry breaks the contract; `details["faults"]` has every fault.
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
        """Begin a feature: its folder with plan, empty history, state and artifacts, and its row in the list.

        Without an id one is made of the name and today's date; if it is taken, with a number before the date.

        Durability: when this returns, all of it survives a power cut. If it raises ``not_committed``, there is no
        such feature; if only the list could not be written, the folder lies in `.archive/.failed-<id>`. A crash
        before the list is written leaves the whole feature without its row, which `validate` tells and `repair` adds.

        Raises:
            InvalidId: the id is not of the contract's form; or neither id nor usable name was given.
            AlreadyExists: there is, or was, a feature of this id.
            Conflict, Corrupt: the list is not to be written over; nothing was made.
            Locked, StorageFailed: as everywhere.
        """
        return folders.create(self._context, feature_id, name=name, description=description, agent=agent)

    def pause(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Let a feature rest. False if it rests already.

        Durability: as `update`; the list is replaced before the state.

        Raises:
            TransitionError: it is completed.
            Conflict, Corrupt: the list is not to be written over; nothing was done.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return operations.move(self._context, feature_id, "pause", rules.PAUSED, agent)

    def resume(self, feature_id: str, *, reopen: bool = False, agent: str | None = None) -> bool:
        """Go on with a feature that was paused, or with `reopen` with one that was completed. As `pause`."""
        return operations.move(self._context, feature_id, "resume", rules.ACTIVE, agent, reopen=reopen)

    def complete(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Mark a feature as completed. As `pause`."""
        return operations.move(self._context, feature_id, "complete", rules.COMPLETED, agent)

    def archive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Put a completed feature away, whole, under `.archive/`; returns where. Its row stays in the list.

        Durability: when this returns, the move survives a power cut. The folder is at one place or the other.

        Raises:
            TransitionError: it is active or paused: active data is never put away.
            AlreadyExists: the archive has a feature of this id.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return folders.archive(self._context, feature_id, agent)

    def unarchive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Bring a feature back from the archive, as it was put away; returns where. `resume` can then reopen it.

        Durability: as `archive`.

        Raises:
            NotFound: the archive has no such feature.
            AlreadyExists: there is a feature of this id beside the archive.
            Locked, StorageFailed: as `update`.
        """
        return folders.unarchive(self._context, feature_id, agent)

    # -- recovery

    def repair(
        self, feature_id: str, *, rewrite_history: bool = False, bad_bytes: str = "replace"
    ) -> Repaired:
        """Put right what `validate` finds in a feature: the state from the history, missing files, the row of the list.

        With `rewrite_history` also entries that are spread over several lines, and durations in nanoseconds: the
        history is written anew, the old one stays as ``history.jsonl.original-<time>``. A state that cannot be read
        stays as ``state.yaml.corrupt-<time>``. Doing it twice does no more than doing it once.

        An entry with bytes that are not UTF-8 stays in the new history with U+FFFD in their place; with
        ``bad_bytes="drop"`` it is left out. What could not be brought back is in `Repaired.lost`, and `validate`
        reports it as a note as long as the old history is there.

        Durability: each file is the old one or the new one, whole; what is replaced is kept before.

        Raises:
            NotFound: no such feature.
            Invalid: `bad_bytes` is neither ``replace`` nor ``drop``.
            Unsupported: its state is of a newer version: nothing is touched.
            Locked, StorageFailed: as `update`.
        """
        return recovery.repair(
            self._context, feature_id, rewrite_history=rewrite_history, bad_bytes=bad_bytes
        )

    def rebuild_index(self) -> Repaired:
        """Write the list from the folders, and from what can be read of the present one.

        A list with a conflict, and one that cannot be read, is never overwritten: a proposal is written beside it,
        ``active-features.yaml.candidate-<time>``. One as the contract's scripts wrote it is put right; the old file
        stays as ``active-features.yaml.original-<time>``.

        Durability: as `repair`.
        """
        return recovery.rebuild_index(self._context)

    def migrate(self, feature_id: str, *, switch: bool = False) -> Path | None:
        """Write the state in the newest version beside the old one, as ``state.v1.0.yaml``; returns where.

        The old file is not touched. Only with `switch` the new one takes its name; the old one then stays as
        ``state.yaml.before-<time>``. None if the state is of the newest version.

        Durability: as `repair`.

        Raises:
            NotFound, Corrupt, Unsupported, Locked, StorageFailed: as `update`.
        """
        return recovery.migrate(self._context, feature_id, switch=switch)

    # -- the contract

    def acknowledge(self, agent: str, spec_path: str | os.PathLike[str]) -> Path:
        """Write down that an agent has read the contract at `spec_path`, with the checksum of its exact bytes.

        Acknowledging again replaces the block of that agent; all else in the file stays.

        Durability: the file is the old one or the new one, whole; the new one survives a power cut on return.

        Raises:
            NotFound: there is no contract at that path.
            Invalid: the agent has no name.
            Locked, StorageFailed: as everywhere.
        """
        return agreements.acknowledge(self._context, agent, spec_path)

    def verify_acknowledgment(
        self, agent: str | None = None, *, spec_path: str | os.PathLike[str]
    ) -> list[Verdict]:
        """Whether the acknowledgment of an agent holds for the contract at `spec_path`; without one, of each agent.

        Raises:
            NotFound: there is no contract at that path.
        """
        return agreements.verify(self._context, agent, spec_path)
