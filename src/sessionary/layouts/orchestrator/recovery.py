"""The contract's recovery procedures and its migration. They run only when a caller asks for them."""

from __future__ import annotations

from pathlib import Path

from sessionary.errors import Invalid, NotFound
from sessionary.layouts.orchestrator import index_repair, names, repairing
from sessionary.layouts.orchestrator.context import Context
from sessionary.layouts.orchestrator.operations import writing
from sessionary.layouts.orchestrator.repaired import Repaired


def repair(context: Context, feature_id: str, *, rewrite_history: bool, bad_bytes: str) -> Repaired:
    """Repair a feature; see `FeatureStore.repair`."""
    if bad_bytes not in ("replace", "drop"):
        raise Invalid(f"Unknown bad_bytes value: {bad_bytes!r}", hint="use 'replace' or 'drop'")
    done = Repaired()
    with context.call("update", names.STATE, feature_id):
        feature = context.pool.get(f"{context.root}/{names.check_id(feature_id)}")
        with feature.held(context.timeout):
            repairing.repair_feature(
                feature,
                context.now(),
                done,
                rewrite_history=rewrite_history,
                bad_bytes=bad_bytes,
                agent=context.agent,
            )
        context.report.problems += done.problems
    return done


def rebuild_index(context: Context) -> Repaired:
    """Rebuild the list; see `FeatureStore.rebuild_index`."""
    done = Repaired()
    with context.call("update", names.INDEX, None):
        try:
            index_repair.rebuild_index(context.fs, context.index, context.now(), done)
        except FileNotFoundError:
            raise NotFound(f"No {names.HOME} in {context.home.parent}", path=context.root) from None
        context.report.problems += done.problems
    return done


def migrate(context: Context, feature_id: str, *, switch: bool) -> Path | None:
    """Write the state in the newest version; see `FeatureStore.migrate`."""
    done = Repaired()
    with writing(context, feature_id, None) as feature:
        beside = repairing.migrate_state(feature, context.now(), done, switch=switch)
        return None if beside is None else Path(beside)
