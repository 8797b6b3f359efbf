"""Format one breadcrumb; shared by lists, timelines and mailboxes."""

from __future__ import annotations

from collections.abc import Iterator

from sessionary.cli import output
from sessionary.cli.text import cells, harmless, one_line, wrap
from sessionary.cli.work.render import count_of, cut, dollars, error_of, preview
from sessionary.layouts.maestro.costs import tokens
from sessionary.layouts.maestro.records import Breadcrumb

LISTED, TIMELINE = 50, 100
"""Characters shown of prompt and response in a list, and in a timeline."""

_LEAD = "   "


def listed(number: int, crumb: Breadcrumb, whose: str | None) -> Iterator[str]:
    """An entry of a list, with all its counts."""
    yield cut(f"{number}. [{one_line(crumb.timestamp)}] - {one_line(crumb.model_used)}")
    yield from _session(whose)
    yield from _texts(crumb, LISTED)
    yield f"{_LEAD}Tools Called: {count_of(crumb.tools_called)}"
    yield f"{_LEAD}Files Modified: {count_of(crumb.files_modified)}"
    yield f"{_LEAD}Depth: {crumb.depth_level}"
    yield from _figures(crumb)


def in_time(number: int, crumb: Breadcrumb, whose: str | None, later: str) -> Iterator[str]:
    """An entry of a timeline; `later` is the time since the previous one, at the right edge."""
    head = f"{number}. {_when_and_who(crumb)}"
    gap = output.width() - cells(head) - cells(later)
    yield f"{head}{' ' * gap}{later}" if later and gap > 1 else cut(head)
    yield from _session(whose)
    yield from _texts(crumb, TIMELINE)
    for name, items in (("Tools Called", crumb.tools_called), ("Files Modified", crumb.files_modified)):
        if items:
            yield f"{_LEAD}{name}: {count_of(items)}"
    yield from _figures(crumb)


def whole(crumb: Breadcrumb) -> Iterator[str]:
    """A message, with its whole text."""
    yield cut(_when_and_who(crumb))
    yield cut(f"{_LEAD}Id: {one_line(crumb.breadcrumb_id)}")
    for name, text in (("Prompt", crumb.prompt), ("Response", crumb.response)):
        if text:
            first, *rest = wrap(harmless(f"{name}: {text}"), output.width() - len(_LEAD))
            yield _LEAD + first
            yield from (f"{_LEAD}{line}" for line in rest)
    if error := error_of(crumb):
        yield preview(f"{_LEAD}Error: ", error, 1000)


def _when_and_who(crumb: Breadcrumb) -> str:
    when, model = one_line(crumb.timestamp), one_line(crumb.model_used)
    return f"[{when}] Depth: {crumb.depth_level}, Model: {model}"


def _session(whose: str | None) -> Iterator[str]:
    if whose is not None:
        yield cut(f"{_LEAD}Session: {whose}")


def _texts(crumb: Breadcrumb, most: int) -> Iterator[str]:
    yield preview(f"{_LEAD}Prompt: ", crumb.prompt, most)
    yield preview(f"{_LEAD}Response: ", crumb.response, most)


def _figures(crumb: Breadcrumb) -> Iterator[str]:
    if crumb.kind not in ("", "note") or crumb.tags:
        tags = f" ({', '.join(map(str, crumb.tags))})" if crumb.tags else ""
        yield preview(f"{_LEAD}Kind: ", f"{crumb.kind}{tags}", 200)
    yield f"{_LEAD}Tokens: Input: {tokens(crumb, 'input')}, Output: {tokens(crumb, 'output')}"
    if crumb.cost is not None:
        yield f"{_LEAD}Cost: {dollars(crumb.cost)}"
    if error := error_of(crumb):
        yield preview(f"{_LEAD}Error: ", error, 1000)
