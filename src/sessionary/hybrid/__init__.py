"""HybridSessionStore: the amplifier `SessionStore` whose sessions are on every machine.

results
    what a `sync` and a `pull` say they did
store
    the store: writes here, and tells the courier
carrying
    what goes to the other side and comes from there; loaded only by a store that has another side
"""

from sessionary.hybrid.results import PullResult, SyncResult
from sessionary.hybrid.store import HybridSessionStore

__all__ = ["HybridSessionStore", "PullResult", "SyncResult"]
