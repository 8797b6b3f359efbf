"""What can be asked about the features of a project. Nothing here writes, and only plans are read under a lock."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.errors import NotFound
from sessionary.layouts.base import LATEST, believed, future_note, one_named
from sessionary.layouts.orchestrator import acknowledgment, checking, names, reading, status, times
from sessionary.layouts.orchestrator.base_store import FeatureHome, moment_of, readable_plan
from sessionary.layouts.orchestrator.feature import missing
from sessionary.layouts.orchestrator.history import chosen, read_history
from sessionary.layouts.orchestrator.indexfile import IndexFile
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.model import Problem


class FeatureRow(NamedTuple):
    """One feature in a list.

    Attributes:
        feature_id: the id.
        status: ``active``, ``paused`` or ``completed``.
        state: task, model and times; None if the state cannot be read.
        archived: True if it was put away.
        problems: why there is no state, or what is unusual about it.
    """

    feature_id: str
    status: str
    state: FeatureState | None
    archived: bool
    problems: list[Problem]


class FeatureReader(FeatureHome):
    """The reading half of `FeatureStore`."""

    def find(self, name: str, *, archived: bool = False) -> str:
        """The id of the feature that a name means: its id or the beginning of that in any case, or ``latest``.

        A whole id wins, and a feature that is there over one that was put away. ``latest`` is the one that changed
        last; an id that is so called wins. With `archived` only features that were put away are looked at.

        Raises:
            NotFound: there is none.
            AmbiguousId: several begin so.
        """
        with self._telling("read", names.INDEX, None):
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
        """The state of a feature; what is unusual about it is in `last_report`. Takes no lock.

        Raises:
            NotFound: no such feature, or it has no state.
            Corrupt, SchemaError: the state cannot be read; `repair` restores it.
            Unsupported: it is of a newer version.
        """
        with self._telling("read", names.STATE, feature_id):
            found = reading.read_state(self._fs, self._folder(feature_id))
            self.last_report.problems += found.problems
            if found.state is None:
                assert found.error is not None
                raise found.error
            return found.state

    def plan(self, feature_id: str) -> dict[str, Any]:
        """The plan of a feature, read under a shared lock; ``{}`` if there is none. Problems are in `last_report`.

        Raises:
            NotFound: no such feature.
            Corrupt: there is a plan, and it cannot be read.
            Locked: a writer held the feature all the time.
        """
        with self._telling("read", names.PLAN, feature_id):
            folder = self._folder(feature_id)
            found = reading.read_plan(self._fs, folder, self.timeout)
            self.last_report.problems += found.problems
            return readable_plan(found, folder).document

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
        with self._telling("read", names.HISTORY, feature_id):
            moment = None if since is None else moment_of("since", since)
            found = read_history(self._fs, f"{self._folder(feature_id)}/{names.HISTORY}")
            self.last_report.problems += list(checking.history_problems(found))
            filters = {"command": command, "model": model, "agent": agent}
            return list(chosen(found.values, **filters, since=moment, failed=failed))

    def list_features(self, *, status: str | None = None, archived: bool = False) -> list[FeatureRow]:
        """Every feature, the one that changed last first; with `archived` those that were put away, too.

        The folders are the truth: the list on disk only says who is paused or completed. Where it cannot be read,
        `last_report` says so, and the histories are asked.
        """
        with self._telling("read", names.INDEX, None):
            index = self._index.read()
            self.last_report.problems += index.problems
            rows = self._rows(self._root, index, archived=False)
            if archived:
                rows += self._rows(f"{self._root}/{names.ARCHIVE}", index, archived=True)
            rows = [row for row in rows if status in (None, row.status)]
            return sorted(rows, key=_newest, reverse=True)

    def status(self, feature_id: str) -> status.FeatureStatus:
        """Where a feature stands: progress, health, counts per command and model, failures, durations.

        Raises:
            NotFound: no such feature.
            Locked: a writer held it all the time (plans are read under a shared lock).
        """
        with self._telling("read", names.STATE, feature_id):
            folder = self._folder(feature_id)
            state = reading.read_state(self._fs, folder)
            plan = reading.read_plan(self._fs, folder, self.timeout)
            history = reading.history_of(self._fs, folder)
            index = self._index.read()
            counts, progress = status.counted_tasks(plan.tasks)
            head = plan.document.get("feature")
            head = head if isinstance(head, dict) else {}
            problems = [*state.problems, *plan.problems, *checking.history_problems(history)]
            self.last_report.problems += problems
            updated = state.state.last_updated if state.state else None
            return status.FeatureStatus(
                feature_id,
                head.get("name") if isinstance(head.get("name"), str) else None,
                head.get("description") if isinstance(head.get("description"), str) else None,
                reading.status_in(index, feature_id, history),
                state.state,
                status.health_of(updated, times.in_utc(self._now())),
                counts,
                progress,
                status.stats_of(history.values),
                status.artifacts_of(self._fs, folder),
                history.values[-status.LAST :],
                problems,
            )

    def validate(self, feature_id: str | None = None) -> list[Problem]:
        """Everything that is not as it should be in one feature, or in all and beside them. Reads only.

        Raises:
            NotFound: no such feature.
        """
        with self._telling("read", self._root, feature_id):
            ids = reading.feature_ids(self._fs, self._root) if feature_id is None else [feature_id]
            found = [
                problem for each in ids for problem in checking.feature_problems(self._fs, self._folder(each))
            ]
            for folder in map(self._folder, ids):
                state = reading.read_state(self._fs, folder).state
                updated = None if state is None else state.last_updated
                found += future_note("last_updated", updated, f"{folder}/{names.STATE}")
            if feature_id is None:
                found += checking.store_problems(
                    self._fs, self._root, ids, self._index.read(), writable=self._may_create()
                )
                found += self._stale_acknowledgments()
            return found

    def verify_acknowledgment(
        self, agent: str | None = None, *, spec_path: str | os.PathLike[str]
    ) -> list[acknowledgment.Verdict]:
        """Whether the acknowledgment of an agent holds for the contract at `spec_path`; without one, of each agent.

        Raises:
            NotFound: there is no contract at that path.
        """
        with self._telling("read", names.ACKNOWLEDGMENT, None):
            return acknowledgment.verdicts(self._acknowledged(), self._contract(spec_path), agent)

    def _rows(self, home: str, index: IndexFile, *, archived: bool) -> list[FeatureRow]:
        rows = []
        for feature_id in reading.feature_ids(self._fs, home):
            folder = f"{home}/{feature_id}"
            state = reading.read_state(self._fs, folder)
            now = reading.status_of_feature(self._fs, folder, index, reading.history_of)
            rows.append(FeatureRow(feature_id, now, state.state, archived, state.problems))
        return rows

    def _may_create(self) -> bool:
        """True if a feature can be made: in the folder, or where that is missing, in the one above."""
        place = self._root if reading.is_folder(self._fs, self._root) else os.path.dirname(self._root)
        return os.access(place, os.W_OK | os.X_OK)

    def _stale_acknowledgments(self) -> list[Problem]:
        if self._require_ack is None:
            return []
        path = f"{self._root}/{names.ACKNOWLEDGMENT}"
        with suppress(NotFound):
            verdicts = acknowledgment.verdicts(self._acknowledged(), self._contract(self._require_ack))
            return [
                checking.note(
                    "stale_acknowledgment", path, f"{each.agent} {each.reason}", "acknowledge it again"
                )
                for each in verdicts
                if not each.holds
            ]
        return []


def _newest(row: FeatureRow) -> datetime:
    return believed(row.state.last_updated if row.state else None)
