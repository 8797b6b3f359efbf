"""`sessionary list`: what there is, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import options, output, phrases
from sessionary.cli.targets import is_home
from sessionary.cli.text import cells, fit, one_line, pad
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.ids import PROJECTS, project_slug
from sessionary.model import Severity, Summary
from sessionary.workspace import Workspace

PARTLY = 3
_OLDEST = datetime.min.replace(tzinfo=UTC)


@click.command(
    "list",
    epilog="""\b
Examples:
  sessionary list
  sessionary list --all --home /mnt/old-laptop/.amplifier
  sessionary list --json | jq '.[] | select(.health == "lost_data") | .id'
""",
)
@options.home
@click.option(
    "--all", "-a", "all_", is_flag=True, help="Show the sessions of sub-agents too, below their parents."
)
@click.option(
    "--top-level", is_flag=True, help="Leave the sessions of sub-agents out of --json and --jsonl too."
)
@options.as_json("the sessions", "one session")
def list_command(home: Path | None, all_: bool, top_level: bool, json_: bool, jsonl: bool) -> int:
    """List the sessions, the newest first.

    Sessions of sub-agents are only counted, unless --all shows them; --json holds them too, each with its parent.

    HEALTH is the worst that was found: ok; stray (bytes that are no record); hides (data that other readers do not
    show); stops (the agent cannot go on with it); lost (data is gone). `sessionary check` tells more.
    """
    options.one_format(json_, jsonl)
    workspace = Workspace(home)
    summaries, failure = _gather(workspace)
    first = [summary for summary in summaries if not workspace.is_nested(summary.ref)]
    if jsonl:
        output.values(map(as_object, first if top_level else summaries))
    elif json_:
        output.value([as_object(summary) for summary in (first if top_level else summaries)])
    elif summaries:
        short = dict(zip(map(id, summaries), workspace.short_ids([s.ref for s in summaries]), strict=True))
        shown = list(_below_parents(summaries, first)) if all_ else [(summary, 0) for summary in first]
        output.lines(_table(shown, [short[id(summary)] for summary, _ in shown], datetime.now(UTC)))
        _say_more(summaries, len(summaries) - len(shown))
    else:
        missing = "" if is_home(str(workspace.home)) else f": there is no {PROJECTS}/ in it"
        output.aside(f"no sessions in {workspace.home}{missing}; --home names another place")
    return 0 if failure is None else _tell_partly(failure)


def as_object(summary: Summary) -> dict[str, Any]:
    """A summary with the field names of docs/cli-json.md."""
    ref = summary.ref
    return {
        "id": ref.session_id,
        "kind": ref.kind,
        "agent": summary.agent,
        "project": ref.project,
        "title": summary.title,
        "parent": summary.parent,
        "messages": summary.messages,
        "turns": summary.turns,
        "turn_count": summary.turn_count,
        "created": summary.created,
        "updated": summary.updated,
        "size": summary.size,
        "health": summary.health,
        "path": str(ref.path),
    }


def _gather(workspace: Workspace) -> tuple[list[Summary], StorageFailed | None]:
    """All summaries, the newest first, and what kept some of them from being read."""
    summaries: list[Summary] = []
    failure = None
    try:
        summaries.extend(workspace.summaries())
    except StorageFailed as error:
        failure = error
    summaries.sort(key=lambda summary: (summary.updated or _OLDEST, summary.ref.session_id), reverse=True)
    return summaries, failure


def _below_parents(summaries: list[Summary], first: list[Summary]) -> Iterator[tuple[Summary, int]]:
    """Every session with its depth: sub-sessions behind their parents; those whose parent is gone come last."""
    children: dict[str | None, list[Summary]] = {}
    top = set(map(id, first))
    for summary in summaries:
        if id(summary) not in top:
            children.setdefault(summary.parent, []).append(summary)
    todo = [(summary, 0) for summary in reversed(first)]
    seen: set[int] = set()
    orphans = iter(summaries)
    while True:
        while todo:
            summary, depth = todo.pop()
            if id(summary) not in seen:
                seen.add(id(summary))
                yield summary, depth
                todo += [(child, depth + 1) for child in reversed(children.get(summary.ref.session_id, []))]
        left = next((summary for summary in orphans if id(summary) not in seen), None)
        if left is None:
            return
        todo.append((left, 0))


class _Row(NamedTuple):
    id: str
    when: str
    project: str
    messages: str
    turns: str
    size: str
    health: str
    title: str


_HEADER = _Row("ID", "WHEN", "PROJECT", "MSGS", "TURNS", "SIZE", "HEALTH", "TITLE")


def _table(shown: list[tuple[Summary, int]], ids: list[str], now: datetime) -> Iterator[str]:
    """The lines of the table; only on a terminal is anything cut, and then the ends of titles."""
    room = output.room()
    names = _names({summary.ref.project or "-" for summary, _ in shown})
    rows = [
        _row(summary, depth, short, names, now) for (summary, depth), short in zip(shown, ids, strict=True)
    ]
    if room is not None:
        longest = 6 if room < 80 else 12 if room < 100 else 24
        rows = [row._replace(project=fit(row.project, longest, keep_end=True)) for row in rows]
    widths = [max(map(cells, column)) for column in list(zip(*rows, _HEADER, strict=True))[:-1]]
    left = None if room is None else max(room - sum(widths) - 2 * len(widths), 4)
    paint = output.painter()
    yield paint(_line(_HEADER, widths, left), "bold")
    for row, (summary, _) in zip(rows, shown, strict=True):
        health = paint(row.health.ljust(widths[6]), phrases.colour(summary.health))
        yield _line(row._replace(health=health), widths, left)


def _row(summary: Summary, depth: int, short: str, projects: dict[str, str], now: datetime) -> _Row:
    title = one_line(summary.title) if summary.title else "-"
    return _Row(
        one_line(short),
        phrases.ago(summary.updated, now),
        one_line(projects[summary.ref.project or "-"]),
        str(summary.messages),
        str(summary.turns),
        phrases.size(summary.size),
        phrases.verdict(summary.health),
        "  " * (depth - 1) + "└ " + title if depth else title,
    )


def _line(row: _Row, widths: list[int], room: int | None) -> str:
    texts = [
        pad(row.id, widths[0]),
        row.when.ljust(widths[1]),
        pad(row.project, widths[2]),
        row.messages.rjust(widths[3]),
        row.turns.rjust(widths[4]),
        row.size.rjust(widths[5]),
        row.health.ljust(widths[6]),
        row.title if room is None else fit(row.title, room),
    ]
    return "  ".join(texts)


def _names(slugs: set[str]) -> dict[str, str]:
    """Each project's folder name without what they all begin with, and without the home of the one who looks."""
    home = project_slug(Path.home())
    names = {slug: "~" if slug == home else slug.removeprefix(f"{home}-") for slug in slugs}
    first, last = min(names.values()), max(names.values())  # what these two share, all share
    same = next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    common = first[:same] if first != last else ""
    return {slug: name[common.rfind("-") + 1 :] for slug, name in names.items()}


def _say_more(summaries: list[Summary], hidden: int) -> None:
    """What a person should know of the sessions that are not shown, and of those that are not well."""
    if hidden:
        output.aside(f"{phrases.count(hidden, 'session')} of sub-agents not shown; --all shows them")
    ill = sum(summary.health not in ("ok", Severity.note.name) for summary in summaries)
    if ill:
        output.aside(f"{phrases.count(ill, 'session')} not well; `sessionary check` tells more")


def _tell_partly(failure: StorageFailed) -> int:
    for folder in failure.details["folders"]:
        output.aside(f"sessionary: {one_line(folder)} cannot be looked into: its sessions are not listed")
    return PARTLY
