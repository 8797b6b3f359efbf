"""The routes of one session: its stream, what the drawer shows, and its actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sessionary.viewer import details, exports, transcript
from sessionary.viewer.actions import Actions
from sessionary.viewer.branches import branches_of, document_of
from sessionary.viewer.images import image_at
from sessionary.viewer.library import Library, Place
from sessionary.viewer.requests import as_json, number_of, object_of
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
            Route("/api/session/{key}/message/{at:int}", self.message),
            Route("/api/session/{key}/message/{at:int}/image/{number:int}", self.image),
            Route("/api/session/{key}/health", self.health),
            Route("/api/session/{key}/files", self.files),
            Route("/api/session/{key}/usage", self.usage),
            Route("/api/session/{key}/branches", self.branches),
            Route("/api/session/{key}/records", self.records),
            Route("/api/session/{key}/export", self.export),
            Route("/api/session/{key}/resume", self.resume),
            Route("/api/session/{key}/actions", self.actions),
            Route("/api/session/{key}/actions/{name}", self.act, methods=["POST"]),
            Route("/api/undo/{number}", self.undo, methods=["POST"]),
        ]

    async def stream(self, request: Request) -> Response:
        """A conversation, and what is added to it."""
        place = await run_in_threadpool(self._place, request)
        wanted = request.query_params.get("follow") == "1"
        state = request.app.state
        events = transcript.stream(
            place, lambda: self._library.row(place), follow=lambda: wanted and not state.ending
        )
        return StreamingResponse(events, media_type=EVENTS)

    async def message(self, request: Request) -> Response:
        """One message with nothing cut."""
        return await self._of(
            request, lambda place: transcript.whole_message(place, request.path_params["at"])
        )

    async def image(self, request: Request) -> Response:
        """An image of a message."""

        def found() -> tuple[str, bytes]:
            place = self._place(request)
            message = transcript.message_at(place, request.path_params["at"]).message
            return image_at(place, message, request.path_params["number"])

        kind, data = await run_in_threadpool(found)
        return Response(data, media_type=kind)

    async def health(self, request: Request) -> Response:
        """The problems of a session, with the stored bytes of their places."""
        return await self._of(request, details.health)

    async def files(self, request: Request) -> Response:
        """The files that tool calls name."""
        return await self._of(request, details.files)

    async def usage(self, request: Request) -> Response:
        """Tokens and cost by model and day."""
        return await self._of(request, lambda place: details.usage(place, self._library))

    async def branches(self, request: Request) -> Response:
        """The branches of the conversation."""
        return await self._of(request, lambda place: document_of(branches_of(transcript.messages(place))))

    async def records(self, request: Request) -> Response:
        """Stored records, by the page."""
        first, line = (number_of(request, name, 0) for name in ("from", "line"))
        texts = request.query_params
        asked = details.Asked(texts.get("file", ""), first, line, texts.get("row", ""))
        return await self._of(request, lambda place: details.records(place, asked))

    async def export(self, request: Request) -> Response:
        """An export, and what it does not carry."""
        place = await run_in_threadpool(self._place, request)
        asked = request.query_params
        events = exports.stream(
            place,
            asked.get("format", ""),
            redact=asked.get("redact") == "1",
            branches=asked.get("branches") == "1",
        )
        return StreamingResponse(events, media_type=EVENTS)

    def _place(self, request: Request) -> Place:
        return self._library.place(request.path_params["key"])

    async def _of(self, request: Request, found: Callable[[Place], Any]) -> Response:
        """What a function finds of the session, as JSON; it runs in a thread."""
        return as_json(await run_in_threadpool(lambda: found(self._place(request))))

    async def resume(self, request: Request) -> Response:
        """The command that continues a session in its agent."""
        return await self._of(request, lambda place: documents.of_resume(place.workspace.resume(place.ref)))

    async def actions(self, request: Request) -> Response:
        """The names of what may be changed in a session."""
        return await self._of(
            request,
            lambda place: {
                "names": self._actions.granted(place),
                "otherwise": self._actions.otherwise(place),
                "formats": exports.formats(),
            },
        )

    async def act(self, request: Request) -> Response:
        """Carry out an action, or say what it would do: without ``"dry_run": false`` nothing is written."""
        given = await object_of(request)
        name, key = request.path_params["name"], request.path_params["key"]
        return as_json(await run_in_threadpool(self._actions.run, name, key, given))

    async def undo(self, request: Request) -> Response:
        """Undo a change that this server made."""
        return as_json(await run_in_threadpool(self._actions.undo, request.path_params["number"]))
