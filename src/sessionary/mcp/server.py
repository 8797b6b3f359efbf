"""The server: its tools as clients see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import getdoc
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from sessionary.errors import AmbiguousId, SessionaryError
from sessionary.escaping import harmless
from sessionary.mcp.answers import NOTICE, Answer
from sessionary.mcp.changing import Changing
from sessionary.mcp.reading import Call, Reading
from sessionary.version import __version__
from sessionary.workspace import Workspace

READING = (
    "list_sessions",
    "search_sessions",
    "read_session",
    "get_events",
    "get_stats",
    "check_session",
    "diff_sessions",
    "export_session",
)
CHANGING = {"repair_session": True, "fork_session": False, "rewind_session": True}
"""The tools that change sessions, and whether they replace what is stored."""

_MOST_MATCHES = 10
_LONGEST_ERROR = 2_000

_INSTRUCTIONS = (
    "Stored sessions of coding agents on this machine. Find one with list_sessions or search_sessions, read it with "
    "read_session, beginning at the index of a hit, and see what is damaged with check_session. Answers are JSON: "
    f"{NOTICE} `cut` says what was left out and how to get it. Secrets are masked unless the user has turned that off."
)


def build(
    open_workspace: Callable[[], Workspace],
    *,
    redact: bool = True,
    allow_writes: bool = False,
    home: Sequence[str] = (),
) -> MCPServer:
    """The server with all tools.

    Args:
        open_workspace: opens the sessions; called for each call of a tool, in its thread.
        redact: mask secrets, and search only what is left.
        home: the words of a command line that name the home, for the commands in answers.
    """
    server: MCPServer = MCPServer(
        "sessionary", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )

    def call() -> Call:
        return Call(open_workspace(), redact=redact)

    reading = Reading(call)
    changing = Changing(call, allow_writes=allow_writes, home=home)
    for name in READING:
        _add(
            server, getattr(reading, name), call, ToolAnnotations(read_only_hint=True, open_world_hint=False)
        )
    for name, replaces in CHANGING.items():
        hints = ToolAnnotations(
            read_only_hint=not allow_writes, destructive_hint=allow_writes and replaces, open_world_hint=False
        )
        _add(server, getattr(changing, name), call, hints)
    return server


def _add(
    server: MCPServer, tool: Callable[..., Answer], call: Callable[[], Call], hints: ToolAnnotations
) -> None:
    """Add a tool. Its errors reach the model with their remedy, and masked as answers are."""

    @wraps(tool)
    def answer(*args: Any, **arguments: Any) -> str:
        try:
            return tool(*args, **arguments).text()
        except SessionaryError as error:
            raise ToolError(_words(error, call)) from error

    server.add_tool(answer, description=getdoc(tool), annotations=hints, structured_output=False)


def _words(error: SessionaryError, call: Callable[[], Call]) -> str:
    """The message of an error, and what to do about it."""
    matches = [str(match) for match in error.details.get("matches", ())]
    if isinstance(error, AmbiguousId) and matches:
        shown = ", ".join(match.partition("  ")[0] for match in matches[:_MOST_MATCHES])
        remedy: str | None = f"give the whole id, one of {shown}"
    else:
        remedy = error.hint
    text = f"{type(error).__name__}: {error.message}" + (f". Remedy: {remedy}" if remedy else "")
    try:
        text = call().clean(text)
    except SessionaryError:  # the rules file, or the home, is what is wrong: the message is about it alone
        pass
    return harmless(text)[:_LONGEST_ERROR]
