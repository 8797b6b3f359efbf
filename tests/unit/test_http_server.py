"""The socket of the page and of MCP."""

import asyncio
import socket

from sessionary.http_server import listen


def test_what_is_written_is_sent_at_once() -> None:
    """The body of an answer does not wait until its head is acknowledged."""

    async def option() -> int:
        accepted = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted.set_result(transport)

        with listen(0) as listener:
            server = await asyncio.get_running_loop().create_server(Protocol, sock=listener)
            async with server:
                _, writer = await asyncio.open_connection(*listener.getsockname())
                transport = await accepted
                found = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                writer.close()
                transport.close()
                return int(found)

    assert asyncio.run(option())
