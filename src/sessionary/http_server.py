"""The HTTP server of the page and of MCP: uvicorn, which sleeps until a request or a signal arrives."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType

import uvicorn

from sessionary.loopback import HOST


def listen(port: int) -> socket.socket:
    """A socket that listens on this machine only; port 0 chooses a free one.

    Raises:
        OSError: the port is taken, or reserved.
    """
    # asyncio sends what is written at once only if the socket names its protocol; else the system may hold back the
    # body of an answer until the head is acknowledged, which takes a browser 40 ms.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen()  # until then another process could bind the same port
    except BaseException:
        found.close()
        raise
    return found


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
