"""The read side of a `.ai-session`: one session for each feature, whose conversation is its history.

A feature is a folder, not hidden, that holds one of the three files of a feature. The archive is not listed:
an archived feature is shown again when it is moved back.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sessionary.codec.damage import lenient
from sessionary.disk.fs import (
    OS_FS,
    Fs,
    descriptor,
    is_folder,
    not_found,
    read_at,
    size_of,
    stat_or_none,
    storage_errors,
    storage_failed,
)
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.clock import FUTURE_TIME, changed_at, last_change
from sessionary.layouts.files import Location, Part, PartKind, location_of
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.layouts.jsonl import Stored, raw_record, read_jsonl
from sessionary.layouts.orchestrator import checking, entries, names, planfile, reading
from sessionary.layouts.orchestrator.checking import no_history, with_remedy
from sessionary.layouts.orchestrator.history import HEALED, odd_problem
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.rules import unreadable
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Cursor, Header, Item, Place, Problem, Record, Reset, SessionRef, Severity

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

AGENT = "orchestrator"

_PARTS = {names.STATE: PartKind.DOCUMENT, names.PLAN: PartKind.DOCUMENT, names.HISTORY: PartKind.JOURNAL}


class FeatureLayout:
    """The features below one project. Only `set_name` locks or changes anything.

    Args:
        root: the folder of the project, which holds `.ai-session`; or that folder itself. It need not exist.
        project: the project of the features; by default the name of the project's folder.
        now: the time in seconds since 1970, to recognise what was changed a moment ago.
    """

    name: ClassVar[str] = "feature"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.APPENDS, Capability.RENAME})
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

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.transcript.fold import short_title

        folder, now = ref.locator, self._now()
        history = f"{folder}/{names.HISTORY}"
        try:
            files = list(self._stats(folder))
            missing = stat_or_none(self._fs, history) is None
        except FileNotFoundError:
            raise not_found(folder, f"No feature {ref.session_id}") from None
        except OSError as error:
            return Header(AGENT, problems=[unreadable(storage_failed(error, "read", folder))])
        found, plan = reading.read_state(self._fs, folder), planfile.read_plan(self._fs, folder)
        stated = found.state and found.state.last_updated
        changed = max((changed_at(now, each.st_mtime, each.st_ctime) for each in files), default=0.0)
        updated, notes = last_change([("last_updated", stated)], changed, now, f"{folder}/{names.STATE}")
        title = plan.head.get("name")
        return Header(
            AGENT,
            short_title(title) if isinstance(title, str) else None,
            created=found.state.started_at if found.state else parse(plan.head.get("created_at")),
            updated=updated,
            size=sum(each.st_size for each in files if not stat.S_ISDIR(each.st_mode)),
            problems=[
                *found.problems,
                *plan.problems,
                *([no_history(history)] if missing else ()),
                *checking.synchroniser_problems(self._fs, folder),
                *notes,
            ],
        )

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """As `Layout.read`. A history with durations in nanoseconds is read from its start: they are counted."""
        from sessionary.transcript.typed import message_of

        path = f"{ref.locator}/{names.HISTORY}"
        number, slow = 0, list[int]()
        for item in self._records(path, after, may_match):
            if isinstance(item, Record):
                number += 1
                if entries.in_nanoseconds(item.value):
                    if after is not None:
                        yield Reset()
                        yield from self.read(ref)
                        return
                    slow.append(number)
                yield message_of(item.value, Place(path, item.line, item.byte))
            elif isinstance(item, Problem):
                yield with_remedy(item, ref.session_id)
            elif isinstance(item, Reset) or not slow:
                after = None
                yield item
        if slow:
            yield odd_problem("nanoseconds", slow, path)

    def _records(self, path: str, after: Cursor | None, may_match: MayMatch | None) -> Iterator[Stored]:
        """As `read_jsonl`, without notes, and with the entries in damage that can be repaired."""
        for item in read_jsonl(self._fs, path, after, may_match):
            if not isinstance(item, Problem):
                yield item
                continue
            if item.severity > Severity.note:
                yield item
            healed = self._healed(path, item)
            if healed is not None:
                yield healed

    def _healed(self, path: str, problem: Problem) -> Record | None:
        """The entry in damage that can be repaired; None if there is none."""
        if problem.code not in HEALED or problem.line is None or problem.byte is None:
            return None
        with storage_errors("read", path), descriptor(self._fs, path) as fd:
            raw = read_at(self._fs, fd, problem.span, problem.byte)
        value = lenient(raw)
        return None if value is None else Record(value, problem.line, problem.byte, raw)

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        return raw_record(self._fs, ref, place)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        with storage_errors("read", ref.locator, session=ref.session_id):
            yield from self._parts_below(ref.locator, "")

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.transcript.fold import Fold

        yield from checking.feature_problems(self._fs, ref.locator)
        yield from (found for found in self.header(ref, Fold()).problems if found.code == FUTURE_TIME)

    def set_name(self, ref: SessionRef, name: str | None) -> str | None:
        """As `Renames.set_name`: the name is that in the plan, which is the id of the feature unless one was given.

        Durability: as `FeatureStore.set_name`.
        """
        from sessionary.layouts.orchestrator.store import FeatureStore  # here: reading does not need it

        store = FeatureStore.with_fs(self._fs, os.path.dirname(ref.locator))
        before = store.set_name(ref.session_id, (name and " ".join(name.split())) or ref.session_id)
        return None if before == ref.session_id else before

    def check_home(self) -> Iterator[Problem]:
        """As `ChecksHome.check_home`: what is wrong with the list of features."""
        yield from Index(self._fs, str(self.home), 0.0).read().problems

    def _ref(self, folder: str) -> SessionRef:
        home = os.path.dirname(folder)
        project = os.path.basename(os.path.dirname(home)) if os.path.basename(home) == names.HOME else None
        if home == str(self.home):
            project = self._project or project
        return SessionRef(self.name, os.path.basename(folder), folder, project)

    def _stats(self, folder: str) -> Iterator[os.stat_result]:
        """The stat of each file in a folder and below it. Raises OSError.

        Hidden files are left out: locks and temporary files come and go while a process writes.
        """
        for name in self._fs.listdir(folder):
            if not name.startswith("."):
                found = self._fs.lstat(f"{folder}/{name}")
                yield found
                if stat.S_ISDIR(found.st_mode):
                    yield from self._stats(f"{folder}/{name}")

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
    """False for hidden files: locks and temporary files come and go while a process writes."""
    return not path.rpartition("/")[2].startswith(".")
