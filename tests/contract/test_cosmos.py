"""The remote in Cosmos DB passes the suite on a server that others wrote, on a strict double, and on a real account."""

from abc import abstractmethod
from typing import Any

import pytest

from sessionary.testing.remote_suite import RemoteTests
from tests.servers.cosmos import Bench, Double, Npm, Real, Server


class CosmosTests(RemoteTests):
    """The suite, for any server."""

    @abstractmethod
    def server(self) -> Server: ...

    def setup_method(self) -> None:
        self.bench = Bench(self.server())

    def teardown_method(self) -> None:
        self.bench.close()

    def remote(self, tenant: str = "me") -> Any:
        return self.bench.remote(tenant)

    def get_raw(self, space: str, block: str) -> bytes | None:
        return self.bench.get_raw(space, block)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        self.bench.put_raw(space, block, data)


class TestDouble(CosmosTests):
    def server(self) -> Server:
        return Double()


@pytest.mark.lane("cosmos-npm")
class TestNpm(CosmosTests):
    def server(self) -> Server:
        return Npm()


@pytest.mark.lane("cosmos-real")
class TestReal(CosmosTests):
    def server(self) -> Server:
        return Real()
