"""PostgreSQL keeps the rules of a remote, keeps its tenants apart, and survives what servers and networks do."""

import socket
import sys
import time
from collections.abc import Iterator, Sequence

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from sessionary.errors import RemoteError, Unsupported
from sessionary.sync.remote import blocks_of, heads_of, stats_of
from sessionary.sync.remotes import open_remote
from sessionary.sync.remotes.postgres import Answer, Connections, PostgresRemote
from sessionary.testing.remote_suite import SPACE, RemoteTests, at_once, ids
from tests.servers import postgres
from tests.support.bad_network import BadNetwork
from tests.support.postgres_server import PostgresServer

COLUMNS = "(tenant, space, id, data)"


@pytest.mark.lane("postgres")
class TestPostgres(RemoteTests):
    server = staticmethod(postgres.server)
    separates = True

    @pytest.fixture(autouse=True)
    def store(self) -> Iterator[None]:
        self.conninfo = self.server().conninfo
        self.schema = postgres.fresh_schema()
        self.raw = psycopg.connect(self.conninfo, autocommit=True)
        self.opened: list[PostgresRemote] = []
        assert self.remote().prepare() is self.separates
        yield
        self.raw.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(self.schema)))
        self.raw.close()
        for remote in self.opened:
            remote.close()

    def remote(self, tenant: str = "me") -> PostgresRemote:
        self.opened.append(PostgresRemote(self.conninfo, tenant=tenant, schema=self.schema))
        return self.opened[-1]

    def get_raw(self, space: str, block: str) -> bytes | None:
        where = "WHERE tenant = 'me' AND space = %s AND id = %s"
        row = self.raw.execute(f"SELECT data FROM {self.schema}.blocks {where}", (space, block)).fetchone()
        return bytes(row[0]) if row else None

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        values = ("me", space, block, data)
        self.raw.execute(f"INSERT INTO {self.schema}.blocks {COLUMNS} VALUES (%s, %s, %s, %s)", values)

    # -- what this one has beside the suite

    def test_pages_of_a_range_follow_the_size_of_its_blocks(self) -> None:
        for n in range(400):
            self.put_raw(SPACE, f"a-{n:08}", b"x")
        remote = self.remote()
        sizes = []
        page = remote.read_range(SPACE, "a", "b")
        while page.following is not None:
            sizes.append(len(page.blocks))
            page = remote.read_range(SPACE, "a", "b", page.following)
        assert (sizes, len(page.blocks)) == ([64, 256], 80)

    def test_what_is_larger_than_a_block_may_be_is_refused(self) -> None:
        with pytest.raises(RemoteError, match="may have 393216") as caught:
            self.remote().put_block(SPACE, "a", bytes(393_217))
        assert not caught.value.retryable

    def test_a_version_does_not_come_back_where_a_head_was_removed_and_made_anew(self) -> None:
        remote = self.remote()
        first = remote.swap_head("one", b"1", None)
        self.raw.execute(f"DELETE FROM {self.schema}.heads")
        assert remote.swap_head("one", b"1", first) is None
        assert remote.swap_head("one", b"1", None) not in (None, first)
        assert remote.swap_head("one", b"2", first) is None

    def test_the_etag_of_another_remote_is_not_a_version_here(self) -> None:
        remote = self.remote()
        remote.swap_head("one", b"1", None)
        for etag in ("17", "", '"0x8DC"', "'; DROP TABLE heads"):
            assert remote.swap_head("one", b"2", etag) is None

    def test_tables_may_be_prepared_many_times_at_once(self) -> None:
        self.schema += '"%s'
        assert at_once(6, lambda n: self.remote().prepare()) == [self.separates] * 6
        assert self.remote().put_block(SPACE, "a", b"1")

    def test_tables_that_are_missing_are_reported_with_the_remedy(self) -> None:
        remote = PostgresRemote(self.conninfo, tenant="me", schema="nowhere")
        with pytest.raises(RemoteError, match="does not exist") as caught:
            remote.read_head("one")
        remote.close()
        assert not caught.value.retryable
        assert "sync init" in (caught.value.hint or "")

    def test_a_server_that_may_only_be_read_is_reported_when_it_is_prepared(self) -> None:
        """Also where the tables are there: nothing has to be made then."""
        reading = make_conninfo(self.conninfo, options="-c default_transaction_read_only=on")
        remote = PostgresRemote(reading, tenant="me", schema=self.schema)
        with pytest.raises(RemoteError, match="read-only") as caught:
            remote.prepare()
        remote.close()
        assert "primary" in (caught.value.hint or "")

    def test_preparing_leaves_no_row_behind(self) -> None:
        remote = self.remote()
        remote.prepare()
        assert remote.list_heads().heads == ()
        for table in ("blocks", "heads"):
            assert self.raw.execute(f"SELECT count(*) FROM {self.schema}.{table}").fetchone() == (0,)

    def test_an_age_is_measured_by_the_clock_of_the_server(self) -> None:
        self.put("a-00000000-f")
        self.raw.execute(f"UPDATE {self.schema}.blocks SET put_at = now() - interval '40 days'")
        age = self.stat("a-00000000-f").age
        assert age is not None
        assert 40 * 86_400 <= age < 40 * 86_400 + 60

    def test_a_remote_that_was_closed_says_so(self) -> None:
        remote = self.remote()
        remote.close()
        with pytest.raises(RemoteError, match="has been closed") as caught:
            remote.read_head("one")
        assert not caught.value.retryable


@pytest.mark.lane("postgres-of-system")
class TestPostgresOfTheSystem(TestPostgres):
    server = staticmethod(postgres.of_system)


@pytest.mark.lane("postgres")
class TestRolesOfTenants:
    """Every user has a role of his own; a stolen connection string gives access only to the rows of its role."""

    @pytest.fixture(autouse=True)
    def store(self) -> Iterator[None]:
        self.conninfo = postgres.server().conninfo
        self.schema = postgres.fresh_schema()
        self.roles = [f"{self.schema}_{name}" for name in ("ann", "bob@example.org", "stranger")]
        self.raw = psycopg.connect(self.conninfo, autocommit=True)
        owner = PostgresRemote(self.conninfo, tenant="owner", schema=self.schema)
        assert owner.prepare()
        for role in self.roles:
            self.raw.execute(SQL("CREATE ROLE {} LOGIN").format(Identifier(role)))
        for role in self.roles[:2]:
            owner.admit(role)
            owner.admit(role)
        owner.close()
        self.opened: list[PostgresRemote] = []
        self.ann, self.bob = (self.remote(role, role) for role in self.roles[:2])
        yield
        for remote in self.opened:
            remote.close()
        self.raw.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(self.schema)))
        for role in self.roles:
            self.raw.execute(SQL("DROP ROLE {}").format(Identifier(role)))
        self.raw.close()

    def remote(self, role: str, tenant: str) -> PostgresRemote:
        conninfo = make_conninfo(self.conninfo, user=role)
        self.opened.append(PostgresRemote(conninfo, tenant=tenant, schema=self.schema))
        return self.opened[-1]

    def as_role(self, role: str, statement: str) -> int:
        """Run any SQL as this role; returns how many rows it touched."""
        with psycopg.connect(make_conninfo(self.conninfo, user=role)) as connection:
            return connection.execute(statement.replace("@", self.schema)).rowcount

    def test_a_role_uses_the_tables_as_its_own_tenant(self) -> None:
        etag = self.ann.swap_head("one", b"1", None)
        assert self.ann.swap_head("one", b"2", etag) is not None
        assert self.ann.put_block(SPACE, "a", b"x") is True
        assert self.ann.put_block(SPACE, "a", b"y") is False
        assert ids(self.ann) == ["a"]
        assert self.ann.prepare(), "who is let in may set up a second machine"

    def test_a_role_that_says_it_is_another_tenant_sees_and_changes_nothing(self) -> None:
        etag = self.ann.swap_head("one", b"ann's", None)
        self.ann.put_block(SPACE, "a", b"ann's")
        thief = self.remote(self.roles[1], self.roles[0])
        assert thief.read_head("one") is None
        assert list(heads_of(thief)) == []
        assert ids(thief) == []
        assert thief.swap_head("one", b"bob's", etag) is None
        for write in (
            lambda: thief.put_block(SPACE, "b", b"bob's"),
            lambda: thief.put_block(SPACE, "a", b"bob's"),
            lambda: thief.swap_head("two", b"bob's", None),
            lambda: thief.swap_head("one", b"bob's", None),
        ):
            with pytest.raises(RemoteError, match="row-level security") as caught:
                write()
            assert not caught.value.retryable
        assert self.ann.read_head("one") == ("one", b"ann's", etag)
        assert list(blocks_of(self.ann, SPACE, "", "~")) == [("a", b"ann's")]

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM @.heads",
            "SELECT * FROM @.blocks",
            "UPDATE @.heads SET data = 'x'",
        ],
    )
    def test_any_sql_of_another_role_touches_no_row(self, statement: str) -> None:
        self.ann.swap_head("one", b"ann's", None)
        self.ann.put_block(SPACE, "a", b"ann's")
        assert self.as_role(self.roles[1], statement) == 0
        assert self.as_role(self.roles[0], statement) == 1

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE @.heads SET tenant = 'x'",
            "DELETE FROM @.heads",
            "DELETE FROM @.blocks",
            "UPDATE @.blocks SET data = 'x'",
            "TRUNCATE @.blocks",
            "DROP TABLE @.blocks",
            "ALTER TABLE @.blocks DISABLE ROW LEVEL SECURITY",
        ],
    )
    def test_not_even_its_own_rows_can_a_role_remove_or_give_away(self, statement: str) -> None:
        self.ann.swap_head("one", b"ann's", None)
        self.ann.put_block(SPACE, "a", b"ann's")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            self.as_role(self.roles[0], statement)

    def test_a_role_removes_blocks_of_its_own_once_it_is_allowed_to(self) -> None:
        for remote in (self.ann, self.bob):
            remote.put_block(SPACE, "a", b"x")
        (stat,) = stats_of(self.ann, SPACE)
        for block in ("a", "not there"):
            with pytest.raises(RemoteError, match="permission denied") as caught:
                self.ann.delete_block(SPACE, block, stat.version)
            assert not caught.value.retryable
        assert ids(self.ann) == ["a"]
        self.remote("owner", "owner").admit(self.roles[0], may_remove=True)
        thief = self.remote(self.roles[0], self.roles[1])
        assert list(stats_of(thief, SPACE)) == []
        assert thief.delete_block(SPACE, "a", stat.version) is False
        assert self.ann.delete_block(SPACE, "a", stat.version) is True
        assert (ids(self.ann), ids(self.bob)) == ([], ["a"])

    def test_a_role_that_was_not_let_in_gets_an_error(self) -> None:
        stranger = self.remote(self.roles[2], self.roles[2])
        with pytest.raises(RemoteError, match="permission denied") as caught:
            stranger.read_head("one")
        assert not caught.value.retryable
        assert "not admitted" in (caught.value.hint or "")

    def test_where_the_tables_are_open_to_all_it_is_said(self) -> None:
        for table in ("blocks", "heads"):
            name = SQL("{}.{}").format(Identifier(self.schema), Identifier(table))
            self.raw.execute(SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(name))
        assert self.ann.prepare() is False
        assert self.remote("owner", "owner").prepare() is True


@pytest.mark.lane("postgres")
class TestSerializable(TestPostgres):
    """As CockroachDB and Aurora DSQL have it: who comes second is sent away with 40001, and has to ask again."""

    def remote(self, tenant: str = "me") -> PostgresRemote:
        strict = "-c default_transaction_isolation=serializable"
        conninfo = make_conninfo(self.conninfo, options=strict)
        self.opened.append(PostgresRemote(conninfo, tenant=tenant, schema=self.schema))
        return self.opened[-1]


class LesserEngine(Connections):
    """PostgreSQL without what the engines lack that are like it, and in their words."""

    def once(self, statement: str, values: Sequence[object] = ()) -> Answer:
        if "COLLATE" in statement:
            raise psycopg.errors.FeatureNotSupported("no collation but one")
        if "ROW LEVEL" in statement or "POLICY" in statement:
            raise psycopg.errors.SyntaxError("what is a policy?")
        if "pg_catalog" in statement:
            raise psycopg.errors.UndefinedTable("there is no such catalogue")
        return super().once(statement, values)


@pytest.mark.lane("postgres")
class TestLesserEngine(TestPostgres):
    """As CockroachDB and Aurora DSQL have it: sort order and separate roles cannot be configured."""

    separates = False

    def remote(self, tenant: str = "me") -> PostgresRemote:
        remote = super().remote(tenant)
        remote._calls = LesserEngine(self.conninfo)
        return remote


@pytest.mark.lane("postgres-of-system")
def test_a_database_that_sorts_by_a_language_and_cannot_do_otherwise_is_refused() -> None:
    """By the server of the system, because the other one is built without languages."""
    conninfo = postgres.of_system().conninfo
    name = postgres.fresh_schema()
    with psycopg.connect(conninfo, autocommit=True) as raw:
        raw.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
        english = make_conninfo(conninfo, dbname=name)
        remote = PostgresRemote(english, tenant="me")
        remote._calls = LesserEngine(english)
        with pytest.raises(Unsupported, match="does not sort text by its bytes"):
            remote.prepare()
        remote.close()
        able = PostgresRemote(english, tenant="me")
        assert able.prepare()
        for block in ("b", "A", "a", "B"):
            able.put_block(SPACE, block, b"x")
        assert ids(able) == ["A", "B", "a", "b"]
        able.close()
        raw.execute(f"DROP DATABASE {name}")


@pytest.mark.lane("postgres")
class TestBadNetwork:
    @pytest.fixture(autouse=True)
    def store(self) -> Iterator[None]:
        server = postgres.server()
        schema = postgres.fresh_schema()

        def reach() -> socket.socket:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(server.socket))
            return connection

        with BadNetwork(reach) as self.network:
            conninfo = make_conninfo(server.conninfo, host="127.0.0.1", port=self.network.port)
            self.hasty = PostgresRemote(conninfo, tenant="me", schema=schema, patience=2)
            self.remote = PostgresRemote(conninfo, tenant="me", schema=schema)
            self.direct = PostgresRemote(server.conninfo, tenant="me", schema=schema)
            self.remote.prepare()
            yield
            self.network.heal()
            self.remote.close()
            self.hasty.close()
        self.direct.close()
        with psycopg.connect(server.conninfo) as raw:
            raw.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))

    def test_one_connection_serves_all_calls_that_come_one_by_one(self) -> None:
        for n in range(5):
            self.remote.put_block(SPACE, f"a-{n}", b"x")
        assert self.network.passed == 1

    def test_a_connection_that_was_closed_while_idle_is_replaced_without_a_word(self) -> None:
        for n in range(3):
            self.network.cut()
            assert self.remote.put_block(SPACE, f"a-{n}", b"x") is True
        assert self.network.passed == 4

    def test_a_swap_whose_answer_was_lost_knows_its_own_version(self) -> None:
        self.network.lose_next_answer()
        first = self.remote.swap_head("one", b"1", None)
        assert first is not None
        assert self.direct.read_head("one") == ("one", b"1", first)
        self.network.lose_next_answer()
        second = self.remote.swap_head("one", b"2", first)
        assert second is not None
        assert self.direct.read_head("one") == ("one", b"2", second)

    def test_a_refused_swap_differs_from_a_lost_answer(self) -> None:
        first = self.direct.swap_head("one", b"1", None)
        second = self.direct.swap_head("one", b"2", first)
        self.network.lose_next_answer()
        assert self.remote.swap_head("one", b"3", first) is None
        self.network.lose_next_answer()
        assert self.remote.swap_head("one", b"3", None) is None
        assert self.direct.read_head("one") == ("one", b"2", second)

    def test_a_put_whose_answer_was_lost_is_done(self) -> None:
        self.network.lose_next_answer()
        self.remote.put_block(SPACE, "a", b"x")
        assert list(blocks_of(self.direct, SPACE, "", "~")) == [("a", b"x")]

    def test_a_server_that_falls_silent_is_given_up_in_time_and_asked_anew_later(self) -> None:
        self.hasty.put_block(SPACE, "a", b"x")
        self.network.fall_silent()
        started = time.monotonic()
        with pytest.raises(RemoteError) as caught:
            self.hasty.read_head("one")
        assert time.monotonic() - started < 30  # else it is given up after 60
        assert caught.value.retryable
        self.network.heal()
        assert ids(self.hasty) == ["a"]

    def test_a_server_that_cannot_be_reached_may_be_asked_again(self) -> None:
        self.network.refuse()
        with pytest.raises(RemoteError) as caught:
            self.remote.read_head("one")
        assert caught.value.retryable
        self.network.heal()
        assert self.remote.read_head("one") is None

    def test_no_prepared_statement_or_session_setting_leaks_through_a_pooler(self) -> None:
        for _ in range(20):
            self.remote.read_head("one")
        calls = self.remote._calls
        assert self.network.passed == 1
        assert calls.run("SELECT count(*) FROM pg_prepared_statements").rows == [(0,)]
        assert calls.run("SELECT name FROM pg_settings WHERE source = 'session'").rows == []


@pytest.mark.lane("postgres")
@pytest.mark.parametrize("wrong", [{"user": "nobody-of-that-name"}, {"dbname": "nothing"}])
def test_a_wrong_address_is_not_retried(wrong: dict[str, str]) -> None:
    remote = PostgresRemote(make_conninfo(postgres.server().conninfo, **wrong), tenant="me")
    with pytest.raises(RemoteError, match="does not exist") as caught:
        remote.read_head("one")
    assert not caught.value.retryable


@pytest.mark.lane("postgres")
def test_a_server_that_was_started_again_is_found_again() -> None:
    with PostgresServer() as server:
        remote = PostgresRemote(server.conninfo, tenant="me")
        remote.prepare()
        etag = remote.swap_head("one", b"1", None)
        server.stop()
        with pytest.raises(RemoteError) as caught:
            remote.read_head("one")
        assert caught.value.retryable
        server.start()
        assert remote.read_head("one") == ("one", b"1", etag)
        remote.close()


def test_a_missing_driver_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "sessionary.sync.remotes.postgres")
    with pytest.raises(Unsupported, match="psycopg") as caught:
        open_remote("postgresql://host/database", "me")
    assert caught.value.hint == "pip install 'sessionary[postgres]'"
