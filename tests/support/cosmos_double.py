"""A strict double of Cosmos DB's REST interface, on the loopback, that fails on demand.

It answers what Microsoft's SDK asks when items of one partition are created, read, replaced, deleted, queried or
changed in a batch; requests are signed, metered and throttled. `cosmos_store` has the rules, and says what they prove:
that we do what we believe the documentation to say, and no more::

    with CosmosDouble() as double:
        double.faults.append(Fault("drop after", on="write"))
        remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", key=double.key), tenant="me")
"""

from __future__ import annotations

import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Self

from sessionary.sync.cosmos_config import EMULATOR_KEY
from tests.support.cosmos_http import Fault, Handler, Kind, Server
from tests.support.cosmos_store import Refused, Store

__all__ = ["CosmosDouble", "Fault"]


class CosmosDouble:
    """A server of its own, empty at first.

    Args:
        budget: request units per second that the account has; None for as many as wanted.
        clock_offset: seconds by which the server's clock is ahead.
        writes_everywhere: say that the account writes in several regions.
        lag: seconds for which who has not seen a write may be shown the state before it.
        tls: speak https with this context.
        token: what a credential has to give; None if only the key is let in.

    Attributes:
        key: the account's key.
        store: what is kept.
        faults: what is to go wrong; the first that strikes is taken.
        fate: asked for each request for items if no fault strikes; what it returns goes wrong.
        requests: how many requests of which kind there were, and answers of which status.
        charged: request units charged so far.
    """

    def __init__(
        self,
        *,
        budget: float | None = None,
        clock_offset: float = 0.0,
        writes_everywhere: bool = False,
        lag: float = 0.0,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self.key = EMULATOR_KEY
        self.store = Store()
        self.faults: list[Fault] = []
        self.fate: Callable[[Kind], Fault | None] = lambda kind: None
        self.requests: Counter[str] = Counter()
        self.charged = 0.0
        self.budget = budget
        self.clock_offset = clock_offset
        self.writes_everywhere = writes_everywhere
        self.lag = lag
        self.closing = threading.Event()
        self._second = (0, 0.0)
        self.token = token
        self._scheme = "https" if tls else "http"
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.tls = tls
        self._server.double = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}/"

    def close(self) -> None:
        """Stop listening, and release connections that hang."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> float:
        """The server's time."""
        return time.time() + self.clock_offset

    def fault_for(self, kind: Kind) -> Fault | None:
        """What is to go wrong with this request."""
        with self.store.guard:
            self.requests[kind] += 1
            return next((fault for fault in self.faults if fault.strikes(kind)), None) or self.fate(kind)

    def throttle(self) -> None:
        """Refuse if this second's budget is used up."""
        second, used = self._second
        now = self.now()
        if self.budget is not None and second == int(now) and used >= self.budget:
            pause = str(int((second + 1 - now) * 1000) + 1)
            raise Refused(429, "Request rate is large", 3200, x_ms_retry_after_ms=pause)

    def charge(self, ru: float) -> None:
        """Take from this second's budget."""
        second, used = self._second
        now = int(self.now())
        self._second = now, ru + (used if second == now else 0.0)
        self.charged += ru
