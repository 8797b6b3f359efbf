"""The functions of the original program, with their names and signatures, over `WorkStore`.

Without a folder they work on `docs/sessions` of the current one, determined at each call. Problems of a list
are logged as warnings, which Python prints on stderr; `WorkStore` returns them as values.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sessionary.codec import sanitize
from sessionary.disk.fs import OS_FS, expanded
from sessionary.errors import NotFound
from sessionary.layouts.maestro import breadcrumbs, session_file, statuses
from sessionary.layouts.maestro.breadcrumbs import DateRange
from sessionary.layouts.maestro.costs import estimate_tokens, summarise
from sessionary.layouts.maestro.names import SESSION, default_root, is_uuid, new_id
from sessionary.layouts.maestro.paths import places_below
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, breadcrumb_of, crumb_document
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import Stamp, iso, stamp_of, utc_now
from sessionary.layouts.maestro.tree import Node
from sessionary.model import Problem

AnyPath = str | os.PathLike[str]
F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("sessionary.maestro")


def get_sessions_base_path(base_path: AnyPath | None = None) -> Path:
    """The folder of the sessions: `base_path`, or `docs/sessions` of the current folder."""
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
    """Start a work session; see `WorkStore.create`.

    Durability: when this returns, the session survives a power cut.

    Raises:
        NotFound: the parent does not exist (FileNotFoundError).
        Invalid: the type or the status is not valid (ValueError).
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
    """Return the work session in a session.json.

    Raises:
        NotFound: the file does not exist (FileNotFoundError).
        Corrupt: it cannot be parsed.
        SchemaError: it is not a work session (ValueError).
    """
    return session_file.read_session(os.fspath(session_path))


def save_session(session: WorkSession, session_path: AnyPath) -> None:
    """Store the changes made to a session since it was loaded; concurrent changes of others are kept.

    Durability: when this returns, the document survives a power cut. If interrupted, it is the old one or the new one.

    Raises:
        NotFound: the folder of the file does not exist.
        TransitionError: the stored session has ended since, and its status was changed; or it is to be
        completed while sessions below it are open (ValueError).
        Locked: another process holds the session.
        StorageFailed: the disk refused.
    """
    path = os.path.abspath(session_path)

    def completing(session_id: str) -> None:
        children = set(session.children_wsession_ids)
        below = places_below(OS_FS, os.path.dirname(path), session_id, children)
        still_open = sorted({
            child.session_id
            for child in (session_file.session_in(OS_FS, folder) for folder in below)
            if child is not None and child.parent == session_id and not child.is_closed
        })  # fmt: skip
        if still_open:
            raise statuses.open_below(session_id, still_open)

    session_file.save_session(session, path, completing=completing)


def list_sessions(
    base_path: AnyPath | None = None, session_type: str | None = None, status: str | None = None
) -> list[WorkSession]:
    """Every readable work session, at any depth, optionally of one type or status."""
    found = _store(base_path).scan()
    _warn(found.problems)
    return found.chosen(session_type, status)


def get_session_hierarchy(base_path: AnyPath | None = None) -> dict[str, Any]:
    """All sessions as trees: ``{"root": [{"session": …, "children": […], "flag": …}]}``.

    The flag is ``orphan``, ``cycle`` or None; both kinds are at the top.
    """
    return {"root": [_as_dict(node) for node in _store(base_path).tree()]}


def get_child_sessions(parent_session_id: str, base_path: AnyPath | None = None) -> list[WorkSession]:
    """The sessions with this parent."""
    return _store(base_path).children(parent_session_id)


def get_open_child_sessions(parent_session_id: str, base_path: AnyPath | None = None) -> list[WorkSession]:
    """The open sessions with this parent."""
    return _store(base_path).children(parent_session_id, only_open=True)


def find_session_by_id(session_id: str, base_path: AnyPath | None = None) -> tuple[WorkSession, Path] | None:
    """The session with this id, or with this prefix of an id, with the path of its file; None if there is none.

    Raises:
        AmbiguousId: several match.
    """
    store = _store(base_path)
    try:
        found = store.resolve(session_id)
        return store.load(found), Path(store.folder(found), SESSION)
    except NotFound:
        return None


def get_session_cookie(session: WorkSession) -> str:
    """The cookie for senders of breadcrumbs: the id of the session."""
    cookie = session.metadata.get("cookie")
    return cookie if isinstance(cookie, str) else session.session_id


def write_breadcrumb(breadcrumb: Breadcrumb, session_id: str, sessions_dir: AnyPath | None = None) -> str:
    """Write a breadcrumb to a session, in the folder of its session.json; return the path of the file.

    The session is named as for `find_session_by_id`. A whole UUID without a session is taken as that of a
    session whose document is still to come: the breadcrumb is stored as for one without parent, and a warning
    is logged. If a breadcrumb with that time exists, this one is moved on by a microsecond.

    Durability: when this returns, the breadcrumb survives a power cut.

    Raises:
        NotFound: the session does not exist (FileNotFoundError).
        AmbiguousId: several match.
        Invalid: the time, the depth or the id is not valid (ValueError).
        SchemaError: a field has the wrong type, so that no reader would accept it (ValueError).
        StorageFailed: the disk refused (OSError).
    """
    store = _store(sessions_dir)
    try:
        return store.write_breadcrumb(breadcrumb, session_id)
    except NotFound:
        if not is_uuid(session_id):
            raise
    path = store.write_breadcrumb(breadcrumb, session_id, allow_unknown=True)
    _log.warning("%s: no work session %s; `sessionary check` reports this breadcrumb", path, session_id)
    return path


def load_breadcrumb(filepath: AnyPath) -> Breadcrumb:
    """Return the breadcrumb in a file, with unknown keys allowed.

    Raises:
        NotFound: the file does not exist (FileNotFoundError).
        Corrupt: it cannot be parsed.
        SchemaError: it is not a breadcrumb (ValueError).
    """
    return breadcrumbs.load_crumb(os.fspath(filepath))


def list_breadcrumbs(
    session_id: str,
    sessions_dir: AnyPath | None = None,
    depth: int | None = None,
    date_range: DateRange | None = None,
) -> list[Breadcrumb]:
    """The breadcrumbs of a session by time, optionally of one depth or a range of instants."""
    found = _store(sessions_dir).breadcrumbs(session_id, depth=depth, date_range=date_range)
    _warn(found.problems)
    return found.breadcrumbs


def reconstruct_session_timeline(session_id: str, sessions_dir: AnyPath | None = None) -> list[Breadcrumb]:
    """The breadcrumbs of a session by time."""
    return list_breadcrumbs(session_id, sessions_dir)


def get_breadcrumb_summary(session_id: str, sessions_dir: AnyPath | None = None) -> dict[str, Any]:
    """The totals of the breadcrumbs of a session; see `costs.summarise`."""
    return summarise(list_breadcrumbs(session_id, sessions_dir))


def generate_timestamp() -> str:
    """Now, as a breadcrumb time: in UTC, converted later for a session with local times."""
    return Stamp(stamp_of(utc_now()))


def generate_breadcrumb_id() -> str:
    """A new UUID."""
    return new_id()


def capture_tool_call(
    tool_name: str, tool_args: dict[str, Any], tool_result: Any, error: str | None = None
) -> dict[str, Any]:
    """One call of a tool, for `tools_called`. A result that is not JSON is stored as `codec.sanitize` describes."""
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
    """A whole dialogue as one breadcrumb with its first thousand characters; the cost is unknown."""
    count = estimate_tokens(ai_dialog)
    head = ai_dialog[:1000]
    return [
        breadcrumbs.create_breadcrumb(
            head, head, [], [], None, 0, "unknown", {"input": count, "output": count}
        )
    ]


def auto_breadcrumb_wrapper(func: F) -> F:
    """A decorator kept for compatibility: it writes no breadcrumb and returns the function."""
    return func


def dataclass_to_dict(obj: Breadcrumb) -> dict[str, Any]:
    """A breadcrumb as a JSON object."""
    return crumb_document(obj) | {"timestamp": str(obj.timestamp)}


def dict_to_breadcrumb(data: dict[str, Any]) -> Breadcrumb:
    """The breadcrumb in a JSON object. Raises SchemaError."""
    return breadcrumb_of(data)


def _store(base_path: AnyPath | None) -> WorkStore:
    return _store_at(os.path.abspath(expanded(default_root() if base_path is None else base_path)))


@functools.lru_cache(64)
def _store_at(root: str) -> WorkStore:
    """One store for each root: it knows the folders of its sessions."""
    return WorkStore(root)


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        _log.warning("%s: %s", problem.path, problem.message)


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
