"""The orchestrator layout: features in `.ai-session/`, following the contract on session state."""

from sessionary.layouts.orchestrator.acknowledgment import Verdict
from sessionary.layouts.orchestrator.repairing import Repaired
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.status import FeatureRow, FeatureStatus, HistoryStats
from sessionary.layouts.orchestrator.store import FeatureStore, Report

__all__ = [
    "FeatureRow",
    "FeatureState",
    "FeatureStatus",
    "FeatureStore",
    "HistoryStats",
    "Repaired",
    "Report",
    "Verdict",
]
