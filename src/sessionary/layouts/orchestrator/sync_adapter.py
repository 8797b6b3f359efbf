"""Features from another machine, and their list.

A history has many writers, so the merged one has the lines of both sides in order of time. In the state each
field has the value that was set last. Plans and artifacts are kept in both versions. The list, which users
and version control merge, is synchronised like a feature of its own, and only a user resolves its conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sessionary.codec.problems import text_problems
from sessionary.codec.yaml_edit import edit_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import not_found, stat_or_none, storage_failed
from sessionary.errors import Corrupt, Invalid, Unsupported
from sessionary.layouts.base import MayMatch
from sessionary.layouts.fields import Merged, merge_fields, overruled
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.orchestrator import names
from sessionary.layouts.orchestrator.feature import Feature
from sessionary.layouts.orchestrator.history import parse_history
from sessionary.layouts.orchestrator.index import Index, parse_index
from sessionary.layouts.orchestrator.layout import AGENT, FeatureLayout
from sessionary.layouts.orchestrator.planfile import parse_plan
from sessionary.layouts.orchestrator.reading import state_problems
from sessionary.layouts.orchestrator.statefile import CURRENT, StateFile, parse_state
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import Cursor, Header, Item, Problem, SessionRef
from sessionary.transcript.fold import Fold

TIMEOUT: Final = 30.0
_PATH = "state.yaml"
_ASIDE: Final = ".conflict-"
_FILES: Final = (names.STATE, names.PLAN, names.INDEX, names.HISTORY)


class FeatureSyncLayout(FeatureLayout, SyncLayout):
    """The features of one project, for synchronisation."""

    def project(self) -> str | None:
        return self._ref(f"{self.home}/any").project

    def discover(self) -> Iterator[SessionRef]:
        """The features, and the list of them."""
        yield from super().discover()
        if stat_or_none(self._fs, self._list.locator) is not None:
            yield self._list

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        if str(folder.absolute()) == self._list.locator:
            return self._list if stat_or_none(self._fs, self._list.locator) is not None else None
        return super().ref_for_path(folder)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        return Header(AGENT) if ref.session_id == names.INDEX else super().header(ref, fold)

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        return iter(()) if ref.session_id == names.INDEX else super().read(ref, after, may_match)

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        self.refuse_other_project(project, session_id)
        return self._ref(f"{self.home}/{names.check_id(session_id)}")

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        if ref.session_id != names.INDEX:
            yield from super().parts(ref)
            return
        try:
            size = self._fs.stat(ref.locator).st_size
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_failed(error, "look at", ref.locator) from error
        yield Part(names.INDEX, ref.locator, PartKind.DOCUMENT, size)

    def single_file(self, session_id: str) -> str | None:
        return names.INDEX if session_id == names.INDEX else None

    def part_kind(self, name: str) -> PartKind | None:
        if name == names.HISTORY:
            return PartKind.JOURNAL
        segments = name.split("/")
        below = len(segments) > 1 and all(segment and not segment.startswith(".") for segment in segments)
        below = below and segments[0] not in _FILES and _ASIDE not in segments[-1]
        return PartKind.DOCUMENT if below or name in _FILES else None

    def rule(self, name: str) -> Rule:
        if name == names.HISTORY:
            return Rule(Policy.UNION, time="timestamp")
        if name == names.INDEX:
            return Rule(Policy.MANUAL)
        return Rule(Policy.FIELDS if name == names.STATE else Policy.KEEP_BOTH)

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        ours, others = _read(mine), _read(theirs)
        if ours is None or others is None:
            return None
        before = _read(base) if base is not None else None
        ours_last = _order(ours) >= _order(others)
        later, earlier = (ours, others) if ours_last else (others, ours)
        document = _brought_together(before, later, earlier)
        old = before.document if before is not None else {}
        gave_way = overruled(old, earlier.document, document, ignore=("last_updated",), within=(CURRENT,))
        return Merged(edit_yaml(later.data, document), ours_last, tuple(gave_way))

    def faults(self, name: str, data: bytes) -> list[Problem]:
        if name == names.HISTORY:
            return parse_history(data, name).problems
        if name == names.STATE:
            return state_problems(data, name)
        if name == names.PLAN:
            return parse_plan(data, name).problems
        return parse_index(data, name).problems if name == names.INDEX else text_problems(data, name)

    @contextmanager
    def lock(self, ref: SessionRef) -> Iterator[None]:
        index = Index(self._fs, str(self.home), TIMEOUT)
        if ref.session_id == names.INDEX:
            with index.held():
                yield
            return
        if self.ref_for_path(ref.path) is None:
            raise not_found(ref.locator, f"No feature {ref.session_id}")
        feature = Feature(self._fs, ref.locator, index, lambda: datetime.fromtimestamp(self._now(), UTC))
        try:
            with feature.held(TIMEOUT):
                yield
        finally:
            feature.journal.close()
            feature.lock.close()

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        """Features never diverge into two: no file of theirs has such a policy."""

    def trash(self, ref: SessionRef, now: datetime) -> None:
        """As `SyncLayout.trash`: to the archive."""
        places = atomic.numbered(f"{self.home}/{names.ARCHIVE}/{ref.session_id}", mark=".")
        target = atomic.unused(self._fs, places)
        atomic.move_folder(ref.locator, target, fs=self._fs)
        atomic.forget_file(
            f"{target}/{names.SCRIPT_LOCK}", fs=self._fs
        )  # it was held, and moved with the folder

    @property
    def _list(self) -> SessionRef:
        return self._ref(f"{self.home}/{names.INDEX}")


def _read(data: bytes) -> StateFile | None:
    """A state, whatever feature it names; None if it is not valid."""
    try:
        return parse_state(data, _PATH, "")
    except (Corrupt, Invalid, Unsupported):
        return None


def _order(state: StateFile) -> tuple[Any, ...]:
    """Sort key: the time of the last change, then the content, so that both machines choose alike."""
    return state.state.last_updated or datetime.min.replace(tzinfo=UTC), state.data


def _brought_together(before: StateFile | None, later: StateFile, earlier: StateFile) -> dict[str, Any]:
    """The later state, with the changes that only the earlier one has."""
    if before is None:
        return later.document
    last = later.document[CURRENT]
    current = merge_fields(before.document[CURRENT], last, earlier.document[CURRENT])
    document = merge_fields(before.document, later.document, earlier.document)
    return {**document, CURRENT: {**current, "last_updated": last["last_updated"]}}
