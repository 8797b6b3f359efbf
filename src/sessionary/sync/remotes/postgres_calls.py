"""Connections to a PostgreSQL server that may be gone, slow, or behind a pooler, and what its errors mean.

Every statement is a transaction of its own and may be repeated, so none needs the connection that an earlier one had.
A connection that broke while it lay idle is therefore replaced without a word: servers and routers close them all the
time. A statement that another one got in the way of (40001) is repeated at once.

Nothing is prepared and nothing is set for a session, because a pooler gives the next statement to another server
connection. A limit that the server would keep (``statement_timeout``) would be such a setting: it is kept here, by the
clock of this side, which also holds where the server has fallen silent.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import conninfo as parameters
from psycopg.abc import PQGen

from sessionary.errors import RemoteError
from sessionary.sync.remote import LATER

# Not the generator of the module: whoever has seeded that one finds it as he left it, and a forked child draws anew.
_CHANCE = random.SystemRandom()

TRIES = 6
CONNECT, ANSWER = 10, 60.0
"""Seconds to wait for a connection, unless the connection string says otherwise, and for an answer."""

_IN_THE_WAY = ("40001", "40P01")
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT,
    "keepalives_idle": 30,
    "application_name": "sessionary",
}
# Classes of SQLSTATE after which the same statement may succeed: connection lost, no resources, another one in the
# way, stopped by an operator, an error of the server's system, not the leader (any more).
_PASSING = ("08", "25006", "40", "53", "55", "57", "58")
_PASSWORD = (
    "set PGPASSWORD, or write the password into ~/.pgpass; docs/howto/sync.md lists where it is looked for"
)
# A refusal before there is a connection has no SQLSTATE. These words of the server say that asking again is in vain.
_FOR_GOOD = {
    "password authentication failed": _PASSWORD,
    "no password supplied": _PASSWORD,
    "no pg_hba.conf entry": "the server lets nobody in from here; its pg_hba.conf says who may come",
    "does not exist": "correct the address (`sessionary sync init ADDRESS --replace`), or let the owner of the server "
    "make the role and the database",
}
_READ_ONLY = (
    "this is a replica, or it was told to be read-only; name the primary, with target_session_attrs=read-write in the "
    "address where there are several hosts, or reset default_transaction_read_only"
)
_HINTS = {
    "25006": _READ_ONLY,
    "28P01": _PASSWORD,
    "42P01": "run `sessionary sync init` once, as the owner of the tables",
    "3F000": "run `sessionary sync init` once, as the owner of the tables",
    "42501": "this role is not admitted, or not as this tenant; see docs/howto/sync-postgres.md",
}


class Answer(NamedTuple):
    """What a statement brought: its rows, and how many rows it touched."""

    rows: Sequence[tuple[Any, ...]]
    touched: int


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer longer than `ANSWER`."""

    patience = ANSWER

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.patience if timeout is None else timeout)


class Connections:
    """Runs statements, each on a connection that nobody else uses meanwhile.

    Args:
        conninfo: a connection string or URL, as libpq takes it.
        patience: how many seconds to wait for an answer.
    """

    def __init__(self, conninfo: str, *, patience: float = ANSWER) -> None:
        given = parameters.conninfo_to_dict(conninfo)
        self._conninfo = parameters.make_conninfo("", **{**_DEFAULTS, **given})
        self._patience = patience
        self._guard = threading.Lock()
        self._idle: list[_Bounded] = []
        self._closed = False

    def run(
        self,
        statement: str,
        values: Sequence[object] = (),
        *,
        confirm: tuple[str, Sequence[object]] | None = None,
    ) -> Answer:
        """Run one statement, again where that may help at once.

        Args:
            statement: the statement.
            values: what its placeholders stand for.
            confirm: a second statement, for the case that the first one was repeated and touched nothing any more:
                it asks whether that is so because an earlier try was carried out. Its answer is then the answer.

        Raises:
            RemoteError: it cannot be run, now or at all.
        """
        lost = False
        began = time.monotonic()
        for turn in range(TRIES):
            try:
                answer = self.once(statement, values)
                return self.once(*confirm) if confirm and turn and not answer.touched else answer
            except psycopg.Error as error:
                gone = _is_lost(error)
                waited = time.monotonic() - began >= self._patience
                again = error.sqlstate in _IN_THE_WAY or (gone and not lost and not waited)
                if not again or turn == TRIES - 1:
                    raise translated(error) from error
            lost = lost or gone
            if gone:  # so are the others that lay idle, most likely
                self._drop_idle()
            else:
                time.sleep(_CHANCE.uniform(0.0, 0.005 * 2**turn))
        raise AssertionError("unreachable: the last turn returns or raises")

    def once(self, statement: str, values: Sequence[object] = ()) -> Answer:
        """Run one statement once.

        Raises:
            psycopg.Error: as it came.
        """
        connection = self._taken()
        try:
            with connection.cursor(binary=True) as cursor:
                cursor.execute(statement.encode(), values)
                answer = Answer(cursor.fetchall() if cursor.description else (), cursor.rowcount)
        except BaseException as error:
            # Of a statement whose answer never came nobody knows when it ends: its connection is of no use any more.
            if not isinstance(error, psycopg.Error) or _is_lost(error):
                connection.close()
            self._put_back(connection)
            raise
        self._put_back(connection)
        return answer

    def close(self) -> None:
        """Close what is open; a statement that is under way ends first, and its connection with it."""
        self._closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _taken(self) -> _Bounded:
        with self._guard:
            if self._closed:
                raise RemoteError("this connection to PostgreSQL has been closed")
            if self._idle:
                return self._idle.pop()
        connection = _Bounded.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        connection.patience = self._patience
        return connection

    def _put_back(self, connection: _Bounded) -> None:
        with self._guard:
            if not connection.closed and not self._closed:
                self._idle.append(connection)
                return
        connection.close()


def _is_lost(error: psycopg.Error) -> bool:
    """True if there is no connection (any more), or none that is worth keeping."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(("08", "57P", "25006"))


def translated(error: psycopg.Error) -> RemoteError:
    """The error in the words of this house."""
    told = str(error).strip() or type(error).__name__
    state = error.sqlstate
    lasting = (
        next((hint for words, hint in _FOR_GOOD.items() if words in told), None) if state is None else None
    )
    if state is None:
        passing = isinstance(error, psycopg.OperationalError) and lasting is None
    else:
        passing = state.startswith(_PASSING)
    return RemoteError(
        f"PostgreSQL: {told}",
        retryable=passing,
        details={"sqlstate": state} if state else {},
        hint=_HINTS.get(state or "") or lasting or (LATER if passing else None),
    )
