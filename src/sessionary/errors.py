"""Errors that Sessionary raises on purpose, as one tree.

    SessionaryError
    ├── NotFound (FileNotFoundError)        the session, file or folder does not exist
    ├── AlreadyExists (FileExistsError)     the name is taken
    ├── Invalid (ValueError)                the request is invalid; nothing was changed
    │   ├── InvalidId                       an id that cannot name a session safely
    │   ├── AmbiguousId                     a prefix that matches several sessions
    │   ├── SchemaError                     a document that violates its format; lists all faults
    │   └── TransitionError                 a state that cannot be reached from the current one
    ├── Corrupt                             stored bytes that cannot be read, without a replacement
    ├── Locked (TimeoutError)               another process holds the session
    ├── Conflict                            two writers disagree and the caller asked for an error
    ├── StorageFailed (OSError)             a file system call failed; `outcome` states the result of the write
    ├── RemoteError                         the remote failed; `retryable` says whether to try again
    └── Unsupported                         not supported by this file system, platform or version

Each class is also the builtin that callers of older stores catch, so an existing ``except FileNotFoundError`` keeps
working. ``str(error)`` is the message only; path, hint and the rest are attributes.
"""

from __future__ import annotations

import errno as _errno
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

Outcome = Literal["not_committed", "committed", "unknown"]


def _rebuild(cls: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class SessionaryError(Exception):
    """Base class of all errors raised on purpose.

    Attributes:
        operation: the operation (``save``, ``load``, ``append``, …).
        path: the file or folder.
        session: the id of the session.
        at: the time of the error (UTC).
        details: further facts, JSON-able.
        hint: what the user can do about it.
        error_context: the same in the form of the contract on feature sessions (``operation``, ``file``,
            ``feature_id``, ``timestamp``, ``details``); only for errors of a `FeatureStore`, else None.
        exit_code: the exit code of the command line for this class.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str = "",
        *,
        operation: str | None = None,
        path: str | os.PathLike[str] | None = None,
        session: str | None = None,
        at: datetime | None = None,
        details: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.path: str | None = None if path is None else os.fspath(path)
        self.session = session
        self.at: datetime = at or datetime.now(UTC)
        self.details: dict[str, Any] = dict(details or {})
        self.hint = hint
        self.error_context: dict[str, Any] | None = None

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps its errno in C slots that neither args nor __dict__ carry; StorageFailed keeps its own copy.
        return _rebuild, (type(self), self.args, self.__dict__)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as a JSON-able object: ``error``, ``message`` and the fields that are set."""
        fields: dict[str, Any] = {"error": type(self).__name__, "message": self.message}
        for name in ("operation", "path", "session", "hint"):
            if getattr(self, name) is not None:
                fields[name] = getattr(self, name)
        fields["at"] = self.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.details:
            fields["details"] = self.details
        if self.error_context is not None:
            fields["error_context"] = self.error_context
        return fields


class NotFound(SessionaryError, FileNotFoundError):
    """The session, file or folder does not exist."""

    exit_code = 10


class AlreadyExists(SessionaryError, FileExistsError):
    """The name is taken; the existing object is unchanged."""

    exit_code = 11


class Invalid(SessionaryError, ValueError):
    """The request is invalid; nothing was changed."""

    exit_code = 12


class InvalidId(Invalid):
    """An id that cannot name a session safely."""


class AmbiguousId(Invalid):
    """A prefix that matches several sessions; ``details["matches"]`` lists them."""


class SchemaError(Invalid):
    """A document that violates its format; ``details["faults"]`` lists every fault."""

    def __init__(self, message: str = "", *, faults: Sequence[str] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        if faults:
            self.details["faults"] = list(faults)


class TransitionError(Invalid):
    """A state that cannot be reached from the current one."""


class Corrupt(SessionaryError):
    """Stored bytes that cannot be read, without a replacement. The bytes are unchanged."""

    exit_code = 13


class Locked(SessionaryError, TimeoutError):
    """Another process or thread held the session until the timeout; nothing was written.

    ``details`` describes the holder as far as known: ``pid``, ``host``, ``since``, ``waited`` (seconds).
    """

    exit_code = 14


class Conflict(SessionaryError):
    """Another writer stored data that this write would have dropped; nothing was written."""

    exit_code = 15


class StorageFailed(SessionaryError, OSError):
    """A file system call failed (disk full, read-only, I/O error).

    Attributes:
        errno: the error number of the operating system, or None.
        outcome: ``not_committed`` (nothing of the write will ever be read), ``committed`` (it is stored) or
            ``unknown`` (a flush failed, or the disk became full half way: it may be stored, wholly or in part;
            ``details["stored"]`` names the files that are).
    """

    exit_code = 16

    def __init__(self, message: str = "", *, outcome: Outcome = "not_committed", **fields: Any) -> None:
        number = fields.pop("errno", None)
        super().__init__(message, **fields)
        self._errno: int | None = number
        self.errno = number
        self.outcome: Outcome = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_storage, (type(self), self.args, self.__dict__)

    def as_dict(self) -> dict[str, Any]:
        fields = super().as_dict() | {"outcome": self.outcome}
        if self._errno is not None:
            fields["errno"] = _errno.errorcode.get(self._errno, str(self._errno))
        return fields


def _rebuild_storage(cls: type[StorageFailed], args: tuple[Any, ...], state: dict[str, Any]) -> StorageFailed:
    error = _rebuild(cls, args, state)
    assert isinstance(error, StorageFailed)
    error.errno = error._errno
    return error


class RemoteError(SessionaryError):
    """The remote failed; ``retryable`` says whether the same call may succeed later."""

    exit_code = 17

    def __init__(self, message: str = "", *, retryable: bool = False, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.retryable = retryable


class Unsupported(SessionaryError):
    """Not supported by this file system, platform, file or version."""

    exit_code = 18
