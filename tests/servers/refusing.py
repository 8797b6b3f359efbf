"""Servers that refuse everything, as real ones do after a wrong password or with a clock that is off."""

import socketserver
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class _Server:
    """A server on the loopback in a thread of its own; use it in a ``with`` block."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.port: int = server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class RefusingHttp(_Server):
    """Answers every request with one status, and with one code in the words of S3."""

    def __init__(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>as S3 says it</Message></Error>".encode()

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = answer  # noqa: N815 - the names that are looked for

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        self._server.daemon_threads = True

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


class RefusingPostgres(_Server):
    """Refuses every login: every connection ends with the error of a wrong password."""

    def __init__(self) -> None:
        fields = {"S": "FATAL", "C": "28P01", "M": 'password authentication failed for user "ada"'}
        body = b"".join(key.encode() + text.encode() + b"\0" for key, text in fields.items()) + b"\0"

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                while data := self.request.recv(1024):
                    if len(data) == 8:  # the client asks whether TLS may be spoken
                        self.request.sendall(b"N")
                        continue
                    self.request.sendall(b"E" + struct.pack("!I", len(body) + 4) + body)
                    return

        super().__init__(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))
        self._server.daemon_threads = True
