"""The most important argument of a tool call, for one-line displays."""

from __future__ import annotations

from typing import Any

# Best first.
_TELLING = (
    "command", "pattern", "query", "agent", "file_path", "path", "url", "instruction", "prompt", "name", "description",
)  # fmt: skip


def telling_arguments(arguments: Any) -> list[str]:
    """The two most informative arguments, as they are stored."""
    if not isinstance(arguments, dict):
        return [] if arguments is None else [str(arguments)]
    words = [str(arguments[name]) for name in _TELLING if isinstance(arguments.get(name), str | int)]
    if not words:
        words = [
            f"{name}={value}" for name, value in arguments.items() if isinstance(value, str | int | float)
        ]
    return words[:2]
