"""What every call on the features of a project needs: where they lie, who asks, and how a failure is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from sessionary.disk.fs import OS_FS, Fs, expanded, read_bytes
from sessionary.errors import Corrupt, Invalid, NotFound, SchemaError, SessionaryError
from sessionary.layouts.orchestrator import acknowledgment, names, planfile, reading
from sessionary.layouts.orchestrator.feature import Feature, Pool, missing
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.times import in_utc, parse, stamp
from sessionary.model import Problem

TIMEOUT: Final = 5.0
AHEAD: Final = timedelta(days=1)
"""How far a time that a caller gives may be after the clock: devices disagree, and time zones are mistaken."""
DEFAULT_AGENT: Final = "sessionary"


@dataclass(slots=True)
class Report:
    """What the last call has to tell beyond its return value."""

    operation: str = ""
    feature_id: str | None = None
    problems: list[Problem] = field(default_factory=list)


class Telling:
    """A ``with`` block whose errors say what the contract wants to know of them.

    A class, since every call passes through it, and a generator would cost it twice the time.
    """

    __slots__ = ("_about",)

    def __init__(self, root: str, operation: str, file: str, feature_id: str | None) -> None:
        self._about = root, operation, file, feature_id

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SessionaryError):
            root, operation, file, feature_id = self._about
            error.operation = operation
            error.session = error.session or feature_id
            place = file if os.path.isabs(file) else os.path.join(root, feature_id or "", file)
            error.path = error.path or place
            error.error_context = {
                "operation": operation,
                "file": error.path,
                "feature_id": error.session,
                "timestamp": stamp(error.at),
                "details": error.message,
            }


class FeatureHome:
    """A `.ai-session`, and who works on it. `FeatureStore` says what can be done.

    Args:
        root: the folder of the project, which holds `.ai-session`; or that folder itself. Made by the first `create`.
        timeout: seconds to wait for another process that holds a feature or the list.
        agent: who writes, for the history; `update` and its kin can say otherwise.
        require_ack: the file of the contract that an agent must have acknowledged before it may write.

    Attributes:
        home: the folder `.ai-session`.
        last_report: what the last call has to tell beyond its return value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT,
        agent: str = DEFAULT_AGENT,
        require_ack: str | os.PathLike[str] | None = None,
    ) -> None:
        place = Path(expanded(root))
        self.home = place if place.name == names.HOME else place / names.HOME
        self.timeout = timeout
        self.agent = agent
        self.last_report = Report()
        self._require_ack = None if require_ack is None else os.fspath(require_ack)
        self._root = os.path.realpath(self.home)
        self._bind(OS_FS, lambda: datetime.now(UTC))

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        root: str | os.PathLike[str],
        *,
        now: Callable[[], datetime] | None = None,
        **settings: Any,
    ) -> Self:
        """A store over another file system seam or clock: for proofs and doubles."""
        store = cls(root, **settings)
        store._bind(fs, now or store._now)
        return store

    def _bind(self, fs: Fs, now: Callable[[], datetime]) -> None:
        self._fs = fs
        self._now = now
        self._index = Index(fs, self._root, self.timeout)
        self._pool = Pool(fs, self._index, now)
        self._touched: dict[str, datetime] = {}

    def _folder(self, feature_id: str) -> str:
        """Where a feature lies, be it in the archive."""
        folder = reading.folder_of(self._fs, self._root, names.check_id(feature_id))
        if folder is None:
            raise missing(
                self._fs, f"{self._root}/{feature_id}", listed=feature_id in self._index.read().rows
            )
        return folder

    @contextmanager
    def _writing(self, feature_id: str, agent: str | None, file: str = names.STATE) -> Iterator[Feature]:
        """A feature under its lock, for a write that is refused because of `file` unless its error says otherwise."""
        with self._telling("update", file, feature_id):
            names.check_id(feature_id)
            self._check_ack(agent)
            feature = self._pool.get(f"{self._root}/{feature_id}")
            with feature.held(self.timeout):
                yield feature

    def _telling(self, operation: str, file: str, feature_id: str | None) -> Telling:
        """Give every error of a call the contract's block, `error_context`."""
        self.last_report = Report(operation, feature_id)
        return Telling(self._root, operation, file, feature_id)

    def _check_ack(self, agent: str | None) -> None:
        """Refuse a write of an agent that has not acknowledged the contract, where that is required."""
        if self._require_ack is None:
            return
        who = agent or self.agent
        verdict = acknowledgment.verdicts(self._acknowledged(), self._contract(self._require_ack), who)[0]
        if not verdict.holds:
            raise Invalid(
                f"agent {who} {verdict.reason}",
                path=f"{self._root}/{names.ACKNOWLEDGMENT}",
                hint=f"`sessionary feature ack {who}` after reading {self._require_ack}",
            )

    def _acknowledged(self) -> str:
        data = read_bytes(self._fs, f"{self._root}/{names.ACKNOWLEDGMENT}") or b""
        return data.decode("utf-8", "surrogateescape")

    def _contract(self, spec_path: str | os.PathLike[str]) -> acknowledgment.Contract:
        data = read_bytes(self._fs, os.fspath(spec_path))
        if data is None:
            raise NotFound(f"There is no contract at {spec_path}", path=spec_path)
        return acknowledgment.contract_of(data)


def readable_plan(found: planfile.PlanFile, folder: str) -> planfile.PlanFile:
    """The plan, unless it cannot be read: no task in such a file can be changed. Raises Corrupt or StorageFailed."""
    if found.error is not None:
        raise found.error
    if not found.readable:
        raise Corrupt(found.problems[0].message, path=f"{folder}/{names.PLAN}", hint=found.problems[0].repair)
    return found


def not_ahead(name: str, moment: datetime, now: datetime) -> None:
    """Refuse a time that the clock does not reach for long: all later ones would have to be after it.

    Raises:
        SchemaError: it is more than a day after `now`.
    """
    if moment > in_utc(now) + AHEAD:
        raise SchemaError(
            f"{name} {stamp(moment)} is in the future: the clock says {stamp(now)}",
            faults=[f"{name}: is more than a day after the clock"],
            hint="correct the time, or the clock; nothing was written",
        )


def moment_of(name: str, value: datetime | str) -> datetime:
    """A time that a caller gives. Raises SchemaError if it is none."""
    moment = parse(value)
    if moment is None:
        raise SchemaError(
            f"{name} is {value!r}",
            faults=[f"{name}: no ISO 8601 timestamp"],
            hint="for example 2025-01-09T15:30:45Z",
        )
    return moment
