"""A double of Google Cloud Storage: the part of its XML interface that the remote uses, as we read its documentation.

No server for it can be had from the registries that the tests may ask. So this is **our reading**, not Google's word:
that a write is conditional by `x-goog-if-generation-match`, 0 for "none there"; that a refused one gets 412; that every
version has a generation that never comes again; that lists and answers carry the etag of the content, which no write
can be conditional by. It also gives the answers that a test sets, before it does anything.
"""

import hashlib
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

MOST = 1000


class GcsDouble:
    """A server with one bucket, `sessions`.

    Attributes:
        objects: bytes and generation of each.
        answers: statuses to answer the next requests with instead of doing anything.
        seen: method and path of each request.
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.answers: deque[int] = deque()
        self.seen: list[tuple[str, str]] = []
        self.guard = threading.Lock()
        self.generation = 1000
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"double": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def options(self) -> dict[str, Any]:
        """What leads a remote here."""
        return {
            "service_account_key": self.key(self.server.server_port),
            "client_options": {"allow_http": True},
        }

    @staticmethod
    def key(port: int) -> str:
        """A key file that sends the client to a port of the loopback, without credentials."""
        empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        return json.dumps({"gcs_base_url": f"http://127.0.0.1:{port}", "disable_oauth": True, **empty})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put(self, key: str, data: bytes, match: str | None) -> tuple[int, int]:
        """Status and generation of a write."""
        with self.guard:
            present = self.objects.get(key, (b"", 0))[1]
            if match is not None and int(match) != present:
                return 412, 0
            self.generation += 1
            self.objects[key] = data, self.generation
            return 200, self.generation

    def listed(self, query: dict[str, list[str]]) -> bytes:
        """A page of names, in bytewise order."""
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key][0])}</Size>"
            f"<LastModified>2025-01-31T12:00:00.000Z</LastModified><ETag>{etag(self.objects[key][0])}</ETag></Contents>"
            for key in keys[:MOST]
        )
        more = (
            f"<NextContinuationToken>{escape(keys[MOST - 1])}</NextContinuationToken>" if keys[MOST:] else ""
        )
        return f"<ListBucketResult>{entries}{more}</ListBucketResult>".encode()


def etag(data: bytes) -> str:
    """As Google makes it of an object that was put in one piece."""
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    double: GcsDouble
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status: int, body: bytes = b"", generation: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Fri, 31 Jan 2025 12:00:00 GMT")
        self.send_header("ETag", etag(body if self.command == "GET" else b""))
        self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        self.double.seen.append((self.command, parts.path))
        if self.double.answers:
            self.answer(self.double.answers.popleft())
        else:
            self.carry_out(parts, body)

    def carry_out(self, parts: SplitResult, body: bytes) -> None:
        key = unquote(parts.path).removeprefix("/sessions").removeprefix("/")
        if not unquote(parts.path).startswith("/sessions"):
            self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
        elif self.command == "PUT":
            status, made = self.double.put(key, body, self.headers.get("x-goog-if-generation-match"))
            self.answer(status, b"", made)
        elif not key:
            self.answer(200, self.double.listed(parse_qs(parts.query)))
        elif self.command == "DELETE":
            self.answer(204 if self.double.objects.pop(key, None) else 404)
        elif key in self.double.objects:
            self.answer(200, *self.double.objects[key])
        else:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_GET = do_HEAD = do_PUT = do_DELETE = serve  # noqa: N815 - the names that the library looks for

    def log_message(self, *_: Any) -> None:
        """Say nothing: the tests say what went wrong."""
