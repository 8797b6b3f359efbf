"""Read a feature tolerantly: nothing is written, and no damage of a file is raised.

A missing file is empty and reported; an unreadable state is reported with the state that the history gives,
which only `repair` writes.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from sessionary.disk.fs import Fs, is_folder, names_in, placeholder_name
from sessionary.errors import Corrupt, Invalid, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts.orchestrator import names, statefile
from sessionary.layouts.orchestrator.history import History, read_history
from sessionary.layouts.orchestrator.index import IndexFile
from sessionary.layouts.orchestrator.replay import status_of
from sessionary.layouts.orchestrator.rules import ACTIVE, FEATURE_STATUSES, unreadable
from sessionary.layouts.orchestrator.statefile import FeatureState, StateFile
from sessionary.model import Problem, Severity


class StateReading(NamedTuple):
    """The state file of a feature, or why it cannot be read."""

    file: StateFile | None
    problems: list[Problem]
    error: SessionaryError | None = None

    @property
    def state(self) -> FeatureState | None:
        """Its content; None if it cannot be read."""
        return self.file and self.file.state


def read_state(fs: Fs, folder: str) -> StateReading:
    """The state of a feature; damage is reported, not raised."""
    try:
        found = statefile.read_state(fs, folder)
    except StorageFailed as error:
        return StateReading(None, [unreadable(error)], error)
    except (NotFound, Corrupt, Invalid, Unsupported) as error:
        return StateReading(None, _no_state(f"{folder}/{names.STATE}", error), error)
    return StateReading(found, found.problems)


def state_problems(data: bytes, path: str) -> list[Problem]:
    """Faults in the bytes of a state, whatever feature it names, and whatever clock set its times.

    A newer version is not a fault.
    """
    try:
        return statefile.parse_state(data, path, "").problems
    except (Corrupt, Invalid) as error:
        found = _no_state(path, error)
        return [problem for problem in found if problem.message != statefile.BEFORE_ITS_START]
    except Unsupported:
        return []


def _no_state(path: str, error: SessionaryError) -> list[Problem]:
    """Why the state is missing: all faults of one that breaks the contract, or the one reason."""
    code = {"NotFound": "no_state", "Unsupported": "newer_version", "SchemaError": "state_schema"}.get(
        type(error).__name__, "bad_state"
    )
    messages = error.details.get("faults") or [error.message]
    lines = error.details.get("lines") or [error.details.get("line")]
    return [
        Problem(code, Severity.stops_resume, path, line, None, message, error.hint)
        for message, line in zip(messages, lines, strict=True)
    ]


def status_of_feature(
    fs: Fs, folder: str, index: IndexFile, history: History | None = None, *, strict: bool = False
) -> str:
    """The status of a feature: from the list, else from the history, else active.

    Args:
        history: the history, if it was read; else it is read only if the list lacks the feature.
        strict: raise if the history cannot be read.

    Raises:
        StorageFailed: it cannot be read, and `strict` is given.
    """
    row = index.rows.get(os.path.basename(folder))
    listed = row and row.get("status")
    if index.error is None and (listed in FEATURE_STATUSES or (history is None and row is not None)):
        return str(listed or ACTIVE)
    history = history or read_history(fs, folder, strict=strict)
    return status_of(history.values) or str(listed or ACTIVE)


def folder_of(fs: Fs, home: str, feature_id: str) -> str | None:
    """The folder of a feature, below `.ai-session` or in its archive; None if it is in neither."""
    places = (f"{home}/{feature_id}", f"{home}/{names.ARCHIVE}/{feature_id}")
    return next((folder for folder in places if is_folder(fs, folder)), None)


def is_feature(fs: Fs, folder: str) -> bool:
    """True for a folder with one of the files of a feature, or a placeholder of one."""
    every = (*names.FILES, *map(placeholder_name, names.FILES))
    return any(exists(fs, f"{folder}/{name}") for name in every)


def exists(fs: Fs, path: str) -> bool:
    """True if a path exists and can be examined."""
    try:
        fs.stat(path)
    except OSError:
        return False
    return True


def feature_ids(fs: Fs, home: str) -> list[str]:
    """The features below a `.ai-session`, sorted by name; none if it is missing."""
    found = names_in(fs, home) or ()
    return [name for name in sorted(found) if not name.startswith(".") and is_feature(fs, f"{home}/{name}")]
