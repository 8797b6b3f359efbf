"""A server that is backed up, and put back to its backup, or emptied."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.memory_remote import MemoryRemote, MemoryServer


class BackedUp:
    """A `MemoryServer` with a backup; at first it is of an empty one.

    What is put back are blocks and heads with their etags. No etag is given twice, as no store does.

    Args:
        server: the server.
        tenant: whose blocks and heads.
    """

    def __init__(self, server: MemoryServer | None = None, tenant: str = "me") -> None:
        self.server = server or MemoryServer()
        self._tenant = tenant
        self._backup = self._state()

    def remote(self) -> MemoryRemote:
        """A connection to it."""
        return self.server.remote(self._tenant)

    def back_up(self) -> None:
        """Keep the present state."""
        self._backup = self._state()

    def put_back(self) -> None:
        """Make the kept state the present one."""
        for name, kept in copy.deepcopy(self._backup).items():
            held = getattr(self.server.tenants[self._tenant], name)
            held.clear()
            held.extend(kept) if isinstance(held, list) else held.update(kept)

    def empty(self) -> None:
        """Lose everything."""
        for held in vars(self.server.tenants[self._tenant]).values():
            held.clear()

    def _state(self) -> dict[str, Any]:
        return copy.deepcopy(vars(self.server.tenants[self._tenant]))
