"""Print the result and the cost of a synchronisation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sessionary.cli import formatting, options, output
from sessionary.cli.changing import set_in
from sessionary.cli.sync.places import Here
from sessionary.cli.text import harmless, one_line
from sessionary.errors import SessionaryError
from sessionary.sync.links import is_link
from sessionary.sync.report import Beside, Outcome, Report, SyncStatus, Where
from sessionary.sync.retry import Cost

_SIGNS = {
    SyncStatus.FAILED: ("✗", "red"),
    SyncStatus.DIVERGED: ("!", "yellow"),
    SyncStatus.HELD_BACK: ("!", "yellow"),
}


def document(report: Report, here: Here) -> dict[str, Any]:
    """The result with the field names of docs/cli-json.md."""
    found = report.by_status()
    return {
        "remote": here.settings.remote,
        "tenant": here.settings.tenant,
        "device": here.settings.device,
        "sessions": [_object(one, here) for some in found.values() for one in some],
        "counts": {status.name.lower(): len(some) for status, some in found.items()},
        "cost": cost_object(report.cost),
    }


def cost_object(cost: Cost) -> dict[str, Any]:
    """The cost with the field names of docs/cli-json.md."""
    return {**asdict(cost), "ru": round(cost.ru, 2)}


def lines(report: Report, here: Here, *, all_: bool = False) -> Iterator[str]:
    """The lines to print: each session with something to report, then a summary line."""
    found = report.by_status()
    for one in (one for some in found.values() for one in some):
        if all_ or one.standing is not SyncStatus.IN_STEP or one.beside:
            yield from _line(one, here)
    counts = ", ".join(f"{len(some):,} {status.value}" for status, some in found.items())
    sign = "✗" if exit_code(report) else output.paint("✓", "green")
    yield f"{sign} {counts or 'no sessions'}"


def cost_line(cost: Cost) -> str:
    """The cost as one line."""
    units = f", {cost.ru:,.1f} RU" if cost.ru else ""
    up, down = formatting.size(cost.bytes_up), formatting.size(cost.bytes_down)
    return f"{formatting.count(cost.requests, 'request')}, {up} up, {down} down{units}"


def exit_code(report: Report) -> int:
    """The exit code: 3 if something failed, or is held back because it is damaged or behind a symbolic link."""
    failed = (one.standing is SyncStatus.FAILED for one in report.outcomes)
    held = (one.is_damaged or is_link(one.error) for one in report.outcomes)
    return options.PARTLY if any(failed) or any(held) else 0


def print_result(report: Report, here: Here, *, all_: bool = False) -> int:
    """Print a result; return the exit code."""
    if output.is_json():
        output.holding(document(report, here), "sessions")
    else:
        output.lines(lines(report, here, all_=all_))
        output.aside(cost_line(report.cost))
    return exit_code(report)


def _line(outcome: Outcome, here: Here) -> Iterator[str]:
    sign, colour = _SIGNS.get(outcome.standing, ("!", "yellow") if outcome.beside else (" ", "dim"))
    project = f"  {one_line(outcome.project)}" if outcome.project else ""
    head = f"{outcome.standing.value:<12}  {one_line(outcome.session_id)}{project}"
    yield f"{output.paint(sign, colour)} {head}"
    if outcome.note:
        yield from set_in("    " + one_line(outcome.note))
    for beside in outcome.beside:
        yield from set_in("    " + one_line(_two_versions(beside)))
    for words, command in _ways(outcome, here):
        yield harmless(f"    {words}: {command}")  # commands are never cut
    hint = outcome.error.hint if isinstance(outcome.error, SessionaryError) else None
    if hint and not outcome.held:
        yield from set_in("    " + one_line(hint))


def _ways(outcome: Outcome, here: Here) -> Iterator[tuple[str, str]]:
    """The commands that settle what is held back or restore what was removed, with their effects."""
    session = outcome.session_id
    if undo := _undo(outcome, here):
        yield "undo", undo
    where = {hold.where for hold in outcome.held if not hold.is_behind}
    repair = here.repair(outcome.kind, session)
    if Where.HERE in where and repair is not None:
        yield "to repair it", repair
    if where & {Where.HERE, Where.REMOTE}:
        yield "to keep theirs", here.command("resolve", session, "--keep", "theirs")
        yield "to keep mine", here.command("resolve", session, "--keep", "mine")
    elif where:
        yield "if that device no longer exists", here.command("resolve", session, "--keep", "mine")


def _undo(outcome: Outcome, here: Here) -> str | None:
    if outcome.undo is None:
        return None
    return here.command("restore", outcome.session_id, "--generation", str(outcome.undo.generation))


def _two_versions(beside: Beside) -> str:
    if beside.other is None:
        return f"{beside.file}: the other version is on the remote; see `sessionary sync resolve`"
    other = os.path.basename(beside.other)
    return f"{beside.file}: another version is beside it, {other}; see `sessionary sync resolve`"


def _object(outcome: Outcome, here: Here) -> dict[str, Any]:
    error = outcome.error
    return {
        "id": outcome.session_id,
        "kind": outcome.kind,
        "project": outcome.project,
        "standing": outcome.standing.name.lower(),
        "note": outcome.note,
        "sibling": outcome.sibling,
        "beside": [beside._asdict() for beside in outcome.beside],
        "held": [
            {name: getattr(hold, name) for name in ("file", "where", "why", "path", "other")}
            | {"where": hold.where.value, "behind": hold.is_behind}
            for hold in outcome.held
        ],
        "undo": _undo(outcome, here),
        "error": error.as_dict() if isinstance(error, SessionaryError) else None,
    }
