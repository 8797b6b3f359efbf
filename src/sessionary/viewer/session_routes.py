"""The routes of one session: its stream, what the drawer shows, and its actions."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessionary.viewer import transcript
from sessionary.viewer.actions import Actions
from sessionary.viewer.library import Library
from sessionary.viewer.requests import as_json, object_of
from sessionary.viewer.streams import EVENTS
from sessionary.workspace import documents


class SessionRoutes:
    """The answers about one session.

    Args:
        library: the sessions.
        read_only: refuse every action that changes something.
    """

    def __init__(self, library: Library, *, read_only: bool) -> None:
        self._library = library
        self._actions = Actions(library, read_only=read_only)

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/api/session/{key}/stream", self.stream),
            Route("/api/session/{key}/message/{index:int}", self.message),
            Route("/api/session/{key}/health", self.health),
            Route("/api/session/{key}/resume", self.resume),
            Route("/api/session/{key}/actions", self.actions),
            Route("/api/session/{key}/actions/{name}", self.act, methods=["POST"]),
            Route("/api/undo/{number}", self.undo, methods=["POST"]),
        ]

    async def stream(self, request: Request) -> Response:
        """A conversation, and what is added to it."""
        place = await run_in_threadpool(self._library.place, request.path_params["key"])
        wanted = request.query_params.get("follow") == "1"
        state = request.app.state
        events = transcript.stream(
            place, lambda: self._library.row(place), follow=lambda: wanted and not state.ending
        )
        return StreamingResponse(events, media_type=EVENTS)

    async def message(self, request: Request) -> Response:
        """One message with nothing cut."""

        def found() -> dict[str, Any]:
            place = self._library.place(request.path_params["key"])
            outside = request.query_params.get("outside") == "1"
            return transcript.whole_message(place, request.path_params["index"], outside=outside)

        return as_json(await run_in_threadpool(found))

    async def health(self, request: Request) -> Response:
        """The problems of a session."""

        def found() -> dict[str, Any]:
            workspace, ref = self._library.place(request.path_params["key"])
            return {"problems": [documents.of_problem(one) for one in workspace.check(ref)]}

        return as_json(await run_in_threadpool(found))

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

        return as_json(await run_in_threadpool(found))

    async def actions(self, request: Request) -> Response:
        """The names of what may be changed in a session."""
        key = request.path_params["key"]
        return as_json(await run_in_threadpool(lambda: self._actions.granted(self._library.place(key))))

    async def act(self, request: Request) -> Response:
        """Carry out an action, or say what it would do: without ``"dry_run": false`` nothing is written."""
        given = await object_of(request)
        name, key = request.path_params["name"], request.path_params["key"]
        return as_json(await run_in_threadpool(self._actions.run, name, key, given))

    async def undo(self, request: Request) -> Response:
        """Undo a change that this server made."""
        return as_json(await run_in_threadpool(self._actions.undo, request.path_params["number"]))
