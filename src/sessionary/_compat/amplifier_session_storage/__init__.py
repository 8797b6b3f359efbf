"""The import name that callers of the amplifier session store use; the code lives in `sessionary`.

What carries sessions to other machines is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from sessionary.lazy_exports import give_way, on_demand

if not give_way(__name__):
    from sessionary.layouts.amplifier.events import EventsLog as EventsLog
    from sessionary.layouts.amplifier.ids import is_top_level_session as is_top_level_session
    from sessionary.layouts.amplifier.store import BUNDLE_PREFIX as BUNDLE_PREFIX
    from sessionary.layouts.amplifier.store import SessionStore as SessionStore
    from sessionary.layouts.amplifier.store import extract_session_mode as extract_session_mode

if TYPE_CHECKING:
    from sessionary.hybrid import HybridSessionStore as HybridSessionStore
    from sessionary.hybrid import PullResult as PullResult
    from sessionary.hybrid import SyncResult as SyncResult
    from sessionary.sync.cosmos_config import CosmosConfig as CosmosConfig
    from sessionary.sync.cosmos_config import (
        load_cosmos_config_from_settings as load_cosmos_config_from_settings,
    )


__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "sessionary.sync.cosmos_config": "CosmosConfig load_cosmos_config_from_settings",
        "sessionary.hybrid": "HybridSessionStore PullResult SyncResult",
    },
    "BUNDLE_PREFIX EventsLog SessionStore extract_session_mode is_top_level_session",
)
