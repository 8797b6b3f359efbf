"""HTTP of the double of Cosmos DB: signatures, addresses, headers, and answers that fail on the way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import ssl
import struct
import uuid
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from tests.support.cosmos_store import Answer, Container, Refused

if TYPE_CHECKING:
    from tests.support.cosmos_double import CosmosDouble

SKEW: Final = 900.0
Action = Literal[
    "drop before", "drop after", "hang", "hang after", "cut", "drip", "portal", "status", "status after"
]
Kind = Literal["read", "write"]


@dataclass
class Fault:
    """What is to go wrong with a request for items.

    Attributes:
        action: ``drop``: the connection is reset; ``hang``: nothing is answered; both before or after it is carried
            out. ``cut``: half of the answer comes. ``drip``: it comes byte by byte. ``portal``: a page of HTML comes
            instead. ``status``: it is refused; ``status after``: it is carried out and then refused.
        on: which requests.
        skip: how many of them pass before.
        count: how many of them fail.
        status: what is answered.
        retry_after: seconds that the refusal asks to wait.
    """

    action: Action
    on: Kind | Literal["any"] = "any"
    skip: int = 0
    count: int = 1
    status: int = 503
    retry_after: float | None = None

    def strikes(self, kind: Kind) -> bool:
        """Whether it hits this request; to be asked once for each."""
        if self.on not in ("any", kind) or self.count < 1:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.count -= 1
        return True


class Server(ThreadingHTTPServer):
    """A thread for each connection; those that hang end with the process at the latest."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    double: CosmosDouble
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands in the connection's own thread: a slow caller holds up no other."""
        if self.tls is not None:
            request = self.tls.wrap_socket(request, server_side=True)
        try:
            super().finish_request(request, client_address)
        finally:
            if self.tls is not None:
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is not logged."""


class Handler(BaseHTTPRequestHandler):
    """One connection: requests for items go to the store, all others are about databases and containers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _serve(self) -> None:
        self.double = self.server.double
        self._box: Container | None = None
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/") if part]
        kind: Kind = "read" if self.command == "GET" or self._is_query() else "write"
        fault = self.double.fault_for(kind) if parts[4:5] == ["docs"] else None
        action = fault.action if fault else ""
        if action in ("hang", "drop before"):
            self._break_off(wait=action == "hang")
            return
        try:
            if fault is not None and action == "status":
                raise _injected(fault)
            answer = self._answer(parts, raw)
            if fault is not None and action == "status after":
                raise _injected(fault)
        except Refused as error:
            answer = Answer(error.status, {"code": str(error.status), "message": str(error)}, error.ru)
            extra = error.headers | ({"x-ms-substatus": str(error.sub)} if error.sub else {})
            if parts[4:5] == ["docs"]:
                self.double.charge(error.ru)
        else:
            extra = {}
        if action in ("hang after", "drop after"):
            self._break_off(wait=action == "hang after")
            return
        self._send(answer, extra, action)

    # -- answers

    def _answer(self, parts: list[str], raw: bytes) -> Answer:
        with self.double.store.guard:
            self._check_signature(parts)
            if not parts:
                return Answer(200, self._account())
            if parts[0] != "dbs" or len(parts) > 6:
                raise Refused(404, "no such address")
            if len(parts) < 5:
                return self._definitions(parts, raw)
            box = self._box = self.double.store.container(parts[1], parts[3])
            if parts[4] == "pkranges":
                return self._ranges()
            if parts[4] != "docs":
                raise Refused(404, "no such address")
            self.double.throttle()
            answer = self._items(box, parts[5] if len(parts) == 6 else None, raw)
            self.double.charge(answer.ru)
            return answer

    def _items(self, box: Container, id_: str | None, raw: bytes) -> Answer:
        store, match = self.double.store, self.headers.get("if-match")
        pk = self._partition()
        if self.command == "GET" and id_ is not None:
            return store.read(box, pk, id_, self._known(), self.headers.get("if-none-match"))
        if self.command == "DELETE" and id_ is not None:
            return store.delete(box, pk, id_, match)
        if len(raw) > 2 << 20:
            raise Refused(413, "Request size is too large")
        body = json.loads(raw)
        if self.command == "PUT" and id_ is not None:
            return store.replace(box, pk, id_, body, match)
        if self.command != "POST" or id_ is not None:
            raise Refused(405, "no such method here")
        if self._is_query():
            count = int(self.headers.get("x-ms-max-item-count") or -1)
            token = self.headers.get("x-ms-continuation") or ""
            return store.query(box, pk, body, count, token, self._known())
        if self._flag("x-ms-cosmos-is-batch-request"):
            return store.batch(box, pk, body)
        return store.create(box, pk, body, over=self._flag("x-ms-documentdb-is-upsert"), match=match)

    def _definitions(self, parts: list[str], raw: bytes) -> Answer:
        databases = self.double.store.databases
        if self.command == "POST":
            body = json.loads(raw)
            if len(parts) == 1:
                _set_new(databases, body["id"], {})
            else:
                box = Container(body, self.double.lag, self.double.now)
                _set_new(_named(databases, parts[1]), body["id"], box)
            return Answer(201, body | {"_rid": "r", "_self": "s"})
        if len(parts) == 2:
            found = _named(databases, parts[1])
            if self.command == "DELETE":
                del databases[parts[1]]
                return Answer(204)
            return Answer(
                200, {"id": parts[1], "_rid": "d", "_self": f"dbs/{parts[1]}/", "count": len(found)}
            )
        if len(parts) == 4:
            box = self.double.store.container(parts[1], parts[3])
            return Answer(200, box.properties | {"_rid": f"r-{parts[3]}", "_self": "/".join(parts) + "/"})
        raise Refused(404, "no such address")

    def _account(self) -> dict[str, Any]:
        here = {"name": "Here", "databaseAccountEndpoint": self.double.endpoint}
        there = {"name": "There", "databaseAccountEndpoint": self.double.endpoint}
        several = self.double.writes_everywhere
        return {
            "id": "double",
            "writableLocations": [here, there] if several else [here],
            "readableLocations": [here],
            "enableMultipleWriteLocations": several,
            "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
            "queryEngineConfiguration": "{}",
        }

    def _ranges(self) -> Answer:
        """There is one physical partition. The SDK reads this like a feed, until there is nothing new."""
        if self.headers.get("if-none-match"):
            return Answer(304, None, etag='"1"')
        only = {
            "id": "0",
            "_rid": "r0",
            "minInclusive": "",
            "maxExclusive": "FF",
            "parents": [],
            "status": "online",
        }
        return Answer(200, {"_rid": "c", "PartitionKeyRanges": [only], "_count": 1}, etag='"1"')

    # -- what a request says

    def _flag(self, name: str) -> bool:
        return (self.headers.get(name) or "").lower() == "true"

    def _is_query(self) -> bool:
        return self.command == "POST" and (
            self._flag("x-ms-documentdb-isquery") or "query+json" in (self.headers.get("content-type") or "")
        )

    def _partition(self) -> str:
        given = json.loads(self.headers.get("x-ms-documentdb-partitionkey") or "null")
        if not isinstance(given, list) or len(given) != 1 or not isinstance(given[0], str):
            raise Refused(400, "a partition key of one text is required", 1001)
        return given[0]

    def _known(self) -> int:
        """The number of the last write that the caller has seen."""
        token = self.headers.get("x-ms-session-token") or ""
        number = token.rpartition("#")[2]
        return int(number) if number.isdigit() else 0

    def _check_signature(self, parts: list[str]) -> None:
        given = unquote(self.headers.get("authorization") or "")
        if self.double.token is not None and given == f"type=aad&ver=1.0&sig={self.double.token}":
            return
        even = len(parts) % 2 == 0
        kind = "" if not parts else parts[-2] if even else parts[-1]
        link = "/".join(parts if even else parts[:-1])
        date = self.headers.get("x-ms-date") or ""
        text = f"{self.command.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        digest = hmac.new(base64.b64decode(self.double.key), text.encode(), hashlib.sha256).digest()
        expected = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
        if not hmac.compare_digest(given, expected):
            raise Refused(401, "The input authorization token can't serve the request.")
        if abs(parsedate_to_datetime(date).timestamp() - self.double.now()) > SKEW:
            raise Refused(403, "The authorization token is not valid at the current time.")

    # -- sending

    def _send(self, answer: Answer, extra: dict[str, str], action: str) -> None:
        body = b"" if answer.body is None else json.dumps(answer.body).encode()
        if self.headers.get("prefer") == "return=minimal" and self.command != "GET" and answer.etag:
            body = b""
        kind = "application/json"
        if action == "portal":
            body, kind = b"<html>sign in to this network</html>", "text/html"
        self.double.requests[str(answer.status)] += 1
        self.send_response_only(answer.status)
        headers = {
            "Date": formatdate(self.double.now(), usegmt=True),
            "content-type": kind,
            "content-length": str(len(body)),
            "x-ms-request-charge": f"{answer.ru:.2f}",
            "x-ms-activity-id": str(uuid.uuid4()),
        }
        if self._box is not None:
            # The SDK keeps the token for the container of this name, and shows it again with each read.
            headers["x-ms-alt-content-path"] = "/".join(urlsplit(self.path).path.strip("/").split("/")[:4])
            headers["x-ms-session-token"] = f"0:-1#{self._box.lsn}"
        headers |= {"etag": answer.etag} if answer.etag else {}
        headers |= {"x-ms-continuation": answer.continuation} if answer.continuation else {}
        for name, value in (headers | extra).items():
            self.send_header(name, value)
        self.end_headers()
        if action == "cut":
            self.wfile.write(body[: len(body) // 2])
            self._break_off(wait=False)
        elif action == "drip":
            self._drip(body)
        else:
            self.wfile.write(body)
            self.wfile.flush()

    def _drip(self, body: bytes) -> None:
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.double.closing.wait(0.1):
                return

    def _break_off(self, *, wait: bool) -> None:
        """End the connection with a reset, as a machine does that is gone; or only when the server closes."""
        if wait:
            self.double.closing.wait()
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _injected(fault: Fault) -> Refused:
    refused = Refused(fault.status, "injected")
    if fault.retry_after is not None:
        refused.headers["x-ms-retry-after-ms"] = str(int(fault.retry_after * 1000))
    return refused


def _named(databases: dict[str, dict[str, Container]], name: str) -> dict[str, Container]:
    if name not in databases:
        raise Refused(404, "Resource Not Found: no such database", 1003)
    return databases[name]


def _set_new(place: dict[str, Any], name: str, value: Any) -> None:
    if name in place:
        raise Refused(409, "Resource with specified id or name already exists.")
    place[name] = value
