"""The remotes that the same proofs run over: each by its lane, and by how to get an empty one."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from sessionary.sync.remotes.postgres import PostgresRemote
from tests.servers import objects
from tests.servers.postgres import fresh_schema, server
from tests.support.sync_torture import Address

_numbers = itertools.count()
_OBJECTS = "sessionary.sync.remotes.objects:ObjectStoreRemote"


def postgres() -> Address:
    """A tenant that is new to PostgreSQL."""
    arguments = {"conninfo": server().conninfo, "schema": _postgres_schema()}
    return _address(
        "sessionary.sync.remotes.postgres:PostgresRemote", **arguments, tenant=f"t{next(_numbers)}"
    )


@cache
def _postgres_schema() -> str:
    schema = fresh_schema()
    remote = PostgresRemote(server().conninfo, tenant="owner", schema=schema)
    remote.prepare()
    remote.close()
    return schema


def s3() -> Address:
    """A prefix that is new to the bucket."""
    return _address(_OBJECTS, url=objects.s3_address(), tenant="me", **objects.moto())


def azurite() -> Address:
    """A prefix that is new to the container."""
    return _address(_OBJECTS, url=objects.azure_address(), tenant="me", **objects.azurite())


def _address(remote: str, **arguments: Any) -> Address:
    return {"remote": remote, "arguments": arguments}


def _param(make: Callable[[], Address]) -> Any:
    return pytest.param(make, id=make.__name__, marks=pytest.mark.lane(make.__name__))


REMOTES = [_param(postgres), _param(s3), _param(azurite)]
"""For ``@pytest.mark.parametrize("empty", REMOTES)``: each gives the address of an empty remote, again and again."""
