"""Export a work session: JSON or Markdown. Files are created, never overwritten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sessionary.cli.text import harmless, one_line
from sessionary.cli.work import facts, render
from sessionary.codec import encode_document, sanitize
from sessionary.disk import atomic
from sessionary.errors import AlreadyExists
from sessionary.layouts.maestro.costs import tokens
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, document_of
from sessionary.layouts.maestro.records import crumb_document as crumb_object
from sessionary.mailbox.mailbox import Status

PREVIEW = 200


@dataclass(frozen=True, slots=True)
class Whole:
    """A session with everything recorded about it.

    Attributes:
        session: the session.
        crumbs: its breadcrumbs, oldest first.
        children: the sessions that it started, oldest first.
        consumers: the state of each consumer of its mailbox; not exported.
    """

    session: WorkSession
    crumbs: list[Breadcrumb]
    children: list[WorkSession]
    consumers: list[Status] = field(default_factory=list)

    @property
    def statistics(self) -> dict[str, Any]:
        """The totals of the breadcrumbs."""
        return facts.statistics(self.crumbs)


def as_object(whole: Whole) -> dict[str, Any]:
    """The JSON document of the original: the session's own keys, its breadcrumbs, statistics, and children."""
    return document_of(whole.session) | {
        "breadcrumbs": [crumb_object(crumb) for crumb in whole.crumbs],
        "statistics": whole.statistics,
        "child_sessions": [document_of(child) for child in whole.children],
    }


def to_json(whole: Whole) -> bytes:
    """The document, with indentation."""
    return encode_document(sanitize(as_object(whole)))


def to_markdown(whole: Whole) -> bytes:
    """The report, with texts cut to a preview."""
    return "\n".join([*_report(whole), ""]).encode("utf-8", "backslashreplace")


def write(path: str, data: bytes) -> None:
    """Create the file.

    Durability: when this returns, the file survives a power cut; until then no file of that name exists.

    Raises:
        AlreadyExists: the file exists.
        StorageFailed: the disk refused.
    """
    try:
        atomic.create(os.path.abspath(path), data)
    except AlreadyExists as error:
        error.hint = "choose another file, or move this one"
        raise


def _report(whole: Whole) -> Iterator[str]:
    session = whole.session
    yield f"# Session Report: {one_line(session.session_id)}"
    yield ""
    yield "## Session Information"
    for name, text in (
        ("Type", session.session_type),
        ("Status", session.status),
        ("Created", session.created),
        ("Modified", session.modified),
        ("Duration", render.lasted(session)),
        ("Purpose", session.purpose or ""),
    ):
        if text:
            yield f"- **{name}**: {one_line(text)}"
    yield ""
    if session.related_entity:
        yield "## Related Entities"
        yield from (
            f"- **{one_line(key)}**: {one_line(str(text))}" for key, text in session.related_entity.items()
        )
        yield ""
    yield from _figures(whole.statistics)
    yield "## Breadcrumbs"
    for number, crumb in enumerate(whole.crumbs, 1):
        yield from _breadcrumb(number, crumb)


def _figures(sums: dict[str, Any]) -> Iterator[str]:
    yield "## Statistics"
    yield f"- **Total Breadcrumbs**: {sums['total_breadcrumbs']:,}"
    yield f"- **Total Input Tokens**: {sums['total_tokens_input']:,}"
    yield f"- **Total Output Tokens**: {sums['total_tokens_output']:,}"
    yield f"- **Estimated Cost**: {facts.cost_in_words(sums, render.dollars(sums['estimated_cost'], 2))}"
    yield f"- **Files Modified**: {sums['files_modified']:,}"
    yield f"- **Tools Called**: {sums['tools_called']:,}"
    yield f"- **Duration (seconds)**: {int(sums['duration_seconds'])}"
    yield f"- **Success Rate**: {sums['success_rate']:.1f}%"
    yield ""


def _breadcrumb(number: int, crumb: Breadcrumb) -> Iterator[str]:
    yield f"### Breadcrumb {number}: {one_line(crumb.timestamp)}"
    yield f"- **Model**: {one_line(crumb.model_used)}"
    yield f"- **Tokens**: Input: {tokens(crumb, 'input')}, Output: {tokens(crumb, 'output')}"
    if crumb.cost is not None:
        yield f"- **Cost**: {render.dollars(crumb.cost)}"
    if error := render.error_of(crumb):
        yield f"- **Error**: {error}"
    yield ""
    for name, text in (("Prompt", crumb.prompt), ("Response", crumb.response)):
        yield f"**{name} Preview**:"
        yield from _fenced(text)
        yield ""
    yield "---"
    yield ""


def _fenced(text: str) -> Iterator[str]:
    """The beginning of a text, in a fence that is longer than any within it."""
    shown = harmless(text[:PREVIEW]) + ("…" if len(text) > PREVIEW else "")
    fence = "```"
    while fence in shown:
        fence += "`"
    yield from (fence, shown, fence)
