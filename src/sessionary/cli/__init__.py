"""Entry point of the command line.

Start-up time counts in every call, so this module imports nothing slow: `--version` loads neither click nor
any other package of the project.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with `argv` (default: that of the process) and return its exit code.

    Errors are printed on standard error and become exit codes; only exceptions that end the interpreter escape.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments == ["--version"]:
        from sessionary.version import __version__

        try:
            sys.stdout.write(f"sessionary {__version__}\n")
            sys.stdout.flush()
            return 0
        except (OSError, AttributeError):
            pass  # a full disk under the result, or no standard output at all: reported below with the other errors
    # A command is short-lived and keeps nearly all that it allocates, its own code first. Garbage collection
    # would take a third of the time of a long list and find nothing. `collect_garbage` starts it again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        from sessionary.cli.errors import run

        return run(arguments)
    except (
        KeyboardInterrupt
    ):  # our own code was still loading; later interrupts are handled with the other errors
        return _interrupted()
    finally:
        if argv is None:  # the process ends now: skip a last collection over all of its code
            gc.freeze()
        if collecting:
            gc.enable()


def collect_garbage() -> None:
    """Collect garbage from now on: for commands that run until they are interrupted, whose memory would only grow."""
    gc.enable()


def _interrupted() -> int:
    try:
        sys.stderr.write("interrupted\n")
    except (OSError, AttributeError):
        pass  # nothing is left to report to
    return 130
