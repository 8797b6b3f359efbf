"""`sessionary events`: the event log of a session, one line each; whole records only on request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from sessionary import codec
from sessionary.cli import completing, formatting, homes, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.page import brief_arguments
from sessionary.cli.progress import Progress
from sessionary.cli.table import Column
from sessionary.cli.targets import resolve
from sessionary.cli.text import cells, column, fit, one_line
from sessionary.errors import NotFound
from sessionary.layouts.amplifier.event_heads import EventFilter, EventHead
from sessionary.layouts.amplifier.event_reader import EventReader, EventSummary, Usage, UsageTotals
from sessionary.layouts.base import Capability
from sessionary.model import SessionRef
from sessionary.workspace import documents

VALUE = 200

View = tuple[EventHead, dict[str, Any]]


@command(
    "events",
    "sessionary events 3f0c81d2 --summary",
    "sessionary events 3f0c81d2 --level error",
    "sessionary events 3f0c81d2 --event 'llm:*' --tail 20",
    "sessionary events 3f0c81d2 --event llm:response --fields ts,data.usage.input_tokens",
    "sessionary events 3f0c81d2 --cost --json | jq .total.cost_usd",
)
@click.argument(
    "session", metavar="ID | DIR | FILE", shell_complete=completing.sessions(Capability.EVENTS, files=True)
)
@options.home
@options.repeated("--event", "names", metavar="NAME", help="Only events of this name; * and ? are wildcards.")
@options.repeated("--level", "levels", metavar="LEVEL", help="Only this level.")
@click.option("--span", metavar="ID", help="Only this span and its direct children.")
@options.since
@options.until
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N events.")
@click.option(
    "--fields", metavar="PATHS", help="Print only these fields, such as ts,data.usage.input_tokens."
)
@options.flag("--summary", "summed", help="Print counts by name and level instead.")
@options.flag("--cost", help="Print tokens and cost by model instead.")
@options.flag("--raw", help="Print the stored lines, unshortened.")
@options.as_json("the events", "one event")
def events_command(
    session: str,
    names: tuple[str, ...],
    levels: tuple[str, ...],
    span: str | None,
    since: datetime | None,
    until: datetime | None,
    tail: int | None,
    fields: str | None,
    summed: bool,
    cost: bool,
    raw: bool,
) -> int:
    """Show the events of a session, one line each.

    A line has the time, the level (✗ error, ! warning, · debug), the name, the duration, the size of the
    record, and its most important detail. A log can have millions of lines, some of several megabytes: begin
    with --summary. FILE is any event log.
    """
    how = _one_way(summary=summed, cost=cost, raw=raw)
    _check_usage(how, fields, tail)
    workspace = homes.workspace()
    found = resolve(workspace, session, able=Capability.EVENTS)
    wanted: EventFilter = {"since": since, "until": until, "span": span}
    if names:
        wanted["event"] = names
    if levels:
        wanted["level"] = levels
    reader = workspace.events(found)
    if isinstance(found, SessionRef) and not os.path.exists(reader.path):
        raise NotFound(
            f"{found.session_id} has no event log",
            session=found.session_id,
            path=reader.path,
            hint=f"`{formatting.command('show', found.session_id)}` prints the messages",
        )
    if how == "summary" or how == "cost":
        size = os.path.getsize(reader.path) if os.path.exists(reader.path) else 0
        with Progress("reading events", size) as progress:
            reader = workspace.events(found, passed=progress.reach)
            totals = reader.summary(**wanted) if how == "summary" else reader.usage(**wanted)
        if isinstance(totals, EventSummary):
            output.shown(documents.of_event_summary(totals), _summary_lines(totals))
        else:
            _print_cost(totals)
    elif how == "raw":
        with output.paged():
            for line in reader.lines(last=tail, **wanted):
                output.stored(line)
    else:
        paths = [path.strip() for path in fields.split(",")] if fields is not None else None
        _print_views(reader.views(paths or PATHS, last=tail, **wanted), paths)
    _print_damage(reader)
    return 0


def _one_way(**ways: bool) -> str | None:
    """The output option that was given; None if none was."""
    asked = [name for name, wanted in ways.items() if wanted]
    if len(asked) > 1:
        raise click.UsageError(f"--{asked[0]} and --{asked[1]} exclude each other")
    return asked[0] if asked else None


def _check_usage(how: str | None, fields: str | None, tail: int | None) -> None:
    if how is not None and fields is not None:
        raise click.UsageError(f"--fields and --{how} exclude each other")
    if how in ("summary", "cost") and tail is not None:
        raise click.UsageError(f"--tail and --{how} exclude each other; use --since for the newest events")
    if how == "raw" and output.is_json():
        raise click.UsageError("--raw already prints JSON: it cannot be combined with --json or --jsonl")


def as_object(head: EventHead, fields: dict[str, Any], paths: Sequence[str] | None) -> dict[str, Any]:
    """An event with the field names of docs/cli-json.md."""
    rest = {"detail": detail(head, fields)} if paths is None else {"fields": fields}
    return documents.of_event(head) | rest


def _print_views(views: Iterable[View], paths: list[str] | None) -> None:
    if output.wants("jsonl"):
        output.values(as_object(*view, paths) for view in views)
    elif output.wants("json"):
        output.value([as_object(*view, paths) for view in views])
    else:
        with output.paged():
            count = 0
            draw = EventLines(output.room(), now=datetime.now(UTC))
            for head, fields in views:
                count += 1
                if paths is None:
                    output.lines(draw.lines(head, fields))
                else:
                    output.line("\t".join(_value(fields[path]) if path in fields else "-" for path in paths))
            if not count:
                output.aside("No events match these filters.")


def _value(value: Any) -> str:
    """A value on one line; a long one is cut, with its length."""
    text = value if isinstance(value, str) else codec.reencode_line(value).decode().rstrip("\n")
    rest = len(text) - VALUE
    return one_line(text[:VALUE]) + (f"… ({rest:,} more characters)" if rest > 0 else "")


def _summary_lines(summary: EventSummary) -> Iterator[str]:
    now = datetime.now(UTC)
    yield output.paint(
        f"{formatting.count(summary.total, 'event')} in {formatting.size(summary.bytes)}", "bold"
    )
    if summary.first_ts and summary.last_ts:
        yield f"from {formatting.stamp(summary.first_ts, now)} to {formatting.stamp(summary.last_ts, now)}"
    if summary.longest:
        yield f"the longest has {formatting.size(summary.longest)}, at byte {summary.longest_at:,}"
    levels = sorted(summary.levels.items(), key=lambda level: -level[1])
    if levels:
        yield ", ".join(f"{count:,} {one_line(level or 'without a level')}" for level, count in levels)
        yield ""
    named = sorted(summary.events.items(), key=lambda event: (-event[1], event[0]))
    counts = column([f"{count:,}" for _, count in named], right=True)
    for (name, _), count in zip(named, counts, strict=True):
        yield f"  {count}  {one_line(name) or '(no name)'}"


def usage_object(usage: Usage) -> dict[str, Any]:
    """Usage with the field names of docs/cli-json.md; the cost is text, so that no digit is lost."""
    return asdict(usage) | {"cost_usd": None if usage.cost_usd is None else str(usage.cost_usd)}


def _print_cost(totals: UsageTotals) -> None:
    if output.is_json():
        models = [{"model": model, **usage_object(usage)} for model, usage in totals.models.items()]
        output.value({"total": usage_object(totals.total), "models": models})
        return
    if not totals.total.responses:
        output.aside("No model responses in this log.")
        return
    output.lines(
        usage_table({model or "(not named)": usage for model, usage in totals.models.items()}, "MODEL")
    )
    report_unknown_usage(totals.total)


def usage_table(usages: dict[str, Usage], what: str, *, by_name: bool = False) -> Iterator[str]:
    """A table of usages, the most expensive first (or by name), with a total if there are several."""
    rows = sorted(usages.items(), reverse=True)
    if not by_name:
        rows.sort(key=lambda one: (one[1].cost_usd or 0, one[1].responses), reverse=True)
    if len(rows) > 1:
        total = Usage()
        for usage in usages.values():
            total.merge(usage)
        rows.append(("all", total))
    some = [usage for _, usage in rows]
    columns = [
        Column(what, [one_line(name) for name, _ in rows]),
        Column("RESPONSES", [f"{usage.responses:,}" for usage in some], right=True),
        Column("TOKENS IN", [_number(usage.tokens.get("input_tokens")) for usage in some], right=True),
        Column("TOKENS OUT", [_number(usage.tokens.get("output_tokens")) for usage in some], right=True),
        Column(
            "COST",
            ["-" if usage.cost_usd is None else f"${usage.cost_usd:,.4f}" for usage in some],
            right=True,
        ),
    ]
    return table.lines(columns, output.room(), stretch=what)


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def report_unknown_usage(total: Usage) -> None:
    """Print what the totals leave out."""
    if total.without_usage:
        output.aside(f"{formatting.count(total.without_usage, 'response')} without a token count")
    if total.without_cost:
        output.aside(
            f"{formatting.count(total.without_cost, 'response')} without a cost; costs are not estimated"
        )


def _print_damage(reader: EventReader) -> None:
    if count := len(reader.problems):
        first = reader.problems[0]
        output.aside(
            f"{formatting.count(count, 'damaged place')} skipped, "
            f"the first at byte {first.byte or 0:,}: {first.message}"
        )


DETAIL = 200
NAME = 21
_WIDE = 60

PATHS = (
    "error",
    "data.error",
    "data.prompt",
    "data.tool_name",
    "data.tool_input",
    "data.model",
    "data.usage",
    "data.message_count",
    "data.agent",
    "data.sub_session_id",
)
"""The fields that `detail` reads."""

_SIGNS = {"ERROR": "✗", "CRITICAL": "✗", "WARNING": "!", "WARN": "!", "INFO": " ", "DEBUG": "·", None: "?"}
_COLOURS = {"✗": "red", "!": "yellow"}


class EventLines:
    """Turns events into lines, with a heading for each new day.

    Args:
        room: cells per line; None: nothing is cut.
        now: the present, for dates without a year.
    """

    def __init__(self, room: int | None, *, now: datetime) -> None:
        self._room = room
        self._now = now
        self._day: str | None = None

    def lines(self, head: EventHead, fields: Mapping[str, Any]) -> Iterator[str]:
        """The line of an event, preceded by that of its day if it is the first of it."""
        time = "--:--:--"
        if head.ts is not None:
            time, day = formatting.clock(head.ts), formatting.stamp(head.ts, self._now).rpartition(" ")[0]
            if day != self._day:
                self._day = day
                yield output.paint(f"── {day} ".ljust(self._room or output.WIDTH, "─"), "cyan")
        level = None if head.lvl is None else head.lvl.upper()
        sign = _SIGNS.get(level, "?")
        took = "" if head.duration_ms is None else duration(head.duration_ms)
        name = one_line(head.event or "(no name)")
        facts = f"{time} {sign} {name:{NAME}}"
        if self._room is None or self._room >= _WIDE:
            facts += f" {took:>7} {formatting.size(head.length):>6}"
        detail_text = detail(head, fields)
        if self._room is not None:
            detail_text = fit(detail_text, max(self._room - cells(facts) - 2, 0))
        line = f"{facts}  {detail_text}".rstrip()
        line = line if self._room is None else fit(line, self._room)
        yield output.paint(line, _COLOURS[sign]) if sign in _COLOURS else line


def detail(head: EventHead, fields: Mapping[str, Any]) -> str:
    """The most important detail of an event, on one line of at most `DETAIL` characters."""
    parts = list(_parts(fields))
    if head.status is not None and head.status not in ("ok", "success"):
        parts.append(head.status)
    return fit(one_line("  ".join(parts)[: 4 * DETAIL]), DETAIL)


def _parts(fields: Mapping[str, Any]) -> Iterator[str]:
    if (error := fields.get("error") or fields.get("data.error")) is not None:
        yield _error(error)
    if isinstance(tool := fields.get("data.tool_name"), str):
        yield tool
        yield brief_arguments(fields.get("data.tool_input"))
    if isinstance(usage := fields.get("data.usage"), dict):
        yield _usage(usage)
    if type(count := fields.get("data.message_count")) is int:
        yield formatting.count(count, "message")
    for path in ("data.agent", "data.sub_session_id", "data.prompt", "data.model"):
        if isinstance(word := fields.get(path), str):
            yield word


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    parts = [error[key] for key in ("type", "msg", "message") if isinstance(error.get(key), str)]
    return ": ".join(parts) or "error"


def _usage(usage: Mapping[str, Any]) -> str:
    parts = [
        f"{usage[name]:,} {word}"
        for name, word in (("input_tokens", "in"), ("output_tokens", "out"))
        if type(usage.get(name)) is int
    ]
    if isinstance(cost := usage.get("cost_usd"), str | int | float):
        parts.append(f"${cost}")
    return " ".join(parts)


def duration(milliseconds: float) -> str:
    """A duration in at most seven characters: ``912 ms``, ``11.6 s``, ``2.5 min``."""
    for limit, unit, word in ((999.5, 1, "ms"), (99_950, 1000, "s"), (5_997_000, 60_000, "min")):
        if milliseconds < limit:
            number = milliseconds / unit
            return f"{number:.0f} {word}" if unit == 1 else f"{number:.1f} {word}"
    return f"{milliseconds / 3_600_000:.1f} h"
