"""Read a feature tolerantly: nothing is written, and no damage of a file is raised.

A missing file is empty and reported; an unreadable state is reported with the state that the history gives,
which only `repair` writes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sessionary.disk.fs import Fs, placeholder_name, stat_or_none, storage_failed
from sessionary.disk.lock import shared
from sessionary.errors import Corrupt, Invalid, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts.orchestrator import names, planfile, statefile
from sessionary.layouts.orchestrator.history import History, read_history
from sessionary.layouts.orchestrator.indexfile import IndexFile
from sessionary.layouts.orchestrator.replay import status_of
from sessionary.layouts.orchestrator.rules import ACTIVE, FEATURE_STATUSES
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.model import Problem, Severity


@dataclass(slots=True)
class StateReading:
    """The state of a feature, or why there is none; `by_us` is that of `statefile.is_by_us`."""

    state: FeatureState | None
    problems: list[Problem] = field(default_factory=list)
    error: SessionaryError | None = None
    by_us: bool = False


def read_state(fs: Fs, folder: str) -> StateReading:
    """The state of a feature; damage is reported, not raised."""
    feature_id = os.path.basename(folder)
    try:
        found = statefile.read_state(fs, folder, feature_id)
    except StorageFailed as error:
        return StateReading(None, [unreadable(error)], error)
    except (NotFound, Corrupt, Invalid, Unsupported) as error:
        return StateReading(None, _no_state(f"{folder}/{names.STATE}", error), error)
    return StateReading(found.state, found.problems, by_us=statefile.is_by_us(found))


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
    """Why there is no state: all faults of one that breaks the contract, or the one reason."""
    code = {"NotFound": "no_state", "Unsupported": "newer_version", "SchemaError": "state_schema"}.get(
        type(error).__name__, "bad_state"
    )
    messages = error.details.get("faults") or [error.message]
    lines = error.details.get("lines") or [error.details.get("line")]
    return [
        Problem(code, Severity.stops_resume, path, line, None, message, error.hint)
        for message, line in zip(messages, lines, strict=True)
    ]


@contextmanager
def plan_lock(fs: Fs, folder: str, timeout: float) -> Iterator[None]:
    """Hold the shared lock under which plans are read.

    A missing lock file means that none of our writers was here, and a reader creates none; nor can it lock a
    file on a read-only medium. A plan is replaced as a whole, so it is read completely without the lock too.

    Raises:
        Locked: a writer held it for the whole time.
    """
    path = f"{folder}/{names.LOCK}"
    if stat_or_none(fs, path) is None or not os.access(path, os.W_OK):
        yield
        return
    with shared(path, fs, timeout):
        yield


def read_plan(fs: Fs, folder: str, timeout: float | None = None) -> planfile.PlanFile:
    """The plan of a feature, under the shared lock if `timeout` is given; damage is reported, not raised.

    Raises:
        Locked: a writer held it for the whole time.
    """
    try:
        if timeout is None:
            return planfile.read_plan(fs, folder)
        with plan_lock(fs, folder, timeout):
            return planfile.read_plan(fs, folder)
    except StorageFailed as error:
        return planfile.PlanFile(None, {}, {}, [unreadable(error)], False, error)


def history_of(fs: Fs, folder: str) -> History:
    """The history of a feature; a read failure is reported, not raised."""
    path = f"{folder}/{names.HISTORY}"
    try:
        return read_history(fs, path)
    except StorageFailed as error:
        return History(path, problems=[unreadable(error)])


def unreadable(error: StorageFailed) -> Problem:
    """The problem for a file that the system refuses to read. Other files and features are still read."""
    return Problem(
        "unreadable_file", Severity.stops_resume, error.path or "", None, None, error.message, error.hint
    )


def status_in(found: IndexFile, feature_id: str, history: History | None = None) -> str:
    """The status of a feature: from the list, else from the history, else active."""
    status = found.rows.get(feature_id, {}).get("status") if found.error is None else None
    if status in FEATURE_STATUSES:
        return str(status)
    if history is not None:
        status = status_of(history.values)
    return status or str(found.rows.get(feature_id, {}).get("status") or ACTIVE)


def status_of_feature(
    fs: Fs, folder: str, found: IndexFile, history: Callable[[Fs, str], History] | None = None
) -> str:
    """As `status_in`; the history is read only if the list has no status.

    Readers pass a `history_of` that treats an unreadable history as empty.

    Raises:
        StorageFailed: the history cannot be read.
    """
    feature_id = os.path.basename(folder)
    if found.error is None and feature_id in found.rows:
        return status_in(found, feature_id)
    read = history(fs, folder) if history else read_history(fs, f"{folder}/{names.HISTORY}")
    return status_in(found, feature_id, read)


def folder_of(fs: Fs, home: str, feature_id: str) -> str | None:
    """The folder of a feature, below `.ai-session` or in its archive; None if it is in neither."""
    places = (f"{home}/{feature_id}", f"{home}/{names.ARCHIVE}/{feature_id}")
    return next((folder for folder in places if is_folder(fs, folder)), None)


def is_feature(fs: Fs, folder: str, inside: Iterable[str] | None = None) -> bool:
    """True for a folder with one of the files of a feature, or a placeholder of one."""
    if inside is not None:
        return any(name in inside for name in names.FILES)
    every = (*names.FILES, *map(placeholder_name, names.FILES))
    return any(look_or_none(fs, f"{folder}/{name}") is not None for name in every)


def look_or_none(fs: Fs, path: str) -> os.stat_result | None:
    """The stat of a path; None if it fails."""
    try:
        return stat_or_none(fs, path)
    except StorageFailed:
        return None


def feature_ids(fs: Fs, home: str) -> list[str]:
    """The features below a `.ai-session`, sorted by name; none if it is missing.

    Raises:
        StorageFailed: the folder exists and cannot be read.
    """
    try:
        found = fs.listdir(home)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_failed(error, "read", home) from error
    return [name for name in sorted(found) if not name.startswith(".") and is_feature(fs, f"{home}/{name}")]


def is_folder(fs: Fs, path: str) -> bool:
    """True if a folder of that name exists."""
    found = look_or_none(fs, path)
    return found is not None and stat.S_ISDIR(found.st_mode)
