"""A network that breaks on demand: a port that passes bytes on to a server, until a test sets a fault.

What is between a program and its server can close a connection that lay idle, swallow an answer, fall silent without
closing anything, or not let anybody through. Each is a method here; `heal` ends it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

CHUNK = 1 << 16


class BadNetwork:
    """A port on this machine, before a server; use it in a ``with`` block.

    Args:
        server: opens a connection to the server.

    Attributes:
        port: where to connect to instead.
        passed: how many connections it has let through.
    """

    def __init__(self, server: Callable[[], socket.socket]) -> None:
        self._server = server
        self._mood = ""
        self._guard = threading.Lock()
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.passed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, as a router does with those that lie idle. New ones are let through."""
        with self._guard:
            found, self._open = self._open, []
        for connection in found:
            _shut(connection)

    def lose_next_answer(self) -> None:
        """Let what is asked next reach the server, and close the connection when its answer comes."""
        self._mood = "lose"

    def fall_silent(self) -> None:
        """Let everything reach the server, and nothing come back; close nothing."""
        self._mood = "silent"

    def refuse(self) -> None:
        """Close all connections, and every new one at once."""
        self._mood = "refuse"
        self.cut()

    def heal(self) -> None:
        """Be a good network again. What was swallowed stays swallowed."""
        self._mood = ""

    def close(self) -> None:
        """Close the port and all connections."""
        self._listening.close()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._mood == "refuse":
                client.close()
                continue
            server = self._server()
            with self._guard:
                self._open += [client, server]
                self.passed += 1
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, sink, answers), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(CHUNK):
                if answers and self._mood == "silent":
                    continue
                if answers and self._mood == "lose":
                    self._mood = ""
                    break
                sink.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(sink)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
