"""From a call to its operation: the line that is logged, its time, what it must agree with, and the row behind it.

The calls themselves are in `store`; `feature` gives an operation its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sessionary.errors import NotFound, SchemaError, SessionaryError
from sessionary.layouts.orchestrator import checking, entries, names, rules, times
from sessionary.layouts.orchestrator.base_store import moment_of, not_ahead, readable_plan
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.reader import FeatureReader
from sessionary.layouts.orchestrator.statefile import CURRENT, StateFile
from sessionary.layouts.orchestrator.times import later, parse, stamp
from sessionary.model import Problem, Severity

TOUCH_EVERY: Final = timedelta(minutes=1)


class FeatureOperator(FeatureReader):
    """What the writing calls of `FeatureStore` share."""

    def _entry(
        self,
        state: StateFile,
        at: datetime,
        command: str,
        arguments: str,
        agent: str | None,
        given: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The line of an operation, with the state as it is to be.

        Raises:
            SchemaError: something that a caller has given for it breaks the contract.
        """
        now = state.state
        current = {"active_task": now.active_task, "model_in_use": now.model_in_use, **given}
        made = {
            "timestamp": stamp(at),
            "command": command,
            "arguments": arguments,
            "model": current["model_in_use"],
            "agent": agent or self.agent,
            "task_id": current["active_task"],
            "status": entries.SUCCESS,
            "duration_ms": 0,
        }
        if faults := entries.faults_of(made):
            path = f"{self._root}/{state.state.feature_id}/{names.HISTORY}"
            raise SchemaError("; ".join(faults), faults=faults, path=path, hint="nothing was written")
        made[entries.STATE] = {**current, "started_at": state.document[CURRENT].get("started_at")}
        return made

    def _moment(self, state: StateFile, asked: datetime | str | None) -> datetime:
        """The time of a change: after the stored one, whatever the clock says."""
        stored = state.state.last_updated
        if asked is not None:
            moment = moment_of("last_updated", asked)
            not_ahead("last_updated", moment, self._now())
            if stored is not None and moment <= stored:
                raise SchemaError(
                    f"last_updated {stamp(moment)} is not after the stored {stamp(stored)}",
                    faults=["last_updated: times only increase"],
                    hint="leave it out: then the clock is taken",
                )
            return moment
        now = times.in_utc(self._now())
        if stored is not None and now < stored:
            words = f"the clock says {stamp(now)}, which is before the stored {stamp(stored)}"
            path = f"{self._root}/{state.state.feature_id}/{names.STATE}"
            problem = Problem("clock_went_back", Severity.note, path, None, None, words, "set the clock")
            self.last_report.problems.append(problem)
        return later(now, stored)

    def _state_of(self, feature: Feature) -> StateFile:
        state = feature.state()
        self.last_report.problems += state.problems
        return state

    def _check_task(self, feature: Feature, task_id: Any) -> None:
        plan = feature.plan()
        rules.check_active_task(task_id, plan.tasks)
        path = f"{feature.folder}/{names.PLAN}"
        if not plan.tasks:
            self.last_report.problems += checking.active_task_problems(path, str(task_id), plan.tasks)

    def _task(self, feature: Feature, task_id: str) -> dict[str, Any]:
        plan = readable_plan(feature.plan(), feature.folder)
        task = plan.tasks.get(task_id)
        if task is None:
            known = ", ".join(list(plan.tasks)[:8])
            empty = f"the plan has no tasks: `sessionary feature plan {feature.feature_id} --from FILE` gives it some"
            raise NotFound(
                f"the plan of {feature.feature_id} has no task {task_id}",
                path=f"{feature.folder}/{names.PLAN}",
                hint=f"it has: {known}" if known else empty,
            )
        return task

    def _touch(self, feature: Feature, state: StateFile, at: datetime) -> None:
        """Move `last_active` in the list, at most once a minute. What keeps that from being done is told, not raised.

        The state is stored by now, and reads derive the exact time from it.
        """
        last = self._touched.get(feature.feature_id)
        if last is not None and timedelta(0) <= at - last < TOUCH_EVERY:
            return
        self._touched[feature.feature_id] = at
        try:
            self._touch_row(feature.feature_id, state, at)
        except (SessionaryError, FileNotFoundError) as error:
            words = f"last_active of {feature.feature_id} was not written: {error}"
            problem = Problem("row_not_written", Severity.note, self._index.path, None, None, words, None)
            self.last_report.problems.append(problem)

    def _touch_row(self, feature_id: str, state: StateFile, at: datetime) -> None:
        with self._index.held():
            found = self._index.load()
            known = parse(found.rows.get(feature_id, {}).get("last_active"))
            if known is None or not timedelta(0) <= at - known < TOUCH_EVERY:
                began = stamp(state.state.started_at or at)
                self._index.put_locked(found, feature_id, {"last_active": stamp(at)}, began)
