"""Three servers that a `CosmosRemote` can talk to, each with a way around it into what it stores.

The npm server was written by others, and knows neither limits nor prices nor keys. The double is ours, and strict. An
account of Azure is asked only if the environment names one.
"""

import base64
import json
import os
import threading
import urllib.request
import uuid
from functools import cache
from typing import Any, Protocol

from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remotes.cosmos import CosmosRemote
from tests.servers import npm, process
from tests.support.cosmos_double import CosmosDouble

PACKAGE = "@vercel/cosmosdb-server"
Item = dict[str, Any]


class Server(Protocol):
    """A container on a server."""

    config: CosmosConfig

    def get(self, pk: str, id_: str) -> Item | None:
        """An item, going around the SDK."""
        ...

    def put(self, item: Item) -> None:
        """Store an item, going around the SDK."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Double:
    """The strict double, one for each use."""

    def __init__(self, **options: Any) -> None:
        self.double = CosmosDouble(**options)
        self.config = CosmosConfig(self.double.endpoint, "db", "box", key=self.double.key)

    def get(self, pk: str, id_: str) -> Item | None:
        found: Item | None = self._box().newest(pk, id_)
        return found

    def put(self, item: Item) -> None:
        self._box().put(item["pk"], item)

    def close(self) -> None:
        self.double.close()

    def _box(self) -> Any:
        return self.double.store.container("db", "box")


@cache
def _npm_port() -> int:
    script = npm.script(PACKAGE, "lib/cli.js")
    return process.start(
        lambda port, scratch: ["node", str(script), "--host", "127.0.0.1", "-p", str(port), "--no-ssl"]
    )


class Npm:
    """The server from npm: one process for all tests, a database for each use."""

    def __init__(self) -> None:
        self.config = CosmosConfig(f"http://127.0.0.1:{_npm_port()}/", f"db-{uuid.uuid4().hex}", "box")

    def get(self, pk: str, id_: str) -> Item | None:
        parameters = [{"name": "@pk", "value": pk}, {"name": "@id", "value": id_}]
        query = {"query": "SELECT * FROM c WHERE c.pk = @pk AND c.id = @id", "parameters": parameters}
        found = self._post(query, pk, "application/query+json", {"x-ms-documentdb-isquery": "True"})
        return next(iter(found["Documents"]), None)

    def put(self, item: Item) -> None:
        self._post(item, item["pk"], "application/json", {})

    def close(self) -> None:
        pass

    def _post(self, body: Item, pk: str, kind: str, headers: dict[str, str]) -> Any:
        url = f"{self.config.endpoint}dbs/{self.config.database}/colls/{self.config.container}/docs"
        headers |= {"x-ms-documentdb-partitionkey": json.dumps([pk]), "content-type": kind}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


class Real:
    """An account of Azure. The container is kept; each use has tenants of its own."""

    def __init__(self) -> None:
        env = {
            name: os.environ.get(f"SESSIONARY_TEST_COSMOS_{name}") for name in ("ENDPOINT", "DATABASE", "KEY")
        }
        self.config = CosmosConfig(
            env["ENDPOINT"] or "", env["DATABASE"] or "", "sessionary-test", key=env["KEY"] or None
        )
        self.client: Any = None

    def get(self, pk: str, id_: str) -> Item | None:
        query = "SELECT * FROM c WHERE c.pk = @pk AND c.id = @id"
        parameters = [{"name": "@pk", "value": pk}, {"name": "@id", "value": id_}]
        found: list[Item] = list(self._box().query_items(query, parameters=parameters, partition_key=pk))
        return found[0] if found else None

    def put(self, item: Item) -> None:
        self._box().upsert_item(item)

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    def _box(self) -> Any:
        from azure.cosmos import CosmosClient
        from azure.identity import DefaultAzureCredential

        if self.client is None:
            self.client = CosmosClient(self.config.endpoint, self.config.key or DefaultAzureCredential())
        database = self.client.get_database_client(self.config.database)
        return database.get_container_client(self.config.container)


class Bench:
    """One test's use of a server: tenants of its own, and connections that are closed at the end."""

    def __init__(self, server: Server, **options: Any) -> None:
        self.server = server
        self.options = options
        self.kind = CosmosRemote
        self._mark = uuid.uuid4().hex[:12]
        self._guard = threading.Lock()
        self._open: dict[str, list[CosmosRemote]] = {}
        self._asked = 0
        first = CosmosRemote(server.config, tenant="nobody")  # with all patience: machines are slow at times
        first.prepare()
        first.close()
        if isinstance(server, Double):
            server.double.requests.clear()  # what a test counts begins here

    def tenant(self, name: str) -> str:
        """What a tenant of this test is called on the server."""
        return f"{name}-{self._mark}"

    def connect(self, tenant: str = "me") -> CosmosRemote:
        """A new connection."""
        remote = self.kind(self.server.config, tenant=self.tenant(tenant), **self.options)
        with self._guard:
            self._open.setdefault(tenant, []).append(remote)
        return remote

    def remote(self, tenant: str = "me") -> CosmosRemote:
        """One of two connections by turns: what one writes is mostly read by the other."""
        with self._guard:
            self._asked += 1
            known = self._open.get(tenant, [])
        return known[self._asked % 2] if len(known) > 1 else self.connect(tenant)

    def get_raw(self, space: str, block: str) -> bytes | None:
        found = self.server.get(self._pk(space), block)
        return None if found is None else base64.b64decode(found["b"])

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        self.server.put({"id": block, "pk": self._pk(space), "b": base64.b64encode(data).decode()})

    def close(self) -> None:
        """Close all connections, and let go of the server."""
        for remotes in self._open.values():
            for remote in remotes:
                remote.close()
        self.server.close()

    def _pk(self, space: str) -> str:
        return f"b!{self.tenant('me')}!{space}"
