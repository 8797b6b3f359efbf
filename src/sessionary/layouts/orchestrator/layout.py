"""The read side of a `.ai-session`: one session for each feature, whose conversation is its history.

A feature is a folder, not hidden, that holds one of the three files of a feature. The archive is no list of features:
what was put away shows again when it is moved back.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from sessionary.codec import read_lines
from sessionary.disk.fs import OS_FS, READ, Fs, is_folder, not_found, read_all, size_of, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.base import Capability, Location, Part, PartKind, from_start, location_of
from sessionary.layouts.clock import FUTURE_REMEDY, FUTURE_TIME, ahead_message, changed_at, is_ahead
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.layouts.orchestrator import checking, names, planfile, reading
from sessionary.layouts.orchestrator.history import read_history
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.rules import unreadable
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import (
    Cursor,
    Entry,
    FileCursor,
    Item,
    Problem,
    SessionRef,
    Severity,
    Summary,
    health,
)

AGENT = "orchestrator"
TITLE = 200

_PARTS = {
    names.STATE: PartKind.DOCUMENT,
    names.PLAN: PartKind.DOCUMENT,
    names.HISTORY: PartKind.JOURNAL,
}


class FeatureLayout:
    """The features below one project. Reads only; no method makes, locks or changes anything.

    Args:
        root: the folder of the project, which holds `.ai-session`; or that folder itself. It need not exist.
        fs: the file system.
        project: what the features are said to belong to; by default the name of the project's folder.
        now: the time in seconds since 1970, to tell what was changed a moment ago.
    """

    name: ClassVar[str] = "feature"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.APPENDS})
    side_files: ClassVar[tuple[str, ...]] = (
        ".sessionary.lock",
        ".state.lock",
        ".index.lock",
        ".archive/",
        ".*.tmp",
        "*.before-*",
        "*.candidate-*",
        "*.conflict-*",
        "*.corrupt-*",
        "*.original-*",
    )

    def __init__(
        self, root: Path, fs: Fs = OS_FS, *, project: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.home = root if root.name == names.HOME else root / names.HOME
        self._fs = fs
        self._project = project
        self._now = now

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, str(self.home))

    def discover(self) -> Iterator[SessionRef]:
        for feature_id in reading.feature_ids(self._fs, str(self.home)):
            yield self._ref(f"{self.home}/{feature_id}")

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        folder = folder.absolute()
        inside = reading.is_feature(self._fs, str(folder)) and is_folder(self._fs, str(folder))
        return self._ref(str(folder)) if inside else None

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        return fingerprint_of(self._fs, ref.locator, self._now(), wanted=_is_shown)

    def summary(self, ref: SessionRef) -> Summary:
        try:
            return self._read(ref, self._stats(ref.locator, ""))
        except FileNotFoundError:
            raise not_found(ref.locator, f"No feature {ref.session_id}") from None
        except StorageFailed:
            raise
        except OSError as error:
            return _closed(ref, storage_failed(error, "read", ref.locator))

    def entries(self, ref: SessionRef, after: FileCursor | None = None) -> Iterator[Entry]:
        path = f"{ref.locator}/{names.HISTORY}"
        try:
            fd = self._fs.open(path, READ)
            try:
                found, data = self._fs.fstat(fd), read_all(self._fs, fd)
            finally:
                self._fs.close(fd)
        except FileNotFoundError:
            raise not_found(path, f"No history at {path}") from None
        except OSError as error:
            raise storage_failed(error, "read", path) from error
        goes_on = after is not None and (after.device, after.inode) == (found.st_dev, found.st_ino)
        start = after.offset if after is not None and goes_on and after.offset <= len(data) else 0
        for index, record in enumerate(read_lines(data[start:], path, byte=start).records()):
            line_end = data.find(b"\n", record.byte + len(record.raw))
            behind = line_end + 1 if line_end >= 0 else len(data)
            yield Entry(index, record, FileCursor(found.st_dev, found.st_ino, behind))

    def read(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Item]:
        from sessionary.transcript.typed import typed  # here, since a list needs no messages

        return from_start(typed(self.entries(ref), f"{ref.locator}/{names.HISTORY}"), after)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        try:
            yield from self._parts_below(ref.locator, "")
        except OSError as error:
            raise storage_failed(error, "read", ref.locator, session=ref.session_id) from error

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        yield from checking.feature_problems(self._fs, ref.locator)
        yield from (problem for problem in self.summary(ref).problems if problem.code == FUTURE_TIME)

    def check_home(self) -> Iterator[Problem]:
        """As `ChecksHome.check_home`: what is wrong with the list of features."""
        yield from Index(self._fs, str(self.home), 0.0).read().problems

    def _ref(self, folder: str) -> SessionRef:
        home = os.path.dirname(folder)
        project = os.path.basename(os.path.dirname(home)) if os.path.basename(home) == names.HOME else None
        if home == str(self.home):
            project = self._project or project
        return SessionRef(self.name, os.path.basename(folder), folder, project)

    def _read(self, ref: SessionRef, files: dict[str, os.stat_result]) -> Summary:
        found = reading.read_state(self._fs, ref.locator)
        plan = planfile.read_plan(self._fs, ref.locator)
        history = read_history(self._fs, ref.locator)
        state, values = found.state, history.values
        problems = [*found.problems, *plan.problems]
        problems += [p for p in checking.history_problems(history) if p.severity > Severity.note]
        problems += checking.synchroniser_problems(self._fs, ref.locator)
        head = plan.document.get("feature")
        head = head if isinstance(head, dict) else {}
        created = state.started_at if state else parse(head.get("created_at"))
        updated = self._updated(ref, state.last_updated if state else None, files, problems)
        size = sum(found.st_size for found in files.values() if not stat.S_ISDIR(found.st_mode))
        turns = sum(_is_turn(value) for value in values)
        title = head.get("name")
        return Summary(
            ref,
            AGENT,
            " ".join(title[:TITLE].split()) or None if isinstance(title, str) else None,
            None,
            len(values),
            turns,
            None,
            created,
            updated,
            size,
            health(problems),
            problems,
        )

    def _updated(
        self,
        ref: SessionRef,
        changed: datetime | None,
        files: dict[str, os.stat_result],
        problems: list[Problem],
    ) -> datetime | None:
        """When a feature changed last, by its state, else by its files. A time after the clock is only reported."""
        now = self._now()
        if changed is not None and not is_ahead(changed, now):
            return changed
        if changed is not None:
            path, message = f"{ref.locator}/{names.STATE}", ahead_message("last_updated", changed)
            problems.append(Problem("future_time", Severity.note, path, None, None, message, FUTURE_REMEDY))
        times = [changed_at(now, found.st_mtime, found.st_ctime) for found in files.values()]
        newest = max(times, default=0.0)
        return datetime.fromtimestamp(newest, UTC) if newest else None

    def _stats(self, folder: str, below: str) -> dict[str, os.stat_result]:
        """The stat of each file in a folder and below it, by its path from the feature. Raises OSError.

        Hidden files are left out: locks and temporary files come and go while somebody writes.
        """
        found: dict[str, os.stat_result] = {}
        for name in self._fs.listdir(folder):
            if name.startswith("."):
                continue
            found[f"{below}{name}"] = here = self._fs.lstat(f"{folder}/{name}")
            if stat.S_ISDIR(here.st_mode):
                found |= self._stats(f"{folder}/{name}", f"{below}{name}/")
        return found

    def _parts_below(self, folder: str, below: str) -> Iterator[Part]:
        for name in sorted(self._fs.listdir(folder)):
            path = f"{folder}/{name}"
            if name.startswith("."):
                continue
            if is_folder(self._fs, path):
                yield from self._parts_below(path, f"{below}{name}/")
            elif (size := size_of(self._fs, path)) is not None:
                kind = PartKind.DOCUMENT if below else _PARTS.get(name, PartKind.KEPT)
                yield Part(f"{below}{name}", path, kind, size)


def _is_shown(path: str) -> bool:
    """False for hidden files: locks and temporary files come and go while somebody writes."""
    return not path.rpartition("/")[2].startswith(".")


def _is_turn(entry: dict[str, Any]) -> bool:
    """True for a command, and for a message of a user that was logged among the commands."""
    return ("command" in entry and "phase" not in entry) or entry.get("role") == "user"


def _closed(ref: SessionRef, error: StorageFailed) -> Summary:
    problems = [unreadable(error)]
    return Summary(ref, AGENT, None, None, 0, 0, None, None, None, 0, health(problems), problems)
