"""The user's pager, started with the first line, so that a long result does not scroll away."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


def command() -> list[str] | None:
    """The command line of the pager: ``$PAGER``, else `less`; None if there is none or paging is off.

    An empty ``$PAGER``, or ``cat``, turns paging off, and so does a dumb terminal. Without ``$TERM``, `less`
    would ask the user to press a key before it shows anything.
    """
    if os.environ.get("TERM", "") in ("", "dumb") or sys.platform == "win32":
        return None
    import shlex  # imported here and below: most results are not paged
    import shutil

    wanted = os.environ.get("PAGER")
    words = shlex.split(wanted) if wanted is not None else ["less"]
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return words


class Pager:
    """A running pager."""

    def __init__(self, words: list[str], encoding: str) -> None:
        self.encoding = encoding
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def started(self) -> bool:
        """True from the first line on: the pager owns the screen then."""
        return self._process is not None

    def write(self, text: str) -> None:
        """Write text to the pager. Raises BrokenPipeError if the user has quit the pager."""
        if self._process is None:
            import subprocess

            # F: exit if everything fits on one screen. R: pass colours. X: leave the text on the screen.
            surroundings = {"LESS": "FRX", **os.environ}
            self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, env=surroundings)
        stream = self._process.stdin
        assert stream is not None
        stream.write(text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Flush what was written so far."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.flush()

    def close(self) -> None:
        """Close the input of the pager and wait until the user quits it."""
        if self._process is None:
            return
        try:
            self._process.communicate()
        except BrokenPipeError:
            self._process.wait()
