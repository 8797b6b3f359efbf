"""Streamable HTTP on this machine only, with a token.

A request needs the token of this start, a `Host` that is this server, and, if a browser sent it, an origin that is this
server; `loopback` says why.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from sessionary.http_server import SleepingServer
from sessionary.loopback import HOST, has_token, is_own_site

PATH = "/mcp"
MOST_BODY = 1 << 20
"""Bytes of the largest request."""
GRACE = 1
"""Seconds that open responses get when the server ends."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def serve(server: MCPServer, listener: socket.socket, token: str) -> None:
    """Serve until the process is interrupted.

    Args:
        listener: see `http_server.listen`.
        token: what each request must bear.
    """
    port = listener.getsockname()[1]
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BODY,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    config = uvicorn.Config(
        guarded(inner, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    asyncio.run(SleepingServer(config).serve(sockets=[listener]))


def guarded(app: App, token: str) -> App:
    """The app behind a check of the token and of what a browser says about the page that asks, see `loopback`.

    The transport of the SDK checks the host and the origin.
    """

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        if not is_own_site(headers.get(b"sec-fetch-site")):
            await _refuse(send, 403, b"cross-site request")
        elif not has_token(headers.get(b"authorization"), token):
            await _refuse(send, 401, b"the header Authorization must be Bearer and the token of this server")
        else:
            await app(scope, receive, send)

    return guard


async def _refuse(send: Send, status: int, words: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(words))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words})
