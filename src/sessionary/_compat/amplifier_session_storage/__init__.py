"""The import name that callers of the amplifier session store use; the code lives in `sessionary`.

What carries sessions to other machines is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from sessionary.lazy_exports import give_way, on_demand

if not give_way(__name__):
    from sessionary.layouts.amplifier import (
        BUNDLE_PREFIX,
        EventsLog,
        SessionStore,
        extract_session_mode,
        is_top_level_session,
    )

if TYPE_CHECKING:
    from sessionary.hybrid import HybridSessionStore, PullResult, SyncResult
    from sessionary.sync.cosmos_config import CosmosConfig, load_cosmos_config_from_settings

_LATER = {
    "CosmosConfig": "sessionary.sync.cosmos_config",
    "HybridSessionStore": "sessionary.hybrid",
    "PullResult": "sessionary.hybrid",
    "SyncResult": "sessionary.hybrid",
    "load_cosmos_config_from_settings": "sessionary.sync.cosmos_config",
}

__all__ = [
    "BUNDLE_PREFIX",
    "CosmosConfig",
    "EventsLog",
    "HybridSessionStore",
    "PullResult",
    "SessionStore",
    "SyncResult",
    "extract_session_mode",
    "is_top_level_session",
    "load_cosmos_config_from_settings",
]

__getattr__, __dir__ = on_demand(__name__, _LATER)
