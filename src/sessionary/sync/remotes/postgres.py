"""PostgreSQL remote, also for compatible servers: Aurora, CockroachDB, YugabyteDB, Citus.

Two tables, no index besides their primary keys, one statement per transaction, and only SQL that all of them support:
no sequence, foreign key, trigger, advisory lock, savepoint or system column. Every key begins with the tenant, so
that a cluster can partition the tables by it and the server can separate tenants.

The version of a head is a random UUID chosen by the client, not a counter of the server: it never repeats, even if a
head was removed and created again; and a client that retries because an answer was lost recognises its own version.

The time of a block's put is in a column that was added later. A schema without it keeps working: no block has an age,
so none is removed, until the owner runs `prepare` again.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sessionary.errors import RemoteError, Unsupported
from sessionary.sync.remote import (
    LARGEST_BLOCK,
    Block,
    BlockPage,
    BlockStat,
    HeadPage,
    HeadRecord,
    StatPage,
)

if TYPE_CHECKING:
    from sessionary.sync.remotes.postgres_calls import Connections

SCHEMA = "sessionary"
PAGE_BYTES = 8 << 20
FEWEST, MOST = 16, 256
PAGE_HEADS, PAGE_STATS = 500, 1000

_BLOCKS = """CREATE TABLE IF NOT EXISTS {schema}.blocks (
    tenant text {bytewise} NOT NULL, space text {bytewise} NOT NULL, id text {bytewise} NOT NULL,
    data bytea NOT NULL, put_at timestamptz DEFAULT now(), PRIMARY KEY (tenant, space, id))"""
_DATED = "ALTER TABLE {schema}.blocks ADD COLUMN IF NOT EXISTS put_at timestamptz DEFAULT now()"
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
_NO_COLUMN = "42703"
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

    Raises:
        Unsupported: psycopg is not installed.
    """

    settled_after = 5.0

    def __init__(
        self, conninfo: str, *, tenant: str, schema: str = SCHEMA, patience: float | None = None
    ) -> None:
        self._calls = _connections(conninfo, patience)
        self._tenant = tenant
        self._schema = schema
        self._rows = 64
        self._blocks, self._heads = (f"{quoted(schema)}.{table}" for table in ("blocks", "heads"))

    # -- the five verbs

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        _refuse_large(block, data)
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
        _refuse_large(name, data)
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

    # -- the sixth

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        try:
            rows = self._stats(
                "extract(epoch FROM now() - put_at), " + _MICROSECONDS, space, first, stop, after
            )
        except RemoteError as error:
            if error.details.get("sqlstate") != _NO_COLUMN:
                raise
            rows = self._stats("NULL, NULL", space, first, stop, after)
        stats = tuple(_stat(*row) for row in rows)
        return StatPage(stats, stats[-1].id if len(stats) == PAGE_STATS else None)

    def _stats(
        self, put: str, space: str, first: str, stop: str, after: str | None
    ) -> Sequence[tuple[Any, ...]]:
        low, beyond = (first, ">=") if after is None else (after, ">")
        return self._calls.run(
            f"SELECT id, octet_length(data), {put} FROM {self._blocks} WHERE tenant = %s AND space = %s "
            f"AND id {beyond} %s AND id < %s ORDER BY id LIMIT {PAGE_STATS}",
            (self._tenant, space, low, stop),
        ).rows

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
        elif not self._is_dated():
            self._define(_DATED.format(schema=quoted(self._schema)), refused=(*_NOT_KNOWN, _NOT_ALLOWED))
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

    def _is_dated(self) -> bool:
        try:
            self._calls.run(f"SELECT put_at FROM {self._blocks} LIMIT 0")
        except RemoteError as error:
            if error.details.get("sqlstate") == _NO_COLUMN:
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


def _connections(conninfo: str, patience: float | None) -> Connections:
    try:
        from sessionary.sync.remotes.postgres_calls import ANSWER, Connections
    except ImportError as error:
        raise Unsupported(
            f"PostgreSQL needs psycopg, which cannot be imported: {error}",
            hint="pip install 'sessionary[postgres]'",
        ) from error
    return Connections(conninfo, patience=ANSWER if patience is None else patience)


def _refuse_large(name: str, data: bytes) -> None:
    if len(data) > LARGEST_BLOCK:
        raise RemoteError(f"{name} has {len(data)} bytes; a block or head may have {LARGEST_BLOCK}")
