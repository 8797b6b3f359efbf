"""All consumers of a session, found by their files, and their states."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from sessionary.codec import read_lines
from sessionary.disk.fs import OS_FS, Fs, read_bytes, stat_or_none, storage_errors
from sessionary.errors import StorageFailed
from sessionary.layouts.conflict_copies import copy_of
from sessionary.layouts.maestro.names import LOG
from sessionary.layouts.maestro.paths import top_of
from sessionary.mailbox.ledger_copy import FOLDER, copied
from sessionary.mailbox.mailbox import Mailbox, Status
from sessionary.mailbox.problems import WORK, dead_letter, words_for
from sessionary.model import Problem, Severity
from sessionary.xdg import state_folder

_FILE = re.compile(r"(?:log|attempts)\.([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.jsonl")
_FEW = 5
_OF_LEDGER = frozenset({"bad_ledger_line", "ledger_went_back"})


def consumers_of(folder: str, fs: Fs = OS_FS) -> list[str]:
    """The names of the consumers of a session, ``work`` first.

    They have left a log or an attempt in its folder, or a copy of a log in the state of the user: if a log
    has lost all its lines, nothing in the folder names its consumer.
    """
    with storage_errors("read", folder):
        names = fs.listdir(folder)
    names += _copied().get(os.path.realpath(folder), ())
    found = {match[1] for name in names if (match := _FILE.fullmatch(name)) and copy_of(name) is None}
    if LOG in names:
        found.add(WORK)
    return sorted(found, key=lambda name: (name != WORK, name))


def _copied() -> dict[str, list[str]]:
    """The names of the logs with copies, by their folder."""
    state = state_folder()
    if state is None or (found := stat_or_none(OS_FS, os.path.join(state, FOLDER))) is None:
        return {}
    return _copied_at(state, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache(maxsize=1)
def _copied_at(state: str, *version: int) -> dict[str, list[str]]:
    """The same, cached for a version of the folder of copies: `check` asks for each session, and there may be many."""
    logs: dict[str, list[str]] = {}
    for path in copied(state):
        folder, name = os.path.split(path)
        logs.setdefault(folder, []).append(name)
    return logs


def statuses_of(folder: str) -> list[Status]:
    """The state of each consumer of a session, always including ``work``, which applies to the session's log.

    Raises:
        NotFound: the folder does not exist.
    """
    return [status_of(folder, name) for name in consumers_of(folder) or [WORK]]


def status_of(folder: str, consumer: str) -> Status:
    """The state of one consumer of a session; see `Mailbox.status`."""
    with Mailbox(folder, consumer) as box:
        return box.status()


def ledger_problems(folder: str) -> Iterator[Problem]:
    """The problems of the logs of a session. None for an unreadable folder, which its readers report."""
    names: list[str] = []
    with suppress(StorageFailed):
        names = consumers_of(folder)
    for name in names:
        try:
            with Mailbox(folder, name) as box:
                yield from box.ledger_problems()
        except StorageFailed as error:
            yield _unreadable(folder, error)


def _unreadable(folder: str, error: StorageFailed) -> Problem:
    path = error.path or folder
    return Problem.of_file("unreadable_ledger", Severity.hides_data, path, error.message, error.hint)


def mailbox_problems(folder: str) -> Iterator[Problem]:
    """The problems of the mailbox of a session, except those of message files: dead letters, damaged logs."""
    for name in consumers_of(folder):
        try:
            status = status_of(folder, name)
        except StorageFailed as error:
            yield _unreadable(folder, error)
            continue
        yield from (problem for problem in status.problems if problem.code in _OF_LEDGER)
        for dead in status.dead:
            path = os.path.join(folder, "breadcrumbs", dead.file)
            yield dead_letter(path, dead.attempts, dead.error, words_for(folder, name, top_of(OS_FS, folder)))
    yield from _not_recovered(folder)


def _not_recovered(folder: str) -> Iterator[Problem]:
    """Notes on lines of a log that `work ledger restore` could not recover, as long as the old log is kept."""
    try:
        names = sorted(name for name in OS_FS.listdir(folder) if ".jsonl.corrupt-" in name)
    except OSError:
        return  # the layout reports an unreadable folder
    for name in names:
        path = os.path.join(folder, name)
        with suppress(StorageFailed):
            found = read_lines(read_bytes(OS_FS, path) or b"", path).problems
            lost = [problem.line for problem in found if problem.severity > Severity.hides_data]
            if lost:
                lines = ", ".join(f"{line:,}" for line in lost[:_FEW]) + (", …" if len(lost) > _FEW else "")
                words = f"a repair could not recover all bytes of line{'s' * (len(lost) > 1)} {lines} of the old log"
                remedy = "none; the old log is kept there"
                yield Problem.of_file("not_recovered", Severity.note, path, words, remedy)
