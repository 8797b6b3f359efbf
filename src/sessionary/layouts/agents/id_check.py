"""Sessions whose records state another id than the name of their file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sessionary.disk.fs import Fs, is_file
from sessionary.layouts.files import mended_copy
from sessionary.model import Problem, SessionRef, Severity


def id_problems(ref: SessionRef, stated: str | None, fs: Fs | None = None) -> Iterator[Problem]:
    """A problem if the records state another id than the name of the file.

    Args:
        stated: the id that its newest record states.
        fs: for agents that name the file of a session by its id alone; another one may have that name.
    """
    if stated is None or stated == ref.session_id:
        return
    words = f"its records state the id {stated}"
    if fs is not None and is_file(fs, f"{os.path.dirname(ref.locator)}/{stated}.jsonl"):
        words += ", which another file has as well: the agent may continue the other one"
        remedy = mended_copy(ref)
        yield Problem.of_file("id_clash", Severity.stops_resume, ref.locator, words, remedy)
    else:
        words += " instead of the name of the file"
        yield Problem.of_file("id_mismatch", Severity.note, ref.locator, words, "none needed")
