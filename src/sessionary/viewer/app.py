"""The routes of the page. Everything below ``/api/`` needs the token; the page itself has no data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessionary.errors import (
    AlreadyExists,
    Invalid,
    Locked,
    NotFound,
    SessionaryError,
    TransitionError,
    Unsupported,
)
from sessionary.viewer import finding
from sessionary.viewer.chart_routes import ChartRoutes
from sessionary.viewer.guard import Guard
from sessionary.viewer.library import Library
from sessionary.viewer.listing import lines
from sessionary.viewer.rendering import html_of
from sessionary.viewer.requests import as_json, body_of, number_of
from sessionary.viewer.session_routes import SessionRoutes
from sessionary.viewer.streams import EVENTS, failure

_STATUS: tuple[tuple[type[SessionaryError] | tuple[type[SessionaryError], ...], int], ...] = (
    (NotFound, 404),
    ((AlreadyExists, Locked, TransitionError, Unsupported), 409),
    (Invalid, 400),
)
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_LINES = "application/x-ndjson"
_COMPRESSED = 100_000
"""Bytes from which an answer is compressed, unless it is events: the list of 10,000 sessions, to a quarter."""


class Viewer:
    """The answers.

    Args:
        library: the sessions.
        read_only: refuse every action.
    """

    def __init__(self, library: Library, *, read_only: bool) -> None:
        self._library = library
        self._session = SessionRoutes(library, read_only=read_only)
        self._read_only = read_only

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/", _static),
            Route("/static/{name}", _static),
            Route("/api/about", self.about),
            Route("/api/sessions", self.sessions),
            Route("/api/refresh", self.refresh, methods=["POST"]),
            Route("/api/read", self.read, methods=["POST"]),
            Route("/api/session/{key}/read", self.read, methods=["POST"]),
            Route("/api/search", self.search),
            Route("/api/render", render, methods=["POST"]),
            *self._session.routes(),
            *ChartRoutes(self._library).routes(),
        ]

    async def about(self, request: Request) -> Response:
        """What this server shows."""
        homes = [str(one.home) for one in self._library.workspaces]
        return as_json({"homes": homes, "read_only": self._read_only})

    async def sessions(self, request: Request) -> Response:
        """The rows of the list that changed after the version ``since``, as lines of JSON.

        The head has those of the keys ``first``, with commas between them. ``most`` is the largest number of rows.
        """
        since, most = number_of(request, "since", 0), number_of(request, "most", sys.maxsize)
        first = request.query_params.get("first", "").split(",")
        head, rows = await run_in_threadpool(self._library.listed, since, first)
        head["read_only"] = self._read_only
        return StreamingResponse(lines(head, rows[:most]), media_type=_LINES)

    async def read(self, request: Request) -> Response:
        """Keep that a session is open, or that all sessions are read."""
        if self._read_only:
            raise Unsupported("the server is read-only", hint="start `sessionary serve` without --read-only")
        key = request.path_params.get("key")
        return as_json({"version": await run_in_threadpool(self._library.mark_read, key)})

    async def refresh(self, request: Request) -> Response:
        """Read what changed, and return the version of the list."""
        return as_json({"version": await run_in_threadpool(self._library.refresh)})

    async def search(self, request: Request) -> Response:
        """Hits as they are found."""
        return StreamingResponse(
            finding.stream(self._library, request.query_params.get("q", "")), media_type=EVENTS
        )


async def render(request: Request) -> Response:
    """Stored Markdown as HTML, for the messages that the page shows next."""
    texts = msgspec.json.decode(await body_of(request), type=list[str])
    return as_json(await run_in_threadpool(lambda: [html_of(text) for text in texts]))


async def _static(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params.get("name", "index.html")
    files = _files()
    if name not in files:
        raise HTTPException(404)
    return Response(files[name], media_type=_TYPES[name.rpartition(".")[2]])


@cache
def _files() -> dict[str, bytes]:
    folder = resources.files("sessionary.viewer") / "static"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.rpartition(".")[2] in _TYPES}


async def _refuse(request: Request, error: Exception) -> Response:
    """A deliberate error as JSON, with its remedy."""
    assert isinstance(error, SessionaryError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return as_json(failure(error), status)


async def _invalid(request: Request, error: Exception) -> Response:
    return as_json({"error": "Invalid", "message": f"the body is not valid: {error}", "hint": None}, 400)


def viewer_app(library: Library, token: str, port: int | None, *, read_only: bool = False) -> Starlette:
    """The application.

    Args:
        library: the sessions.
        token: the secret that requests must bear.
        port: the port that is listened on; None for a Unix socket.
        read_only: refuse every action.
    """
    handlers: dict[Any, Callable[..., Any]] = {SessionaryError: _refuse, msgspec.DecodeError: _invalid}
    app = Starlette(
        routes=Viewer(library, read_only=read_only).routes(),
        middleware=[
            Middleware(Guard, token=token, port=port),
            Middleware(GZipMiddleware, minimum_size=_COMPRESSED, compresslevel=1),
        ],
        exception_handlers=handlers,
    )
    app.state.ending = False  # True ends the streams that follow a session
    return app
