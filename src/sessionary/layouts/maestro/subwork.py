"""Sub-work: a part of a session's work in a session of its own, whose result is handed back once.

Starting it pauses the parent; closing it writes one breadcrumb of the kind `result` to the parent, and
resumes the parent if no other child is open. The order of writes makes closing repeatable after any crash:
the id of the result is stored in the child first, the result is written under that id, then the child is
closed, then the parent is resumed. A repeated call recognises completed steps by that id, and does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sessionary.disk.fs import Fs
from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import Breadcrumbs, create_breadcrumb
from sessionary.layouts.maestro.costs import estimate_tokens
from sessionary.layouts.maestro.names import SESSION
from sessionary.layouts.maestro.records import Breadcrumb, SessionType, WorkSession
from sessionary.layouts.maestro.session_file import Clock, edit_session, locked
from sessionary.layouts.maestro.statuses import RESULT_ID, move, open_below, refusal, refuse_closed
from sessionary.layouts.maestro.times import Stamp, stamp_of
from sessionary.model import Problem, Severity


class Store(Protocol):
    """The part of `WorkStore` that sub-work uses; that module imports this one."""

    fs: Fs
    now: Clock
    new_id: Callable[[], str]

    def create(
        self,
        session_type: str,
        parent: str | None = None,
        *,
        related_entity: Mapping[str, Any] | None = None,
        purpose: str | None = None,
        context: Mapping[str, Any] | None = None,
        change_parent: Callable[[WorkSession], object] | None = None,
    ) -> WorkSession: ...
    def load(self, session_id: str) -> WorkSession: ...
    def update(self, session_id: str, change: Callable[[WorkSession], object]) -> WorkSession: ...
    def folder(self, session_id: str) -> str: ...
    def children(self, session_id: str, *, only_open: bool = False) -> list[WorkSession]: ...
    def refuse_open_children(self, session_id: str) -> None: ...
    def depth(self, session_id: str) -> int: ...
    def write_breadcrumb(self, breadcrumb: Breadcrumb, session_id: str) -> str: ...
    def breadcrumbs(self, session_id: str) -> Breadcrumbs: ...


ENDS: Final = {"ok": "completed", "failed": "failed", "partial": "interrupted"}


@dataclass(slots=True)
class Closed:
    """The result of closing sub-work.

    Attributes:
        session: the child after the call.
        parent: the parent after the call; None if there is none.
        breadcrumb_id: the id of the result in the parent; None without a parent.
        handed_over: True if this call wrote the result; False if an earlier one did, or if it is impossible.
        resumed: True if this call resumed the parent.
        still_open: ids of open children of the parent; with any, the parent stays paused.
        problems: a missing parent.
    """

    session: WorkSession
    parent: WorkSession | None = None
    breadcrumb_id: str | None = None
    handed_over: bool = False
    resumed: bool = False
    still_open: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def start(
    store: Store, parent: str, purpose: str, context: Mapping[str, Any] | None, *, pause_parent: bool
) -> WorkSession:
    """Start sub-work; see `WorkStore.start_subwork`."""

    def change(above: WorkSession) -> None:
        refuse_closed(above, "sub-work")
        if pause_parent:
            move(above, "paused", now=store.now())

    above = store.load(parent)
    return store.create(
        SessionType.WORK_SUBWORK.value,
        parent,
        related_entity=above.related_entity,
        purpose=purpose,
        context=above.context if context is None else context,
        change_parent=change,
    )


def close(store: Store, child: str, summary: str, result: str, *, resume_parent: bool) -> Closed:
    """Close sub-work; see `WorkStore.close_subwork`."""
    if result not in ENDS:
        raise Invalid(f"{result!r} is not a result of sub-work", hint="use ok, failed or partial")
    folder = store.folder(child)
    path = f"{folder}/{SESSION}"
    with locked(store.fs, folder):
        session = store.load(child)
        done = Closed(session)
        _find_parent(store, done)
        handed = _is_handed_over(store, session, done.parent)
        if handed:
            result = session.metadata.get("result_status", result)
        _check(store, session, result)
        if not handed:
            session = edit_session(
                path, lambda now: _note(store, now, summary, result), fs=store.fs, now=store.now
            )
            if done.parent is not None:
                store.write_breadcrumb(_result(store, session, done.parent), done.parent.session_id)
                done.handed_over = True
        done.session = edit_session(
            path, lambda now: move(now, ENDS[result], now=store.now()), fs=store.fs, now=store.now
        )
    if done.parent is not None:
        done.breadcrumb_id = done.session.metadata[RESULT_ID]
        if resume_parent:
            _let_go_on(store, done)
    return done


def resume_parent(store: Store, child: str) -> WorkSession:
    """Resume the parent of sub-work; see `WorkStore.resume_parent`."""
    session = store.load(child)
    if session.parent is None:
        raise Invalid(f"session {child} has no parent", session=child, hint="resume the session itself")
    done = Closed(session, store.load(session.parent))
    _let_go_on(store, done)
    if done.still_open:
        raise open_below(session.parent, done.still_open, "close those first, or resume the session itself")
    assert done.parent is not None
    if done.parent.status != "running":
        raise refusal(done.parent, "running")
    return done.parent


def _find_parent(store: Store, done: Closed) -> None:
    parent = done.session.parent
    try:
        done.parent = store.load(parent) if parent else None
    except NotFound:
        words = f"its parent {parent} is missing; the result stays in the session itself"
        place = store.folder(done.session.session_id)
        done.problems.append(Problem.of_file("orphan", Severity.note, place, words))


def _is_handed_over(store: Store, session: WorkSession, parent: WorkSession | None) -> bool:
    """True if an earlier call wrote the result. Without an id in the child none did, and nothing is read.

    Raises:
        StorageFailed: the result may be in a file that cannot be read.
    """
    result_id = session.metadata.get(RESULT_ID)
    if parent is None or result_id is None:
        return False
    found = store.breadcrumbs(parent.session_id)
    if any(crumb.breadcrumb_id == result_id for crumb in found.breadcrumbs):
        return True
    for problem in found.problems:
        if problem.code == "unreadable_file":
            raise StorageFailed(
                f"unknown whether the parent already has the result: {problem.path} {problem.message}",
                operation="close",
                path=problem.path,
                hint=problem.repair,
            )
    return False


def _check(store: Store, session: WorkSession, result: str) -> None:
    """Refuse what could not be closed in the end, before anything is written."""
    if session.status == ENDS[result]:
        return
    if session.is_closed:
        raise refusal(session, ENDS[result])
    if result == "ok":
        store.refuse_open_children(session.session_id)


def _note(store: Store, session: WorkSession, summary: str, result: str) -> None:
    """Store the result in the child, under an id that does not change any more."""
    session.metadata |= {"result_summary": summary, "result_status": result}
    session.metadata.setdefault(RESULT_ID, store.new_id())


def _result(store: Store, child: WorkSession, parent: WorkSession) -> Breadcrumb:
    """The breadcrumb with the result that is stored in the child."""
    summary, result = child.metadata["result_summary"], child.metadata["result_status"]
    crumb = create_breadcrumb(
        prompt=f"Subwork {child.session_id} closed ({result})",
        response=summary,
        tools_called=[],
        files_modified=[],
        parent_session_id=parent.session_id,
        depth_level=store.depth(parent.session_id),
        model_used="manual",
        token_count={"input": 0, "output": estimate_tokens(summary)},
        kind="result",
        tags=["subwork", "handoff"],
        payload={
            "child_wsession_id": child.session_id,
            "status": result,
            "summary": summary,
            "purpose": child.purpose,
            "context": child.context,
        },
    )
    crumb.breadcrumb_id, crumb.timestamp = child.metadata[RESULT_ID], Stamp(stamp_of(store.now()))
    return crumb


def _let_go_on(store: Store, done: Closed) -> None:
    """Resume the parent if it is paused and no child is open."""
    assert done.parent is not None
    parent = done.parent.session_id

    def change(above: WorkSession) -> None:
        done.still_open = [each.session_id for each in store.children(parent, only_open=True)]
        if not done.still_open and above.status == "paused":
            done.resumed = move(above, "running", now=store.now())

    done.parent = store.update(parent, change)
