"""Write docs/errors.md from the error classes."""

import builtins
import inspect
import sys
from collections.abc import Iterator

from scripts.generated import publish
from sessionary.errors import SessionaryError

INTRO = """\
<!-- Written by `make docs` from the error classes; edit those. -->
# Errors

Every deliberate exception of Sessionary is a `SessionaryError`.
If a builtin has the same meaning, the class also derives from that builtin, so existing callers keep catching it.
Any other exception is a bug.
"""


def error_classes(base: type[SessionaryError] = SessionaryError) -> Iterator[type[SessionaryError]]:
    """`base` and every class of the package below it, parents first, in the order of their definition."""
    yield base
    for below in base.__subclasses__():
        if below.__module__.startswith("sessionary."):
            yield from error_classes(below)


def also(error: type[SessionaryError]) -> list[str]:
    """The builtins, besides Exception, that catch `error`; only the nearest of each line."""
    return [parent.__name__ for parent in error.__bases__ if vars(builtins).get(parent.__name__) is parent]


def tree() -> str:
    """The classes as an indented list, each with the builtin that it also is."""
    lines = []
    for error in error_classes():
        depth = sum(issubclass(parent, SessionaryError) for parent in error.__mro__) - 1
        builtin = [name for name in also(error) if name != "Exception"]
        lines.append("    " * depth + error.__name__ + (f" ({', '.join(builtin)})" if builtin else ""))
    return "\n".join(lines)


def section(error: type[SessionaryError]) -> str:
    """One class: its promise, its fields and its exit code."""
    return (
        f"## {error.__name__}\n\n{_as_markdown(inspect.getdoc(error) or '')}\n\n"
        f"Exit code of the command line: {error.exit_code}.\n"
    )


def _as_markdown(docstring: str) -> str:
    lines: list[str] = []
    for line in docstring.replace("``", "`").splitlines():
        if line == "Attributes:":
            lines.append("Fields:\n")
        elif line.startswith("    ") and not line.startswith("     "):
            name, _, text = line.strip().partition(": ")
            lines.append(f"- `{name}`: {text}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line)
    return "\n".join(lines)


def page() -> str:
    """The whole document."""
    return "\n".join([INTRO, f"```text\n{tree()}\n```\n", *(section(error) for error in error_classes())])


if __name__ == "__main__":
    sys.exit(publish("errors.md", page(), sys.argv[1:]))
