"""The routes of the charts: the overview, the plots of a session, two sessions side by side."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sessionary.viewer.charts import charts
from sessionary.viewer.diffing import diff
from sessionary.viewer.library import Library
from sessionary.viewer.overview import overview
from sessionary.viewer.requests import as_json


class ChartRoutes:
    """The answers with plots."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/api/overview", self.overview),
            Route("/api/session/{key}/charts", self.charts),
            Route("/api/session/{key}/diff/{other}", self.diff),
        ]

    async def overview(self, request: Request) -> Response:
        """Plots of all sessions, and what will be deleted soon."""
        return as_json(await run_in_threadpool(overview, self._library))

    async def charts(self, request: Request) -> Response:
        """The plots of a session, and the board of a feature."""
        key = request.path_params["key"]
        return as_json(await run_in_threadpool(lambda: charts(self._library, self._library.place(key))))

    async def diff(self, request: Request) -> Response:
        """Two sessions beside each other."""
        keys = [request.path_params[name] for name in ("key", "other")]
        return as_json(await run_in_threadpool(lambda: diff(*map(self._library.place, keys))))
