"""The orchestrator layout: features in `.ai-session/`, following the contract on session state."""

from sessionary.layouts.orchestrator.acknowledgment import Verdict
from sessionary.layouts.orchestrator.context import Report
from sessionary.layouts.orchestrator.queries import FeatureRow
from sessionary.layouts.orchestrator.repaired import Repaired
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.status import FeatureStatus, HistoryStats, state_dict
from sessionary.layouts.orchestrator.store import FeatureStore

__all__ = [
    "FeatureRow",
    "FeatureState",
    "FeatureStatus",
    "FeatureStore",
    "HistoryStats",
    "Repaired",
    "Report",
    "Verdict",
    "state_dict",
]
