"""The person's pager, started with the first line, so that nothing of a long result scrolls away."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


def command() -> list[str] | None:
    """The words that start the pager: those of ``$PAGER``, else `less`; None where there is none, or none is wanted.

    An empty ``$PAGER``, or ``cat``, turns paging off. A terminal that can do nothing has no use for it, and of one that
    does not say what it is (no ``$TERM``) `less` asks the person to press a key before anything is shown.
    """
    if os.environ.get("TERM", "") in ("", "dumb") or sys.platform == "win32":
        return None
    import shlex  # here and below: most results are not paged
    import shutil

    wanted = os.environ.get("PAGER")
    words = shlex.split(wanted) if wanted is not None else ["less"]
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return words


class Pager:
    """Where the lines of a result go to be paged.

    Args:
        words: what starts the pager.
        encoding: that of the terminal.
    """

    def __init__(self, words: list[str], encoding: str) -> None:
        self.encoding = encoding
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def started(self) -> bool:
        """True from the first line on: the screen is then the pager's."""
        return self._process is not None

    def write(self, text: str) -> None:
        """Hand on some text.

        Raises:
            BrokenPipeError: the person has seen enough.
        """
        if self._process is None:
            import subprocess

            # F: end by itself where everything fits on the screen. R: colours. X: leave it on the screen.
            surroundings = {"LESS": "FRX", **os.environ}
            self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, env=surroundings)
        stream = self._process.stdin
        assert stream is not None
        stream.write(text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Show what has come so far."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.flush()

    def close(self) -> None:
        """Say that this was all, and wait until the person has read it."""
        if self._process is None:
            return
        try:
            self._process.communicate()
        except BrokenPipeError:
            self._process.wait()
