"""An S3 server in this process that records its requests: what a remote costs is counted there, not guessed.

It is moto, of the extra for tests. It ends with the process, and keeps nothing. Moto looks whether a condition of a
write is met, and writes later: of two clients at once both may win. So its writes come one after another here.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

BUCKET = "sessions"
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_READS = ("GET", "HEAD")


def application() -> Application:
    """Moto as a WSGI application in which a write is one step."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    inner: Application = DomainDispatcherApplication(create_backend_app)
    one_at_a_time = threading.Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in _READS:
            return inner(environ, start)
        with one_at_a_time:
            return inner(environ, start)

    return answer


def serve(port: int) -> None:
    """Serve an empty store on a port of the loopback for as long as the process lives."""
    from werkzeug.serving import run_simple

    run_simple("127.0.0.1", port, application(), threaded=True)


class S3Server:
    """A server with one empty bucket, `BUCKET`; use it in a ``with`` block.

    Attributes:
        requests: method and path of each request, the newest last.
        options: for `open_store`, what leads there; any key is let in.
    """

    def __init__(self) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Silent(WSGIRequestHandler):
            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Say nothing: it is counted."""

        self.requests: list[tuple[str, str]] = []
        self._inner = application()
        self._server = make_server("127.0.0.1", 0, self._counted, threaded=True, request_handler=Silent)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.options: dict[str, Any] = {
            "endpoint": f"http://127.0.0.1:{self._server.server_port}",
            "region": "us-east-1",
            "access_key_id": "testing",
            "secret_access_key": "testing",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        bucket = urllib.request.Request(f"{self.options['endpoint']}/{BUCKET}", method="PUT")
        urllib.request.urlopen(bucket, timeout=30).close()
        self.requests.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _counted(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        return self._inner(environ, start)
