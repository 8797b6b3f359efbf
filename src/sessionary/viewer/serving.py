"""The socket, the link, and the server on it."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Thread

import uvicorn
from starlette.applications import Starlette

from sessionary import http_server
from sessionary.disk import atomic
from sessionary.errors import AlreadyExists, Invalid, StorageFailed
from sessionary.loopback import HOST
from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library
from sessionary.xdg import cache_folder

PORT = 8642
"""The port, unless another one is given or another program uses it."""

_PRIVATE_UMASK = 0o177


def listen(port: int | None) -> socket.socket:
    """A socket of this machine only.

    Args:
        port: the port; None for `PORT`, or any free one if that is in use.

    Raises:
        StorageFailed: the port is in use, or may not be opened.
    """
    try:
        return http_server.listen(PORT if port is None else port)
    except OSError as error:
        if port is None:
            return http_server.listen(0)
        hint = "choose another one, or leave out --port"
        raise StorageFailed(f"port {port}: {error.strerror}", operation="serve", hint=hint) from error


def listen_at(path: Path) -> socket.socket:
    """A Unix socket that only this user can open. One that an ended server has left is replaced.

    Raises:
        AlreadyExists: a server listens there, or the file is not a socket.
        Invalid: the path is too long for a socket.
        StorageFailed: it cannot be created.
    """
    place = os.path.abspath(os.path.expanduser(path))
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and found.connect_ex(place) != 0:
            atomic.forget_file(place)
        found.close()
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(_PRIVATE_UMASK)
        try:
            found.bind(place)
        finally:
            os.umask(before)
        return found
    except OSError as error:
        found.close()
        raise _refused(error, place) from error


def _refused(error: OSError, place: str) -> Exception:
    if error.strerror is None:  # the message of Python for a path that does not fit
        return Invalid(f"{place}: {error}", path=place, hint="choose a shorter path")
    if error.errno == errno.EADDRINUSE:
        return AlreadyExists(
            f"{place} exists", path=place, hint="end the server there, or choose another path"
        )
    return StorageFailed(
        f"{place}: {error.strerror}", path=place, hint="create its folder, or choose another path"
    )


def link_of(port: int, token: str) -> str:
    """The address of the page with the token in its fragment, which browsers do not send."""
    return f"http://{HOST}:{port}/#token={token}"


def redirect_file(link: str) -> str:
    """Write a page that leads to the link, and return its path. Only this user can read it.

    The link itself would show in the list of processes when a browser is started with it.

    Raises:
        Invalid: no folder for it is known.
        StorageFailed: it cannot be written.
    """
    folder = os.environ.get("XDG_RUNTIME_DIR") or cache_folder()
    if folder is None:
        raise Invalid("no folder for the file that the browser opens", hint="give --no-open")
    path = os.path.join(folder, f"sessionary-{secrets.token_hex(8)}.html")
    page = (
        '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Sessionary</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(link)}">'
    )
    atomic.create(path, page.encode(), durable=False)
    return path


def serve(
    library: Library, bound: socket.socket, token: str, *, read_only: bool, started: Callable[[], None]
) -> None:
    """Answer until the user interrupts.

    Args:
        library: the sessions.
        bound: the socket.
        token: the secret that requests must bear.
        read_only: refuse every action.
        started: called when the server can be asked.
    """
    is_tcp = bound.family == socket.AF_INET
    port = bound.getsockname()[1] if is_tcp else None
    app = viewer_app(library, token, port, read_only=read_only)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
        server_header=False,
    )
    Thread(target=library.listed, daemon=True).start()  # the browser takes longer to start
    server = _Server(config, app, started)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])


class _Server(http_server.SleepingServer):
    """Calls a function once it listens, and ends the open streams when it is to end."""

    def __init__(self, config: uvicorn.Config, app: Starlette, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._call = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._call()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.ending = True
        await super().shutdown(sockets)
