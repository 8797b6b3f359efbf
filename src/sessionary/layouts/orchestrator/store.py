"""FeatureStore: the features of one project, by the orchestrator's contract.

Every write of a feature is an operation: a line of its history, flushed, and then its effect (see `feature`). Every
error says in `error_context` what the contract wants to know of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sessionary.disk import atomic
from sessionary.disk.fs import read_bytes, stat_or_none
from sessionary.errors import AlreadyExists, NotFound, SchemaError, StorageFailed, TransitionError
from sessionary.layouts.orchestrator import (
    acknowledgment,
    checking,
    creating,
    entries,
    names,
    planfile,
    reading,
    rules,
)
from sessionary.layouts.orchestrator.base_store import moment_of, not_ahead
from sessionary.layouts.orchestrator.feature import with_artifacts
from sessionary.layouts.orchestrator.operations import FeatureOperator
from sessionary.layouts.orchestrator.recovery import FeatureMender
from sessionary.layouts.orchestrator.statefile import FeatureState


class _Keep:
    """What a caller did not give."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final[Any] = _Keep()


class FeatureStore(FeatureOperator, FeatureMender):
    """The features below one project.

    Args:
        root: the folder of the project, which holds `.ai-session`; or that folder itself. Made by the first `create`.
        timeout: seconds to wait for another process that holds a feature or the list.
        agent: who writes, for the history; `update` and its kin can say otherwise.
        require_ack: the file of the contract that an agent must have acknowledged before it may write.

    Attributes:
        home: the folder `.ai-session`.
        last_report: what the last call has to tell beyond its return value.
    """

    # -- beginning

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
        with self._telling("create", self._root, feature_id):
            self._check_ack(agent)
            if feature_id is not None:
                names.check_new_id(feature_id)
            new = creating.New(feature_id, name or feature_id or "", description, self._now())
            made = creating.create(self._fs, self._index, new)
            self.last_report.feature_id = made
            return made

    # -- the state

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
            words = (
                " ".join(f"{name}={value}" for name, value in given.items())
                if arguments is None
                else arguments
            )
            entry = self._entry(state, at, command, words, agent, given)
            feature.perform(entry, state)
            self._touch(feature, state, at)
            current = entry[entries.STATE]
            return FeatureState(
                feature.feature_id,
                current["active_task"],
                current["model_in_use"],
                state.state.started_at,
                at,
            )

    # -- plan and tasks

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
        with self._writing(feature_id, agent, names.PLAN) as feature:
            state = self._state_of(feature)
            old = feature.plan()
            if old.error is not None:
                raise old.error
            blank = planfile.new_plan(feature_id, feature_id, "", self._now())["feature"]
            head = {"name": name, "description": description}
            document = planfile.replanned(
                old, phases, blank, {k: v for k, v in head.items() if v is not None}
            )
            tasks = planfile.tasks_of(document)
            rules.check_active_task(state.state.active_task, tasks)
            at = self._moment(state, None)
            entry = self._entry(state, at, "plan", f"phases={len(phases)} tasks={len(tasks)}", agent, {})
            if not old.readable:
                path = f"{feature.folder}/{names.PLAN}"
                kept = atomic.quarantine(path, "corrupt", fs=self._fs, now=self._now())
                self.last_report.problems.append(
                    checking.note("plan_replaced", kept, "the plan could not be read; it is kept here", None)
                )
                old = old._replace(data=None)
            feature.write_plan(old, document)
            try:
                feature.perform(entry, state)
            except StorageFailed as error:
                # The line cannot hold a plan, so the plan comes first here: it is there, whatever becomes of the line.
                error.outcome = "unknown"
                error.details["stored"] = [names.PLAN, *error.details.get("stored", ())]
                raise
            self._touch(feature, state, at)
            return document

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
        with self._writing(feature_id, agent, names.PLAN) as feature:
            task = self._task(feature, task_id)
            added = [artifacts] if isinstance(artifacts, str) else list(artifacts)
            if not all(isinstance(name, str) for name in added):
                raise SchemaError("artifacts are names of files", faults=["artifacts: give texts"])
            moves = rules.task_moves(
                task_id, str(task.get("status")), status, feature=feature_id, reopen=reopen
            )
            if not moves and with_artifacts(task, added) == (task.get("artifacts") or []):
                return False
            state = self._state_of(feature)
            given: dict[str, Any] = {}
            if state.state.active_task == task_id and status in (rules.COMPLETED, rules.BLOCKED):
                given["active_task"] = None
            at = self._moment(state, None)
            entry = self._entry(state, at, "task", f"{task_id} {status}", agent, given)
            entry |= {"task_id": task_id, entries.TASK_STATUS: status}
            if added:
                entry["artifacts"] = added
            feature.perform(entry, state)
            self._touch(feature, state, at)
            return True

    # -- history

    def append(self, feature_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry to the history; returns it as it was written. The state does not change.

        Only ``command`` must be given. Time, agent, model and task are filled in from clock, store and state.

        Durability: when this returns, the line survives a power cut.

        Raises:
            SchemaError: the entry breaks the contract; `details["faults"]` has every fault.
            NotFound, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, entry.get("agent"), names.HISTORY) as feature:
            fill: dict[str, Any] = {"agent": self.agent, "task_id": None}
            if "model" not in entry or "task_id" not in entry:
                state = reading.read_state(self._fs, feature.folder).state
                if state is not None:
                    fill = {"model": state.model_in_use, **fill, "task_id": state.active_task}
            made = entries.checked(entry, now=self._now(), fill=fill)
            not_ahead("timestamp", moment_of("timestamp", made["timestamp"]), self._now())
            feature.log(made)
        with self._telling("update", names.HISTORY, feature_id):
            feature.journal.flush()
        return made

    # -- the feature as a whole

    def pause(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Let a feature rest. False if it rests already.

        Durability: as `update`; the list is replaced before the state.

        Raises:
            TransitionError: it is completed.
            Conflict, Corrupt: the list is not to be written over; nothing was done.
            NotFound, Locked, StorageFailed: as `update`.
        """
        return self._move(feature_id, "pause", rules.PAUSED, agent)

    def resume(self, feature_id: str, *, reopen: bool = False, agent: str | None = None) -> bool:
        """Go on with a feature that was paused, or with `reopen` with one that was completed. As `pause`."""
        return self._move(feature_id, "resume", rules.ACTIVE, agent, reopen=reopen)

    def complete(self, feature_id: str, *, agent: str | None = None) -> bool:
        """Mark a feature as completed. As `pause`."""
        return self._move(feature_id, "complete", rules.COMPLETED, agent)

    def archive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Put a completed feature away, whole, under `.archive/`; returns where. Its row stays in the list.

        Durability: when this returns, the move survives a power cut. The folder is at one place or the other.

        Raises:
            TransitionError: it is active or paused: active data is never put away.
            AlreadyExists: the archive has a feature of this id.
            NotFound, Locked, StorageFailed: as `update`.
        """
        with self._writing(feature_id, agent, self._index.path) as feature:
            now = reading.status_of_feature(self._fs, feature.folder, self._index.load())
            if now != rules.COMPLETED:
                raise TransitionError(
                    f"feature {feature_id} is {now} and cannot be archived",
                    hint="complete it first: what is active is never put away",
                )
            target = f"{self._root}/{names.ARCHIVE}/{feature_id}"
            atomic.move_folder(feature.folder, target, fs=self._fs)
            feature.moved(target)
            self._pool.drop(feature.folder)
            return Path(target)

    def unarchive(self, feature_id: str, *, agent: str | None = None) -> Path:
        """Bring a feature back from the archive, as it was put away; returns where. `resume` can then reopen it.

        Durability: as `archive`.

        Raises:
            NotFound: the archive has no such feature.
            AlreadyExists: there is a feature of this id beside the archive.
            Locked, StorageFailed: as `update`.
        """
        with self._telling("update", self._root, feature_id):
            self._check_ack(agent)
            archived = f"{self._root}/{names.ARCHIVE}/{names.check_id(feature_id)}"
            target = f"{self._root}/{feature_id}"
            if stat_or_none(self._fs, target) is not None:
                raise AlreadyExists(
                    f"{feature_id} is not only in the archive: there is a feature of this id beside it",
                    path=target,
                    hint="rename one of the two folders: the id of a feature is the name of its folder",
                )
            if not reading.is_folder(self._fs, archived):
                raise NotFound(
                    f"The archive has no feature {feature_id}",
                    path=archived,
                    hint="`sessionary feature list --archived` shows those that it has",
                )
            feature = self._pool.get(archived)
            with feature.held(self.timeout):
                atomic.move_folder(archived, target, fs=self._fs)
                feature.moved(target)
                self._pool.drop(archived)
            return Path(target)

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
        with self._telling("create", names.ACKNOWLEDGMENT, None):
            contract = self._contract(spec_path)
            acknowledgment.block(agent, contract, self._now())  # refused before anything is made
            path = f"{self._root}/{names.ACKNOWLEDGMENT}"
            with self._index.held(make=True):
                text = (read_bytes(self._fs, path) or b"").decode("utf-8", "surrogateescape")
                new = acknowledgment.with_block(text, agent, contract, self._now())
                atomic.replace(path, (new.encode("utf-8", "surrogateescape"),), fs=self._fs)
            return Path(path)

    # -- within

    def _move(
        self, feature_id: str, command: str, status: str, agent: str | None, *, reopen: bool = False
    ) -> bool:
        with self._writing(feature_id, agent, self._index.path) as feature:
            index = self._index.load()
            if index.error is not None:
                raise index.error
            now = reading.status_of_feature(self._fs, feature.folder, index)
            if not rules.feature_moves(feature_id, now, status, reopen=reopen):
                return False
            state = self._state_of(feature)
            at = self._moment(state, None)
            entry = self._entry(state, at, command, "", agent, {})
            entry[entries.FEATURE_STATUS] = status
            feature.perform(entry, state)
            return True
