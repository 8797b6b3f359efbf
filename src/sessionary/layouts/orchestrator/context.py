"""The context of all calls on the features of a project: paths, the agent, and error details."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final

from sessionary.disk.fs import Fs
from sessionary.errors import SessionaryError
from sessionary.layouts.orchestrator import names, reading
from sessionary.layouts.orchestrator.feature import Pool, missing
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem

TIMEOUT: Final = 5.0
DEFAULT_AGENT: Final = "sessionary"


@dataclass(slots=True)
class Report:
    """Notes of the last call besides its return value."""

    operation: str = ""
    feature_id: str | None = None
    problems: list[Problem] = field(default_factory=list)


class ErrorContext:
    """A ``with`` block that adds the details to errors that the contract requires.

    A class, since every call uses it, and a generator would take twice as long.
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


class Context:
    """A `.ai-session` and the agent that works on it; `FeatureStore` documents the arguments.

    Attributes:
        home: the folder `.ai-session`, as the caller names it.
        root: the same, links resolved.
        index: the list of features.
        pool: the features that this process has open.
        touched: when a call last updated `last_active` of a feature in the list.
        report: notes of the last call besides its return value.
    """

    def __init__(
        self,
        fs: Fs,
        home: Path,
        now: Callable[[], datetime],
        *,
        timeout: float,
        agent: str,
        require_ack: str | None,
    ) -> None:
        self.fs = fs
        self.home = home
        self.root = os.path.realpath(home)
        self.now = now
        self.timeout = timeout
        self.agent = agent
        self.require_ack = require_ack
        self.index = Index(fs, self.root, timeout)
        self.pool = Pool(fs, self.index, now)
        self.touched: dict[str, datetime] = {}
        self.report = Report()

    def over(self, fs: Fs, now: Callable[[], datetime] | None) -> Context:
        """The same over another file system, and another clock if one is given."""
        return Context(
            fs,
            self.home,
            now or self.now,
            timeout=self.timeout,
            agent=self.agent,
            require_ack=self.require_ack,
        )

    def call(self, operation: str, file: str, feature_id: str | None) -> ErrorContext:
        """Begin a call: an empty report, and a block whose errors name the operation and the file."""
        self.report = Report(operation, feature_id)
        return ErrorContext(self.root, operation, file, feature_id)

    def folder(self, feature_id: str) -> str:
        """The folder of a feature, possibly in the archive.

        Raises:
            NotFound: the feature does not exist.
        """
        folder = reading.folder_of(self.fs, self.root, names.check_id(feature_id))
        if folder is None:
            raise missing(self.fs, f"{self.root}/{feature_id}", listed=feature_id in self.index.read().rows)
        return folder
