"""The functions of the original, by their names and signatures, over `WorkStore`.

Without a folder they work on `docs/sessions` of the current one, which is asked at each call. What a list cannot
read is logged as a warning, which Python shows on stderr; `WorkStore` returns it as a value.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sessionary.codec import sanitize
from sessionary.disk.fs import OS_FS
from sessionary.errors import Corrupt, NotFound, SchemaError, StorageFailed
from sessionary.layouts.maestro import breadcrumbs, session_file, statuses
from sessionary.layouts.maestro.costs import estimate_tokens
from sessionary.layouts.maestro.names import SESSION, default_root, is_uuid, new_id
from sessionary.layouts.maestro.paths import places_below
from sessionary.layouts.maestro.query import DateRange, summarise
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, breadcrumb_of, crumb_document
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import Stamp, iso, utc_now
from sessionary.layouts.maestro.tree import Node
from sessionary.model import Problem

AnyPath = str | os.PathLike[str]
P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("sessionary.maestro")


def get_sessions_base_path(base_path: AnyPath | None = None) -> Path:
    """The folder that holds the sessions: `base_path`, or `docs/sessions` of the current folder."""
    return default_root() if base_path is None else Path(base_path)


def create_session(
    session_type: str,
    parent_session_id: str | None = None,
    parent_wsession_id: str | None = None,
    related_entity: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    base_path: AnyPath | None = None,
    status: str | None = None,
    purpose: str | None = None,
    context: dict[str, Any] | None = None,
) -> WorkSession:
    """Begin a work session; see `WorkStore.create`.

    Durability: when this returns, the session survives a power cut.

    Raises:
        NotFound: there is no such parent (FileNotFoundError).
        Invalid: the type or the status is none (ValueError).
        StorageFailed: the disk refused (OSError).
    """
    return _store(base_path).create(
        session_type,
        parent_wsession_id or parent_session_id,
        related_entity=related_entity,
        metadata=metadata,
        status=status,
        purpose=purpose,
        context=context,
    )


def load_session(session_path: AnyPath) -> WorkSession:
    """The work session in a session.json.

    Raises:
        NotFound: there is no such file (FileNotFoundError).
        Corrupt: it cannot be parsed.
        SchemaError: it is no work session (ValueError).
    """
    return session_file.read_session(os.fspath(session_path))


def save_session(session: WorkSession, session_path: AnyPath) -> None:
    """Store what was changed in a session since it was loaded; what others changed meanwhile stays.

    Durability: when this returns, the document survives a power cut. Cut off, it is the old one or the new one.

    Raises:
        NotFound: the folder of the file is not there.
        TransitionError: the stored session has ended since, and its status was changed; or it is to be completed
            while sessions below it are open (ValueError).
        Locked: another process holds the session.
        StorageFailed: the disk refused.
    """
    path = os.path.abspath(session_path)

    def completing(session_id: str) -> None:
        children = set(session.children_wsession_ids)
        below = places_below(OS_FS, os.path.dirname(path), session_id, children)
        still_open = sorted({
            child.session_id
            for child in map(_session_at, below)
            if child is not None and child.parent == session_id and not child.is_closed
        })  # fmt: skip
        if still_open:
            raise statuses.open_below(session_id, still_open)

    session_file.save_session(session, path, completing=completing)


def list_sessions(
    base_path: AnyPath | None = None, session_type: str | None = None, status: str | None = None
) -> list[WorkSession]:
    """Every work session that can be read, at any depth, of a type or a status if one is given."""
    found = _store(base_path).scan()
    _warn(found.problems)
    return [
        session
        for session in found.sessions
        if session_type in (None, session.session_type) and status in (None, session.status)
    ]


def get_session_hierarchy(base_path: AnyPath | None = None) -> dict[str, Any]:
    """All sessions as trees: ``{"root": [{"session": …, "children": […], "flag": …}]}``.

    The flag is ``orphan``, ``cycle`` or None; both kinds stand at the top.
    """
    return {"root": [_as_dict(node) for node in _store(base_path).tree()]}


def get_child_sessions(parent_session_id: str, base_path: AnyPath | None = None) -> list[WorkSession]:
    """The sessions whose parent this one is."""
    return _store(base_path).children(parent_session_id)


def get_open_child_sessions(parent_session_id: str, base_path: AnyPath | None = None) -> list[WorkSession]:
    """The sessions whose parent this one is, and that are not closed."""
    return _store(base_path).children(parent_session_id, only_open=True)


def find_session_by_id(session_id: str, base_path: AnyPath | None = None) -> tuple[WorkSession, Path] | None:
    """The session of this id, or the one whose id begins so, with the path of its file; None if there is none.

    Raises:
        AmbiguousId: several begin so.
    """
    store = _store(base_path)
    try:
        found = store.resolve(session_id)
        return store.load(found), Path(store.folder(found), SESSION)
    except NotFound:
        return None


def get_session_cookie(session: WorkSession) -> str:
    """What senders of breadcrumbs name: the id of the session."""
    cookie = session.metadata.get("cookie")
    return cookie if isinstance(cookie, str) else session.session_id


def write_breadcrumb(breadcrumb: Breadcrumb, session_id: str, sessions_dir: AnyPath | None = None) -> str:
    """Leave a breadcrumb in a session, in the folder that holds its session.json; returns the path of the file.

    The session is named as for `find_session_by_id`. A whole UUID that no session has is taken for that of a session
    whose document is still to come: the breadcrumb lies where one without parent would, and a warning is logged. Where
    a breadcrumb of that time is there already, this one moves on by a microsecond.

    Durability: when this returns, the breadcrumb survives a power cut.

    Raises:
        NotFound: there is no such session (FileNotFoundError).
        AmbiguousId: several begin so.
        Invalid: the time, the depth or the id is none (ValueError).
        SchemaError: a field is not of its type, so that no reader would take it (ValueError).
        StorageFailed: the disk refused (OSError).
    """
    store = _store(sessions_dir)
    try:
        return store.write_breadcrumb(breadcrumb, session_id)
    except NotFound:
        if not is_uuid(session_id):
            raise
    path = store.write_breadcrumb(breadcrumb, session_id, allow_unknown=True)
    _log.warning(
        "%s: there is no work session %s; `sessionary check` tells of this breadcrumb", path, session_id
    )
    return path


def load_breadcrumb(filepath: AnyPath) -> Breadcrumb:
    """The breadcrumb in a file, whatever keys it has beyond those that are known.

    Raises:
        NotFound: there is no such file (FileNotFoundError).
        Corrupt: it cannot be parsed.
        SchemaError: it is no breadcrumb (ValueError).
    """
    return breadcrumbs.load_crumb(os.fspath(filepath))


def list_breadcrumbs(
    session_id: str,
    sessions_dir: AnyPath | None = None,
    depth: int | None = None,
    date_range: DateRange | None = None,
) -> list[Breadcrumb]:
    """The breadcrumbs of a session by time, of a depth or from a range of instants if given."""
    found = _store(sessions_dir).breadcrumbs(session_id, depth=depth, date_range=date_range)
    _warn(found.problems)
    return found.breadcrumbs


def reconstruct_session_timeline(session_id: str, sessions_dir: AnyPath | None = None) -> list[Breadcrumb]:
    """The breadcrumbs of a session by time."""
    return list_breadcrumbs(session_id, sessions_dir)


def get_breadcrumb_summary(session_id: str, sessions_dir: AnyPath | None = None) -> dict[str, Any]:
    """What the breadcrumbs of a session add up to; see `query.summarise`."""
    return summarise(list_breadcrumbs(session_id, sessions_dir))


def generate_timestamp() -> str:
    """Now, as breadcrumbs write it: in UTC, until a session takes it whose times are local ones."""
    return Stamp.of(utc_now())


def generate_breadcrumb_id() -> str:
    """A new UUID."""
    return new_id()


def capture_tool_call(
    tool_name: str, tool_args: dict[str, Any], tool_result: Any, error: str | None = None
) -> dict[str, Any]:
    """One call of a tool, for `tools_called`. A result that is no JSON is stored as `codec.sanitize` says."""
    return {
        "tool": tool_name,
        "args": tool_args,
        "result": sanitize(tool_result),
        "error": error,
        "timestamp": iso(utc_now()),
    }


def track_file_modification(file_path: str, operation: str, diff: str | None = None) -> dict[str, Any]:
    """One change of a file, for `files_modified`; `operation` is ``create``, ``modify`` or ``delete``."""
    return {
        "path": file_path,
        "operation": operation,
        "diff": diff,
        "timestamp": iso(utc_now()),
        "size": None if operation == "delete" else _size(file_path),
    }


def parse_ai_dialog(ai_dialog: str) -> list[Breadcrumb]:
    """A whole dialogue as one breadcrumb of its first thousand characters; its cost is not known."""
    count = estimate_tokens(ai_dialog)
    head = ai_dialog[:1000]
    return [
        breadcrumbs.create_breadcrumb(
            head, head, [], [], None, 0, "unknown", {"input": count, "output": count}
        )
    ]


def auto_breadcrumb_wrapper(func: Callable[P, R]) -> Callable[P, R]:
    """A decorator that the original keeps for later: the function is called, and no breadcrumb is written."""

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return func(*args, **kwargs)

    return call


def dataclass_to_dict(obj: Breadcrumb) -> dict[str, Any]:
    """A breadcrumb as the JSON object that its file holds."""
    return crumb_document(obj) | {"timestamp": str(obj.timestamp)}


def dict_to_breadcrumb(data: dict[str, Any]) -> Breadcrumb:
    """The breadcrumb that a JSON object holds. Raises SchemaError."""
    return breadcrumb_of(data)


def _store(base_path: AnyPath | None) -> WorkStore:
    root = os.fspath(default_root() if base_path is None else base_path)
    return (
        _store_at(root) if root.startswith(os.sep) else WorkStore(root)
    )  # others mean what the process stands in


@functools.lru_cache(64)
def _store_at(root: str) -> WorkStore:
    """Of one root one store: whoever writes message after message should not wait for it to be made each time."""
    return WorkStore(root)


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        _log.warning("%s: %s", problem.path, problem.message)


def _session_at(folder: str) -> WorkSession | None:
    try:
        return session_file.read_session(f"{folder}/{SESSION}")
    except (NotFound, Corrupt, SchemaError, StorageFailed):
        return None


def _as_dict(node: Node) -> dict[str, Any]:
    return {
        "session": node.session,
        "children": [_as_dict(child) for child in node.children],
        "flag": node.flag,
    }


def _size(path: str) -> int | None:
    try:
        return OS_FS.stat(path).st_size
    except OSError:
        return None
