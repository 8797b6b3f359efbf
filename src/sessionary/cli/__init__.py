"""The command line: words in, words out.

Start-up time is felt at every call, so this module imports nothing that takes time: asking for the version loads
neither click nor any of our rooms.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with `argv` (default: that of the process) and return its exit code.

    Nothing escapes but what ends an interpreter: errors are told on standard error and become exit codes.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments == ["--version"]:
        from sessionary import __version__

        try:
            sys.stdout.write(f"sessionary {__version__}\n")
            sys.stdout.flush()
            return 0
        except (OSError, AttributeError):
            pass  # a full disk under the result, or no standard output at all: told below, where errors are
    # A command lives for a moment and keeps nearly all that it makes, its own code first: to look for garbage again and
    # again takes a third of the time of a long list, and finds none.
    collecting = gc.isenabled()
    gc.disable()
    try:
        from sessionary.cli.errors import run

        return run(arguments)
    except KeyboardInterrupt:  # our own code was still being loaded; later ones are told where all else is
        return _interrupted()
    finally:
        if argv is None:  # the process ends now; it would look through all of its code once more
            gc.freeze()
        if collecting:
            gc.enable()


def _interrupted() -> int:
    try:
        sys.stderr.write("interrupted\n")
    except (OSError, AttributeError):
        pass  # nobody is there to be told
    return 130
