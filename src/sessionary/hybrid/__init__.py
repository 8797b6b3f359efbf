"""HybridSessionStore: the amplifier `SessionStore`, with its sessions synchronised between machines.

results      return values of `sync` and `pull`
store        the store: writes locally, and notifies background sync
sync_worker  pushes and pulls; loaded only by a store with a remote
"""

from sessionary.hybrid.results import PullResult, SyncResult
from sessionary.hybrid.store import HybridSessionStore

__all__ = ["HybridSessionStore", "PullResult", "SyncResult"]
