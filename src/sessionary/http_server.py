"""The HTTP server of the page and of MCP: uvicorn, which sleeps until a request or a signal arrives."""

from __future__ import annotations

import asyncio
from types import FrameType

import uvicorn


class SleepingServer(uvicorn.Server):
    """uvicorn without its clock, which wakes ten times a second: for the header Date, and limits that are not used."""

    def __init__(self, config: uvicorn.Config) -> None:
        config.date_header = False  # it would be that of the start
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    async def main_loop(self) -> None:
        """Wait for a signal to end."""
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):
            await self._ended.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at a signal; it may arrive before the loop runs."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
