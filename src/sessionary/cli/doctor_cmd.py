"""`sessionary doctor`: the searched folders, the sessions found, and those that will be deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sessionary.cli import formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.text import cells, fit, one_line, short_path, wrap
from sessionary.layouts.files import Location
from sessionary.workspace.doctor import AgentState, CatalogueState
from sessionary.workspace.filters import WELL


@command("doctor", "sessionary doctor", "sessionary doctor --json")
@options.home
@options.json_result
def doctor_command() -> int:
    """Show which folders were searched and what was found.

    For each agent: the folders, the number of sessions, those that are damaged, the versions that wrote them, and
    the sessions that the agent itself will delete within a week. Then the state of the catalogue, which caches
    what lists have read. Nothing is changed.
    """
    found = homes.workspace().doctor()
    if output.is_json():
        output.value({"agents": [_agent(one) for one in found.agents], "catalogue": asdict(found.catalogue)})
    else:
        now = datetime.now(UTC)
        with output.paged():
            for one in found.agents:
                output.lines(_lines(one, now))
            output.line()
            output.line(_catalogue_line(found.catalogue))
    failed = [one for one in found.agents if one.failure is not None]
    return failed[0].failure.exit_code if failed and failed[0].failure else 0


def _lines(one: AgentState, now: datetime) -> Iterator[str]:
    there = [place for place in one.locations if place.state != "missing"]
    if not there:
        where = ", ".join(one_line(short_path(place.path)) for place in one.locations[:1])
        yield f"{one.kind:12}  not found in {where}"
        return
    yield output.paint(f"{one.kind:12}", "bold") + "  " + _counted(one)
    yield from _below(_where(there))
    if one.versions:
        first, last = one_line(one.versions[0]), one_line(one.versions[-1])
        yield from _below(f"version {first}" if first == last else f"versions {first} to {last}")
    if one.retention is not None:
        yield from _below(
            f"deletes sessions {one.retention.days} days after their last change ({one.retention.source})"
        )
    for summary in one.leaving[:3]:
        when = f" ({formatting.ago(summary.updated, now)})"
        line = f"soon deleted: {one_line(summary.title or summary.ref.session_id)}"
        yield from _below(fit(line, max(output.width() - 14 - cells(when), 20)) + when)
    if len(one.leaving) > 3:
        yield from _below(f"and {len(one.leaving) - 3:,} more within a week")
    if one.leftovers:
        count = formatting.count(len(one.leftovers), "file or folder", "files or folders")
        yield from _below(f"{count} of sessions that are gone: `sessionary check --notes` names them")
    if one.unkept:
        yield from _below(f"{one.unkept:,} of them not archived: `sessionary archive run` keeps a copy")
    if one.failure is not None:
        words = [formatting.message(one.failure), *one.failure.details.get("folders", ())[1:]]
        for line in map(one_line, map(str, words)):
            yield from _below(output.paint(f"cannot be read: {line}", "red"))
        yield from _below(one_line(one.failure.hint or ""))


def _counted(one: AgentState) -> str:
    words = [formatting.count(one.sessions, "session")]
    if one.nested:
        words.append(f"{one.nested:,} of sub-agents")
    words.append(formatting.size(one.size))
    damaged = sum(count for health, count in one.health.items() if health not in WELL)
    words.append(output.paint(f"{damaged:,} damaged", "red") if damaged else "none damaged")
    return ", ".join(words) if one.sessions or one.nested else "no sessions"


def _where(places: list[Location]) -> str:
    return ", ".join(
        one_line(short_path(one.path)) + (" (cannot be read)" if one.state == "unreadable" else "")
        for one in places
    )


def _below(text: str) -> Iterator[str]:
    return (f"{'':14}{line}" for line in wrap(text, max(output.width() - 14, 20)))


def _catalogue_line(state: CatalogueState) -> str:
    if state.path is None:
        return "catalogue     none: the cache folder is missing"
    if state.size is None:
        return f"catalogue     {one_line(short_path(state.path))}: missing or unreadable"
    what = formatting.size(state.size)
    rows = (
        "cannot be read, and is made anew"
        if state.sessions is None
        else formatting.count(state.sessions, "session")
    )
    return f"catalogue     {one_line(short_path(state.path))}: {what}, {rows}"


def _agent(one: AgentState) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "locations": [place._asdict() for place in one.locations],
        "sessions": one.sessions,
        "nested": one.nested,
        "size": one.size,
        "health": dict(one.health),
        "versions": one.versions,
        "retention": None if one.retention is None else one.retention._asdict(),
        "leaving": [{"id": summary.ref.session_id, "updated": summary.updated} for summary in one.leaving],
        "leftovers": [problem.path for problem in one.leftovers],
        "leaving_unarchived": one.unkept,
        "error": None if one.failure is None else formatting.message(one.failure),
    }
