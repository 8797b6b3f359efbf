"""The routes of the page. Everything below ``/api/`` needs the token; the page itself has no data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessionary.errors import Invalid, Locked, NotFound, SessionaryError, Unsupported
from sessionary.viewer import finding, transcript
from sessionary.viewer.actions import Actions
from sessionary.viewer.guard import Guard
from sessionary.viewer.library import Library
from sessionary.viewer.overview import overview
from sessionary.viewer.rendering import html_of
from sessionary.viewer.streams import failure
from sessionary.workspace import documents

_STATUS = ((NotFound, 404), (Invalid, 400), (Locked, 409), (Unsupported, 409))
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_EVENTS = "text/event-stream"
_PAGE = 5_000
"""Most rows of the list in one answer."""

_BODY = 2_000_000
"""Most bytes of the body of a request."""


class Viewer:
    """The answers.

    Args:
        library: the sessions.
        read_only: refuse every action.
    """

    def __init__(self, library: Library, *, read_only: bool) -> None:
        self._library = library
        self._actions = Actions(library, read_only=read_only)
        self._read_only = read_only

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/", _static),
            Route("/static/{name}", _static),
            Route("/api/about", self.about),
            Route("/api/sessions", self.sessions),
            Route("/api/refresh", self.refresh, methods=["POST"]),
            Route("/api/overview", self.overview),
            Route("/api/search", self.search),
            Route("/api/render", render, methods=["POST"]),
            Route("/api/session/{key}/stream", self.stream),
            Route("/api/session/{key}/message/{index:int}", self.message),
            Route("/api/session/{key}/health", self.health),
            Route("/api/session/{key}/resume", self.resume),
            Route("/api/session/{key}/actions", self.actions),
            Route("/api/session/{key}/actions/{name}", self.act, methods=["POST"]),
            Route("/api/undo/{number}", self.undo, methods=["POST"]),
        ]

    async def about(self, request: Request) -> Response:
        """What this server shows."""
        homes = [str(one.home) for one in self._library.workspaces]
        return _json({"homes": homes, "read_only": self._read_only})

    async def sessions(self, request: Request) -> Response:
        """Rows of the list."""
        offset, limit = _number(request, "offset", 0), min(_number(request, "limit", 200), _PAGE)
        return _json(await run_in_threadpool(self._library.rows, offset, limit))

    async def refresh(self, request: Request) -> Response:
        """Read what changed, and return the version of the list."""
        return _json({"version": await run_in_threadpool(self._library.refresh)})

    async def overview(self, request: Request) -> Response:
        """Plots of all sessions, and what will be deleted soon."""
        return _json(await run_in_threadpool(overview, self._library))

    async def search(self, request: Request) -> Response:
        """Hits as they are found."""
        return StreamingResponse(
            finding.stream(self._library, request.query_params.get("q", "")), media_type=_EVENTS
        )

    async def stream(self, request: Request) -> Response:
        """A conversation, and what is added to it."""
        place = await run_in_threadpool(self._library.place, request.path_params["key"])
        wanted = request.query_params.get("follow") == "1"
        state = request.app.state
        events = transcript.stream(
            place, lambda: self._library.row(place), follow=lambda: wanted and not state.ending
        )
        return StreamingResponse(events, media_type=_EVENTS)

    async def message(self, request: Request) -> Response:
        """One message with nothing cut."""

        def found() -> dict[str, Any]:
            place = self._library.place(request.path_params["key"])
            outside = request.query_params.get("outside") == "1"
            return transcript.whole_message(place, request.path_params["index"], outside=outside)

        return _json(await run_in_threadpool(found))

    async def health(self, request: Request) -> Response:
        """The problems of a session."""

        def found() -> dict[str, Any]:
            workspace, ref = self._library.place(request.path_params["key"])
            return {"problems": [documents.of_problem(one) for one in workspace.check(ref)]}

        return _json(await run_in_threadpool(found))

    async def resume(self, request: Request) -> Response:
        """The command that continues a session in its agent."""

        def found() -> dict[str, Any]:
            workspace, ref = self._library.place(request.path_params["key"])
            resume = workspace.resume(ref)
            return {
                "command": resume.command,
                "folder": resume.folder,
                "folder_exists": resume.is_there,
                "problems": [documents.of_problem(one) for one in resume.problems],
            }

        return _json(await run_in_threadpool(found))

    async def actions(self, request: Request) -> Response:
        """The names of what may be changed in a session."""
        key = request.path_params["key"]
        return _json(await run_in_threadpool(lambda: self._actions.granted(self._library.place(key))))

    async def act(self, request: Request) -> Response:
        """Carry out an action, or say what it would do: without ``"dry_run": false`` nothing is written."""
        given = msgspec.json.decode(await _body(request), type=dict[str, Any])
        name, key = request.path_params["name"], request.path_params["key"]
        return _json(await run_in_threadpool(self._actions.run, name, key, given))

    async def undo(self, request: Request) -> Response:
        """Undo a change that this server made."""
        return _json(await run_in_threadpool(self._actions.undo, request.path_params["number"]))


async def render(request: Request) -> Response:
    """Stored Markdown as HTML, for the messages that the page shows next."""
    texts = msgspec.json.decode(await _body(request), type=list[str])
    return _json(await run_in_threadpool(lambda: [html_of(text) for text in texts]))


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


async def _body(request: Request) -> bytes:
    """The body of a request.

    Raises:
        HTTPException: it is too long.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _BODY:
            raise HTTPException(413)
    return body


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _json(document: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    """A deliberate error as JSON, with its remedy."""
    assert isinstance(error, SessionaryError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return _json(failure(error), status)


async def _invalid(request: Request, error: Exception) -> Response:
    return _json({"error": "Invalid", "message": f"the body is not valid: {error}", "hint": None}, 400)


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
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers=handlers,
    )
    app.state.ending = False  # True ends the streams that follow a session
    return app
