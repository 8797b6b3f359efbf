"""Connections to a PostgreSQL server that may be gone, slow, or behind a pooler, and its errors.

Every statement is a transaction of its own and may be repeated, so none depends on an earlier connection. A
connection that broke while idle is replaced silently: servers and routers close them all the time. A statement with a
serialization failure (40001) is repeated at once.

No statement is prepared and no session variable is set, because a pooler sends the next statement to another server
connection. A limit on the server (``statement_timeout``) would be such a variable: the limit is enforced by the local
clock instead, which also works if the server stops responding.
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

# A generator of our own: a seed that the program set on the shared one stays effective. A forked child seeds anew.
_CHANCE = random.SystemRandom()

TRIES = 6
CONNECT, ANSWER = 10, 60.0
"""Seconds to wait for a connection, unless the connection string sets it, and for an answer."""

_IN_THE_WAY = ("40001", "40P01")
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT,
    "keepalives_idle": 30,
    "application_name": "sessionary",
}
# Classes of SQLSTATE after which the same statement may succeed: connection lost, no resources, serialization
# failure, stopped by an operator, system error, not the leader (any more).
_PASSING = ("08", "25006", "40", "53", "55", "57", "58")
_PASSWORD = (
    "set PGPASSWORD, or write the password into ~/.pgpass; docs/howto/sync.md lists where it is read from"
)
# A refusal before there is a connection has no SQLSTATE. These texts of the server show that a retry is useless.
_FOR_GOOD = {
    "password authentication failed": _PASSWORD,
    "no password supplied": _PASSWORD,
    "no pg_hba.conf entry": "the server refuses connections from this machine; see its pg_hba.conf",
    "does not exist": "correct the address (`sessionary sync init ADDRESS --replace`), or let the owner of the server "
    "create the role and the database",
}
_READ_ONLY = (
    "this is a replica, or set to read-only; name the primary, with target_session_attrs=read-write in the "
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
    """Result of a statement: its rows, and the number of affected rows."""

    rows: Sequence[tuple[Any, ...]]
    touched: int


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection with a time limit for answers."""

    patience = ANSWER

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.patience if timeout is None else timeout)


class Connections:
    """Runs statements, each on a connection of its own.

    Args:
        conninfo: a connection string or URL, as libpq accepts it.
        patience: seconds to wait for an answer.
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
        """Run one statement, with a retry where that may help at once.

        Args:
            statement: the statement.
            values: the values of its placeholders.
            confirm: a second statement, for a retry that affected no row: it checks whether an earlier attempt was
                carried out. Its result is then the result.

        Raises:
            RemoteError: the statement failed, for now or permanently.
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
            if gone:  # the other idle ones are probably broken too
                self._drop_idle()
            else:
                time.sleep(_CHANCE.uniform(0.0, 0.005 * 2**turn))
        raise AssertionError("unreachable: the last turn returns or raises")

    def once(self, statement: str, values: Sequence[object] = ()) -> Answer:
        """Run one statement once.

        Raises:
            psycopg.Error: unchanged.
        """
        connection = self._taken()
        try:
            with connection.cursor(binary=True) as cursor:
                cursor.execute(statement.encode(), values)
                answer = Answer(cursor.fetchall() if cursor.description else (), cursor.rowcount)
        except BaseException as error:
            # A statement without an answer may still run: its connection cannot be used again.
            if not isinstance(error, psycopg.Error) or _is_lost(error):
                connection.close()
            self._put_back(connection)
            raise
        self._put_back(connection)
        return answer

    def close(self) -> None:
        """Close the connections; a running statement ends first."""
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
    """True if the connection is lost, or unusable."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(("08", "57P", "25006"))


def translated(error: psycopg.Error) -> RemoteError:
    """Convert an error of psycopg."""
    text = str(error).strip() or type(error).__name__
    state = error.sqlstate
    lasting = (
        next((hint for words, hint in _FOR_GOOD.items() if words in text), None) if state is None else None
    )
    if state is None:
        passing = isinstance(error, psycopg.OperationalError) and lasting is None
    else:
        passing = state.startswith(_PASSING)
    return RemoteError(
        f"PostgreSQL: {text}",
        retryable=passing,
        details={"sqlstate": state} if state else {},
        hint=_HINTS.get(state or "") or lasting or (LATER if passing else None),
    )
