"""Print the result and the cost of a synchronisation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sessionary.cli import formatting, options, output
from sessionary.cli.changing import set_in
from sessionary.cli.sync.places import Here
from sessionary.cli.text import harmless, one_line
from sessionary.errors import SessionaryError
from sessionary.sync.links import is_link
from sessionary.sync.report import Beside, Hold, Outcome, Report, SyncStatus, Where
from sessionary.sync.retry import Cost

_SIGNS = {
    SyncStatus.FAILED: ("✗", "red"),
    SyncStatus.DIVERGED: ("!", "yellow"),
    SyncStatus.HELD_BACK: ("!", "yellow"),
}
_ORDER = list(SyncStatus)


class SessionOutcome(NamedTuple):
    """The result for one session, and its kind."""

    kind: str
    outcome: Outcome


class Result(NamedTuple):
    """The results for all sessions, and the cost."""

    outcomes: list[SessionOutcome]
    cost: Cost

    @property
    def code(self) -> int:
        """The exit code: 3 if something failed, or is held back because it is damaged or behind a symbolic link."""
        return options.PARTLY if any(_needs_attention(one.outcome) for one in self.outcomes) else 0


def together(reports: Iterable[tuple[str, Report]], spared: Cost) -> Result:
    """Merge the reports of several layouts.

    Args:
        reports: the kind of each layout, and the reports of its sessions.
        spared: the cost that they counted without a request to the remote; read after all reports.
    """
    outcomes: list[SessionOutcome] = []
    cost = Cost()
    for kind, report in reports:
        outcomes += [SessionOutcome(kind, outcome) for outcome in report.outcomes]
        cost.requests += report.cost.requests
        cost.bytes_up += report.cost.bytes_up
        cost.bytes_down += report.cost.bytes_down
        cost.ru += report.cost.ru
    cost.requests -= spared.requests
    cost.bytes_down -= spared.bytes_down
    return Result(sorted(outcomes, key=_rank), cost)


def document(result: Result, here: Here) -> dict[str, Any]:
    """The result with the field names of docs/cli-json.md."""
    return {
        "remote": here.settings.remote,
        "tenant": here.settings.tenant,
        "device": here.settings.device,
        "sessions": [_object(one, here) for one in result.outcomes],
        "counts": {_word(standing): count for standing, count in _counts(result.outcomes)},
        "cost": {
            "requests": result.cost.requests,
            "bytes_up": result.cost.bytes_up,
            "bytes_down": result.cost.bytes_down,
            "ru": round(result.cost.ru, 2),
        },
    }


def lines(result: Result, here: Here, *, all_: bool = False) -> Iterator[str]:
    """The lines to print: each session with something to report, then a summary line."""
    for one in result.outcomes:
        if all_ or one.outcome.standing is not SyncStatus.IN_STEP or one.outcome.beside:
            yield from _line(one, here)
    counts = ", ".join(f"{count:,} {standing.value}" for standing, count in _counts(result.outcomes))
    yield output.paint("✓", "green") + f" {counts or 'no sessions'}" if not result.code else f"✗ {counts}"


def cost_line(cost: Cost) -> str:
    """The cost as one line."""
    units = f", {cost.ru:,.1f} RU" if cost.ru else ""
    up, down = formatting.size(cost.bytes_up), formatting.size(cost.bytes_down)
    return f"{formatting.count(cost.requests, 'request')}, {up} up, {down} down{units}"


def print_result(result: Result, here: Here, *, json_: bool, jsonl: bool = False, all_: bool = False) -> int:
    """Print a result; return the exit code."""
    if json_ or jsonl:
        output.holding(document(result, here), "sessions", jsonl=jsonl)
    else:
        output.lines(lines(result, here, all_=all_))
        output.aside(cost_line(result.cost))
    return result.code


def _rank(one: SessionOutcome) -> tuple[int, str, str]:
    return _ORDER.index(one.outcome.standing), one.outcome.project or "", one.outcome.session_id


def _counts(outcomes: Sequence[SessionOutcome]) -> list[tuple[SyncStatus, int]]:
    counted = Counter(one.outcome.standing for one in outcomes)
    return sorted(counted.items(), key=lambda pair: _ORDER.index(pair[0]))


def _line(one: SessionOutcome, here: Here) -> Iterator[str]:
    outcome = one.outcome
    sign, colour = _SIGNS.get(outcome.standing, ("!", "yellow") if outcome.beside else (" ", "dim"))
    project = f"  {one_line(outcome.project)}" if outcome.project else ""
    head = f"{outcome.standing.value:<12}  {one_line(outcome.session_id)}{project}"
    yield f"{output.paint(sign, colour)} {head}"
    if outcome.note:
        yield from set_in("    " + one_line(outcome.note))
    for beside in outcome.beside:
        yield from set_in("    " + one_line(_two_versions(beside)))
    for words, command in _ways(one, here):
        yield harmless(f"    {words}: {command}")  # commands are never cut
    hint = outcome.error.hint if isinstance(outcome.error, SessionaryError) else None
    if hint and not outcome.held:
        yield from set_in("    " + one_line(hint))


def _ways(one: SessionOutcome, here: Here) -> Iterator[tuple[str, str]]:
    """The commands that settle what is held back or restore what was removed, with their effects."""
    outcome = one.outcome
    session = outcome.session_id
    if undo := _undo(outcome, here):
        yield "undo", undo
    where = {hold.where for hold in outcome.held if not hold.is_behind}
    repair = here.repair(one.kind, session)
    if Where.HERE in where and repair is not None:
        yield "to repair it", repair
    if where & {Where.HERE, Where.REMOTE}:
        yield "to keep theirs", here.command("resolve", session, "--keep", "theirs")
        yield "to keep mine", here.command("resolve", session, "--keep", "mine")
    elif where:
        yield "if that device is gone for good", here.command("resolve", session, "--keep", "mine")


def _undo(outcome: Outcome, here: Here) -> str | None:
    if outcome.undo is None:
        return None
    return here.command("restore", outcome.session_id, "--generation", str(outcome.undo.generation))


def _needs_attention(outcome: Outcome) -> bool:
    is_damaged = any(not hold.is_behind for hold in outcome.held)
    return outcome.standing is SyncStatus.FAILED or is_damaged or is_link(outcome.error)


def _two_versions(beside: Beside) -> str:
    if beside.other is None:
        return f"{beside.file}: the other version is on the remote; see `sessionary sync resolve`"
    other = os.path.basename(beside.other)
    return f"{beside.file}: another version is beside it, {other}; see `sessionary sync resolve`"


def _object(one: SessionOutcome, here: Here) -> dict[str, Any]:
    outcome, error = one.outcome, one.outcome.error
    return {
        "id": outcome.session_id,
        "kind": one.kind,
        "project": outcome.project,
        "standing": _word(outcome.standing),
        "note": outcome.note,
        "sibling": outcome.sibling,
        "beside": [beside._asdict() for beside in outcome.beside],
        "held": [_hold(hold) for hold in outcome.held],
        "undo": _undo(outcome, here),
        "error": error.as_dict() if isinstance(error, SessionaryError) else None,
    }


def _hold(hold: Hold) -> dict[str, Any]:
    return {
        "file": hold.file,
        "where": hold.where.value,
        "why": hold.why,
        "path": hold.path,
        "other": hold.other,
        "behind": hold.is_behind,
    }


def _word(standing: SyncStatus) -> str:
    return standing.name.lower()
