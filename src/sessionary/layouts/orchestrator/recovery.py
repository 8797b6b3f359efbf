"""The contract's recovery procedures and its migration, as calls: what somebody asks for, and nothing by itself."""

from __future__ import annotations

from pathlib import Path

from sessionary.errors import Invalid, NotFound
from sessionary.layouts.orchestrator import index_repair, names, repairing
from sessionary.layouts.orchestrator.base_store import FeatureHome
from sessionary.layouts.orchestrator.repaired import Repaired


class FeatureMender(FeatureHome):
    """The part of `FeatureStore` that puts features right."""

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
        if bad_bytes not in ("replace", "drop"):
            raise Invalid(f"Unknown bad_bytes value: {bad_bytes!r}", hint="use 'replace' or 'drop'")
        done = Repaired()
        with self._telling("update", names.STATE, feature_id):
            feature = self._pool.get(f"{self._root}/{names.check_id(feature_id)}")
            with feature.held(self.timeout):
                repairing.repair_feature(
                    feature,
                    self._now(),
                    done,
                    rewrite_history=rewrite_history,
                    bad_bytes=bad_bytes,
                    agent=self.agent,
                )
            self.last_report.problems += done.problems
        return done

    def rebuild_index(self) -> Repaired:
        """Write the list from the folders, and from what can be read of the present one.

        A list with a conflict, and one that cannot be read, is never overwritten: a proposal is written beside it,
        ``active-features.yaml.candidate-<time>``. One as the contract's scripts wrote it is put right; the old file
        stays as ``active-features.yaml.original-<time>``.

        Durability: as `repair`.
        """
        done = Repaired()
        with self._telling("update", names.INDEX, None):
            try:
                index_repair.rebuild_index(self._fs, self._index, self._now(), done)
            except FileNotFoundError:
                raise NotFound(f"There is no {names.HOME} in {self.home.parent}", path=self._root) from None
            self.last_report.problems += done.problems
        return done

    def migrate(self, feature_id: str, *, switch: bool = False) -> Path | None:
        """Write the state in the newest version beside the old one, as ``state.v1.0.yaml``; returns where.

        The old file is not touched. Only with `switch` the new one takes its name; the old one then stays as
        ``state.yaml.before-<time>``. None if the state is of the newest version.

        Durability: as `repair`.

        Raises:
            NotFound, Corrupt, Unsupported, Locked, StorageFailed: as `update`.
        """
        done = Repaired()
        with self._writing(feature_id, None) as feature:
            beside = repairing.migrate_state(feature, self._now(), done, switch=switch)
            return None if beside is None else Path(beside)
