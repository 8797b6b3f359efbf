"""PostgreSQL remote, also for compatible servers: Aurora, CockroachDB, YugabyteDB, Citus.

Two tables, no index besides their primary keys, one statement per transaction, and only SQL that all of them support:
no sequence, foreign key, trigger, advisory lock, savepoint or system column. Every key begins with the tenant, so
that a cluster can partition the tables by it and the server can separate tenants.

The version of a head is a random UUID chosen by the client, not a counter of the server: it never repeats, even if a
head was removed and created again; and a client that retries because an answer was lost recognises its own version.

The server may be gone, slow, or behind a pooler. Every statement may be repeated, so none depends on an earlier
connection. A connection that broke while idle is replaced silently: servers and routers close them all the time. A
statement with a serialization failure (40001) is repeated at once. No statement is prepared and no session variable
is set, because a pooler sends the next statement to another server connection. A limit on the server
(``statement_timeout``) would be such a variable: the limit is enforced by the local clock instead, which also works
if the server stops responding.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sessionary.errors import RemoteError, Unsupported
from sessionary.sync.remote import (
    LATER,
    Block,
    BlockPage,
    BlockStat,
    HeadPage,
    HeadRecord,
    StatPage,
    refuse_large,
)

try:
    import psycopg
    from psycopg import conninfo as parameters
    from psycopg.abc import PQGen
except ImportError as error:
    raise Unsupported(
        f"PostgreSQL needs psycopg, which cannot be imported: {error}",
        hint="pip install 'sessionary[postgres]'",
    ) from error

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


SCHEMA = "sessionary"
PAGE_BYTES = 8 << 20
FEWEST, MOST = 16, 256
PAGE_HEADS, PAGE_STATS = 500, 1000

_BLOCKS = """CREATE TABLE IF NOT EXISTS {schema}.blocks (
    tenant text {bytewise} NOT NULL, space text {bytewise} NOT NULL, id text {bytewise} NOT NULL,
    data bytea NOT NULL, put_at timestamptz DEFAULT now(), PRIMARY KEY (tenant, space, id))"""
_MICROSECONDS = "CAST(extract(epoch FROM put_at) * 1000000 AS bigint)"
_HEADS = """CREATE TABLE IF NOT EXISTS {schema}.heads (
    tenant text {bytewise} NOT NULL, name text {bytewise} NOT NULL,
    version uuid NOT NULL, data bytea NOT NULL, PRIMARY KEY (tenant, name))"""
# In this order: where the second is in force, the first exists.
_SEPARATION = (
    "CREATE POLICY own_rows ON {schema}.{table} USING (tenant = current_user) WITH CHECK (tenant = current_user)",
    "ALTER TABLE {schema}.{table} ENABLE ROW LEVEL SECURITY",
)
_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT ON {schema}.blocks TO {role}",
    "GRANT SELECT, INSERT, UPDATE ON {schema}.heads TO {role}",
)
_REMOVAL = "GRANT DELETE ON {schema}.blocks TO {role}"
# The server does not support this clause, this collation, or this feature.
_NOT_KNOWN = ("0A000", "42601", "42704", "42P21", "22023")
_NOT_ALLOWED = "42501"
_DIVISION_BY_ZERO = "22012"
_THERE_ALREADY = ("42710", "42P06", "42P07", "23505")


class PostgresRemote:
    """One tenant's blocks and heads in a PostgreSQL database.

    Args:
        conninfo: a connection string or URL, as libpq accepts it. For a remote server it should contain
            ``sslmode=verify-full``.
        tenant: the owner of the sessions. If roles are separated (see `prepare`), the name of the role.
        schema: the schema of the tables.
        patience: seconds to wait for an answer.
    """

    settled_after = 5.0

    def __init__(self, conninfo: str, *, tenant: str, schema: str = SCHEMA, patience: float = ANSWER) -> None:
        self._calls = Connections(conninfo, patience=patience)
        self._tenant = tenant
        self._schema = schema
        self._rows = 64
        self._blocks, self._heads = (f"{quoted(schema)}.{table}" for table in ("blocks", "heads"))

    # -- the verbs

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        refuse_large(block, data)
        answer = self._calls.run(
            f"INSERT INTO {self._blocks} (tenant, space, id, data) VALUES (%s, %s, %s, %b) "
            "ON CONFLICT (tenant, space, id) DO NOTHING",
            (self._tenant, space, block, data),
        )
        return answer.touched == 1

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        low, beyond = (first, ">=") if after is None else (after, ">")
        rows = self._rows
        found = self._calls.run(
            f"SELECT id, data FROM {self._blocks} WHERE tenant = %s AND space = %s "
            f"AND id {beyond} %s AND id < %s ORDER BY id LIMIT {rows}",
            (self._tenant, space, low, stop),
        ).rows
        blocks = tuple(Block(name, bytes(data)) for name, data in found)
        if blocks:
            # The next page should have about PAGE_BYTES: many blocks of single turns, or few of whole logs.
            each = max(1, sum(len(block.data) for block in blocks) // len(blocks))
            self._rows = max(FEWEST, min(MOST, PAGE_BYTES // each))
        return BlockPage(blocks, blocks[-1].id if len(blocks) == rows else None)

    def read_head(self, name: str) -> HeadRecord | None:
        rows = self._calls.run(
            f"SELECT name, data, version FROM {self._heads} WHERE tenant = %s AND name = %s",
            (self._tenant, name),
        ).rows
        return _record(*rows[0]) if rows else None

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        refuse_large(name, data)
        new = uuid.uuid4()
        mine = f"SELECT 1 FROM {self._heads} WHERE tenant = %s AND name = %s AND version = %s"
        if etag is None:
            statement = (
                f"INSERT INTO {self._heads} (tenant, name, version, data) VALUES (%s, %s, %s, %b) "
                "ON CONFLICT (tenant, name) DO NOTHING"
            )
            values: tuple[object, ...] = (self._tenant, name, new, data)
        else:
            statement = (
                f"UPDATE {self._heads} SET version = %s, data = %b "
                "WHERE tenant = %s AND name = %s AND CAST(version AS text) = %s"
            )
            values = (new, data, self._tenant, name, etag)
        answer = self._calls.run(statement, values, confirm=(mine, (self._tenant, name, new)))
        return str(new) if answer.touched == 1 else None

    def list_heads(self, after: str | None = None) -> HeadPage:
        rows = self._calls.run(
            f"SELECT name, data, version FROM {self._heads} WHERE tenant = %s AND name > %s "
            f"ORDER BY name LIMIT {PAGE_HEADS}",
            (self._tenant, after or ""),
        ).rows
        heads = tuple(_record(*row) for row in rows)
        return HeadPage(heads, heads[-1].name if len(heads) == PAGE_HEADS else None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        low, beyond = (first, ">=") if after is None else (after, ">")
        rows = self._calls.run(
            f"SELECT id, octet_length(data), extract(epoch FROM now() - put_at), {_MICROSECONDS} "
            f"FROM {self._blocks} WHERE tenant = %s AND space = %s "
            f"AND id {beyond} %s AND id < %s ORDER BY id LIMIT {PAGE_STATS}",
            (self._tenant, space, low, stop),
        ).rows
        stats = tuple(_stat(*row) for row in rows)
        return StatPage(stats, stats[-1].id if len(stats) == PAGE_STATS else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        answer = self._calls.run(
            f"DELETE FROM {self._blocks} WHERE tenant = %s AND space = %s AND id = %s "
            f"AND CAST({_MICROSECONDS} AS text) = %s",
            (self._tenant, space, block, version),
        )
        return answer.touched == 1

    # -- setting up

    def prepare(self) -> bool:
        """Create schema and tables if missing, and let the server separate the roles of tenants.

        Checks that this role can write as this tenant, even if everything existed.

        From then on the owner of the tables may do everything, and every other admitted role (see `admit`) reads and
        changes only the rows whose tenant is its own name.

        Returns:
            True if the server separates tenants. If it cannot, every role that may read the tables may read all of
            them: give each tenant its own schema or database.

        Raises:
            RemoteError: the tables are missing and cannot be created, or this role cannot write to them.
            Unsupported: this server does not sort text by its bytes.
        """
        if not self._is_there():
            self._create()
        if not self._is_separated():
            self._separate()
        self._prove_writing()
        return self._is_separated()

    def admit(self, role: str, *, may_remove: bool = False) -> None:
        """Let a role use the tables, as the tenant of its own name. It may add blocks, but not change them.

        Args:
            role: an existing role with login.
            may_remove: also allow it to remove its own blocks, for `sync gc --remove`.

        Raises:
            RemoteError: the role does not exist, or this role may not admit it.
        """
        for grant in (*_GRANTS, *((_REMOVAL,) if may_remove else ())):
            self._calls.run(grant.format(schema=quoted(self._schema), role=quoted(role)))

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    def _prove_writing(self) -> None:
        """Check write permission: insert a row into each table and roll back, and run an update that matches no row.

        The rollback needs no permission to delete: the statement fails after its write, by a division by the length
        of what it wrote.
        """
        for statement, values in (
            (
                f"INSERT INTO {self._blocks} (tenant, space, id, data) VALUES (%s, 'check', 'check', %b)",
                (self._tenant, b""),
            ),
            (
                f"INSERT INTO {self._heads} (tenant, name, version, data) VALUES (%s, 'check', %s, %b)",
                (self._tenant, uuid.uuid4(), b""),
            ),
        ):
            try:
                self._calls.run(f"{statement} RETURNING 1 / octet_length(data)", values)
            except RemoteError as error:
                if error.details.get("sqlstate") != _DIVISION_BY_ZERO:
                    raise
        self._calls.run(
            f"UPDATE {self._heads} SET data = data WHERE tenant = %s AND name IS NULL", (self._tenant,)
        )

    def _is_there(self) -> bool:
        for table in (self._blocks, self._heads):
            try:
                self._calls.run(f"SELECT 1 FROM {table} LIMIT 0")
            except RemoteError as error:
                if error.details.get("sqlstate") in ("42P01", "3F000"):
                    return False
                raise
        return True

    def _create(self) -> None:
        schema = quoted(self._schema)
        self._define(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        bytewise = 'COLLATE "C"'
        for table in (_BLOCKS, _HEADS):
            # CockroachDB and similar servers have only this collation, and no name for it.
            if not self._define(table.format(schema=schema, bytewise=bytewise)):
                bytewise = ""
                self._refuse_other_orders()
                self._define(table.format(schema=schema, bytewise=bytewise), refused=())

    def _separate(self) -> None:
        for table in ("blocks", "heads"):
            for statement in _SEPARATION:
                filled = statement.format(schema=quoted(self._schema), table=table)
                self._define(filled, refused=(*_NOT_KNOWN, _NOT_ALLOWED))

    def _define(self, statement: str, refused: tuple[str, ...] = _NOT_KNOWN) -> bool:
        """Run an idempotent statement; False if it was refused for one of these reasons."""
        try:
            self._calls.run(statement)
        except RemoteError as error:
            state = error.details.get("sqlstate")
            if state in refused:
                return False
            if state not in _THERE_ALREADY:
                raise
        return True

    def _refuse_other_orders(self) -> None:
        rows = self._calls.run("SELECT 'Z' < 'a' AND 'a-1' < 'a.1' AND 'a.1' < 'a1' AND 'a1' < 'a_1'").rows
        if rows != [(True,)]:
            raise Unsupported(
                "this database does not sort text by its bytes, and has no collation that does",
                hint="create a database with the collation C",
            )

    def _is_separated(self) -> bool:
        try:
            rows = self._calls.run(
                "SELECT c.relname FROM pg_catalog.pg_class c "
                "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = %s AND c.relname IN ('blocks', 'heads') AND c.relrowsecurity",
                (self._schema,),
            ).rows
        except RemoteError as error:
            if error.retryable:
                raise
            return False
        return len(rows) == 2


def quoted(name: str) -> str:
    """Quote an SQL identifier. Percent signs are doubled: the driver would take them for placeholders."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def _record(name: str, data: bytes, version: uuid.UUID) -> HeadRecord:
    return HeadRecord(name, bytes(data), str(version))


def _stat(name: str, size: int, age: Any, put: int | None) -> BlockStat:
    if age is None or put is None:
        return BlockStat(name, size, None, "")
    return BlockStat(name, size, max(0.0, float(age)), str(put))
