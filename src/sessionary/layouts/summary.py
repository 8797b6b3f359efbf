"""The summary of a session of any layout: its folded messages, and the facts outside of them.

A session whose layout gives a cursor is folded on from there: a growing conversation costs what was added.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.files import mended_copy
from sessionary.model import Cursor, Item, Problem, Reset, SessionRef, Severity, Summary, health
from sessionary.transcript.fold import (
    LARGEST_STATE,
    LARGEST_WITH_FINDINGS,
    Fold,
    Progress,
    resumed,
    short_title,
)


class Summarized(NamedTuple):
    """A summary, and the cursor for the next one; None if the next one must read the session from its start."""

    summary: Summary
    progress: Progress | None


def summary_of(layout: Layout, ref: SessionRef, items: Iterator[Item] | None = None) -> Summary:
    """The summary of a session, read from its start; for the arguments see `summarize`.

    Raises:
        NotFound: the session is gone.
    """
    return summarize(layout, ref, items=items).summary


def summarize(
    layout: Layout,
    ref: SessionRef,
    before: Progress | None = None,
    *,
    items: Iterator[Item] | None = None,
    idle_since: datetime | None = None,
    share: int | None = None,
) -> Summarized:
    """The summary of a session.

    Args:
        items: what `layout.read` yields, if the layout reads it with more problems for a check.
        idle_since: in a session that did not change since then no tool is at work, so the calls of its last message
            must have results; None if any may be at work.
        share: return progress only if it takes less than this part of the size of the session; None for any size.

    Raises:
        NotFound: the session is gone.
    """
    fold = None if before is None else resumed(before)
    after = None if before is None or fold is None else before.cursor
    fold, cursor, failed = fold or Fold(), None, list[Problem]()
    try:
        for item in layout.read(ref, after) if items is None else items:
            if isinstance(item, Reset):
                fold = Fold()
            elif isinstance(item, Cursor):
                cursor = item
            else:
                fold.take(item)
    except NotFound:
        pass  # `header` knows whether the whole session is gone
    except StorageFailed as error:
        failed, cursor = [unreadable_file(ref, error)], None
    header = layout.header(ref, fold)
    is_idle = idle_since is not None and header.updated is not None and header.updated < idle_since
    # A layout whose sessions can be repaired reports every finding of the diagnosis, in its header.
    repairs = Capability.REPAIR in layout.capabilities
    usage = fold.timed_usage()
    unpaired = () if repairs else fold.unpaired(mended_copy(ref), is_idle=is_idle)
    problems = [*fold.problems, *failed, *unpaired, *header.problems]
    summary = Summary(
        ref,
        header.agent or layout.name,
        header.title or short_title(fold.fact("title")) or fold.title,
        header.parent or fold.fact("parent"),
        fold.messages,
        fold.turns,
        header.turn_count,
        header.created or fold.created,
        header.updated,
        header.size,
        health(problems),
        problems,
        header.listed,
        header.cwd or fold.fact("cwd"),
        header.branch or fold.fact("branch"),
        usage,
        # Ids of which a later part distinguishes sessions are those of sub-agents.
        header.nested or fold.fact("nested") is not None or layout.short_key(ref) != ref.session_id,
        fold.fact("version"),
    )
    room = LARGEST_WITH_FINDINGS if repairs else LARGEST_STATE
    if share is not None:
        room = min(room, header.size // share)
    state = fold.state(findings=repairs) if cursor is not None and len(cursor.state) <= room else None
    if cursor is None or state is None or len(cursor.state) + len(state) > room:
        return Summarized(summary, None)
    return Summarized(summary, Progress(cursor, state, usage))


def title_of(layout: Layout, ref: SessionRef) -> str | None:
    """The title of a session; the conversation is read only if no document has it.

    Raises:
        NotFound: the session is gone.
    """
    return layout.header(ref, Fold()).title or summary_of(layout, ref).title


def unreadable_file(ref: SessionRef, error: StorageFailed) -> Problem:
    """The problem of a session that cannot be read, or not all of it."""
    path = error.path or ref.locator
    return Problem.of_file("unreadable_file", Severity.stops_resume, path, error.message, error.hint)


def summaries(layout: Layout) -> Iterator[Summary]:
    """The summary of every session of a layout, read anew."""
    for ref in layout.discover():
        try:
            summary = summary_of(layout, ref)
        except NotFound:
            continue  # removed since its name was read
        if summary.listed:
            yield summary
