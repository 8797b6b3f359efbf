"""`sessionary mcp`: the MCP server, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import os
import signal

import click

from sessionary.cli import collect_garbage, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, make_folder
from sessionary.errors import Invalid, Unsupported
from sessionary.loopback import HOST, new_token
from sessionary.workspace import Workspace
from sessionary.xdg import xdg_folder


@command(
    "mcp",
    "sessionary mcp                       for the configuration of an agent",
    "sessionary mcp --home /mnt/old/.amplifier",
    "sessionary mcp --http 8765           streamable HTTP on this machine",
    "claude mcp add sessionary -- sessionary mcp",
)
@options.home
@options.flag("--allow-writes", help="Let repair, fork and rewind change sessions.")
@click.option(
    "--http",
    "--port",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve streamable HTTP on 127.0.0.1 instead of standard input and output; 0: a free port.",
)
@options.flag("--no-redact", help="Do not mask secrets in answers.")
def mcp_command(allow_writes: bool, port: int | None, no_redact: bool) -> int:
    """Serve the sessions to agents as MCP tools.

    The tools list, search, read, check, compare and export sessions. Answers have at most 4,000 tokens by
    default, say what they leave out, and mark text of sessions as untrusted. Secrets are masked, and searches
    run over the masked text. Without --allow-writes, the tools repair, fork and rewind only report what they
    would do.

    With --http, requests need the header `Authorization: Bearer TOKEN`. The token is new at each start; the
    path of a file with it is printed, and only the user can read it.

    The package needs its extra: pip install 'sessionary[mcp]'
    """
    try:
        from sessionary.mcp import server as servers
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "uvicorn"):
            raise
        hint = "pip install 'sessionary[mcp]'"
        raise Unsupported("the MCP server needs the package mcp", hint=hint) from None
    homes.workspace()  # a home that is missing is refused now, not in the first call
    context = click.get_current_context()

    def opened() -> Workspace:
        with context.scope(cleanup=False):  # in the thread of a call; it knows all values of --home
            return homes.workspace()

    words = [word for one in homes.named() for word in ("--home", str(homes.folder(one)))]
    server = servers.build(opened, redact=not no_redact, allow_writes=allow_writes, home=words)
    collect_garbage()
    if port is None:
        server.run("stdio")
    else:
        _serve_http(server, port)
    return 0


def _serve_http(server: object, port: int) -> None:
    """Serve with a new token, whose file is removed at the end."""
    from mcp.server import MCPServer

    from sessionary import http_server
    from sessionary.mcp import http

    assert isinstance(server, MCPServer)
    try:
        listener = http_server.listen(port)
    except OSError as error:
        hint = "give another port, or 0 for a free one"
        raise Invalid(f"port {port} cannot be used: {error.strerror}", operation="mcp", hint=hint) from None
    with listener:
        token = new_token()
        actual = listener.getsockname()[1]
        # Also at SIGTERM the file of the token is removed.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        place = _keep(token, actual)
        try:
            output.aside(f"http://{HOST}:{actual}{http.PATH}")
            output.aside(harmless(f"token: {place}"))
            http.serve(server, listener, token)
        finally:
            atomic.forget_file(place)


def _keep(token: str, port: int) -> str:
    """Write the token to a file that only the user can read; return its path.

    Raises:
        Invalid: there is no place for it.
    """
    folder = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if folder is None:
        raise Invalid("there is no folder for the token", operation="mcp", hint="set XDG_STATE_HOME or HOME")
    make_folder(OS_FS, folder)
    place = os.path.join(folder, f"mcp-{port}.token")
    atomic.forget_file(place)  # of a server that was killed
    atomic.create(place, f"{token}\n".encode(), mode=0o600)
    return place
