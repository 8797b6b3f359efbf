"""What a call of `FeatureStore` reports beside its return value, and the details that its errors carry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sessionary.errors import SessionaryError
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem


@dataclass(slots=True)
class Report:
    """Notes of the last call besides its return value."""

    operation: str = ""
    feature_id: str | None = None
    problems: list[Problem] = field(default_factory=list)


@contextmanager
def error_context(root: str, operation: str, file: str, feature_id: str | None) -> Iterator[None]:
    """A block that adds the details to errors that the contract requires."""
    try:
        yield
    except SessionaryError as error:
        error.operation = operation
        error.session = error.session or feature_id
        error.path = error.path or os.path.join(root, feature_id or "", file)
        error.error_context = {
            "operation": operation,
            "file": error.path,
            "feature_id": error.session,
            "timestamp": stamp(error.at),
            "details": error.message,
        }
        raise
