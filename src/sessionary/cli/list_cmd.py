"""`sessionary list`: what there is, newest first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from operator import eq, is_
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from sessionary.cli import homes, options, output, phrases
from sessionary.cli.choice import all_summaries, among_found, projects, tell_none, tell_partly
from sessionary.cli.text import cells, column, fit, one_line, one_lines
from sessionary.errors import SessionaryError
from sessionary.layouts.amplifier.ids import project_slug
from sessionary.model import Severity, Summary
from sessionary.workspace import SHORT, Workspace

Value = TypeVar("Value", str, int)


@click.command(
    "list",
    epilog="""\b
Examples:
  sessionary list
  sessionary list --since "last week" --project app
  sessionary list --all --home /mnt/old-laptop/.amplifier
  sessionary list --json | jq '.[] | select(.health == "lost_data") | .id'
""",
)
@options.home
@options.project
@options.since
@options.until
@click.option(
    "--all", "-a", "all_", is_flag=True, help="Show the sessions of sub-agents too, below their parents."
)
@click.option(
    "--top-level", is_flag=True, help="Leave the sessions of sub-agents out of --json and --jsonl too."
)
@options.as_json("the sessions", "one session")
def list_command(
    home: Path | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    all_: bool,
    top_level: bool,
    json_: bool,
    jsonl: bool,
) -> int:
    """List the sessions, the newest first.

    Sessions of sub-agents are only counted, unless --all shows them; --json holds them too, each with its parent.
    --since and --until go by the last change of a session.

    HEALTH is the worst that was found: ok; stray (bytes that are no record); hides (data that other readers do not
    show); stops (the agent cannot go on with it); lost (data is gone). `sessionary check` tells more.
    """
    options.one_format(json_, jsonl)

    def listed(found: list[Summary]) -> _Listed:
        chosen = _places(found, project, since, until)
        return _listed(workspace, found, chosen, all_=all_, is_table=not (json_ or jsonl))

    draft = _Draft(listed)
    workspace = homes.workspace(home, meanwhile=draft.make)
    found, failure = all_summaries(workspace)
    with among_found(failure):
        result = draft.final(found)
    summaries = result.summaries
    objects = (as_object(summaries[place]) for place in (result.first if top_level else result.newest))
    if jsonl:
        output.values(objects)
    elif json_:
        output.value(list(objects))
    elif summaries:
        with output.paged():
            output.lines(result.lines)
        _say_more(home, summaries, result.hidden, len(found) - len(summaries))
    elif found:
        place = one_line(str(workspace.home))
        output.aside(f"none of {phrases.count(len(found), 'session')} in {place} is of that project and time")
    else:
        tell_none(workspace)
    return tell_partly(failure, "listed")


class _Listed(NamedTuple):
    """What is shown of the sessions that were found.

    Attributes:
        summaries: those that were asked for.
        newest: their places, the newest first.
        first: those of them that are no sessions of sub-agents.
        lines: of the table, if that is wanted.
        hidden: how many are not in it.
    """

    summaries: list[Summary]
    newest: list[int]
    first: list[int]
    lines: list[str]
    hidden: int


class _Draft:
    """A result that is made while a second process still looks whether all is as it was when it was remembered."""

    def __init__(self, make: Callable[[list[Summary]], _Listed]) -> None:
        self._make = make
        self._likely: list[Summary] = []
        self._made: _Listed | None = None

    def make(self, likely: list[Summary]) -> None:
        """Make it of what is likely to be found."""
        with suppress(SessionaryError):  # what is really there may be no failure; if it is, that is told then
            self._likely, self._made = likely, self._make(likely)

    def final(self, found: list[Summary]) -> _Listed:
        """The result of what was found: as it was made, if that is what was likely."""
        if self._made is not None and len(found) == len(self._likely) and all(map(is_, found, self._likely)):
            return self._made
        return self._make(found)


def _listed(
    workspace: Workspace, found: list[Summary], chosen: Sequence[int], *, all_: bool, is_table: bool
) -> _Listed:
    """The order of the sessions that were chosen of all that were found, and the lines of their table."""
    summaries = found if len(chosen) == len(found) else [found[place] for place in chosen]
    times = _times(summaries)
    newest = _newest(summaries, times)
    refs = [summary.ref for summary in summaries]
    handles = workspace.handles(refs)
    ids = [ref.session_id for ref in refs]
    first = newest if handles == ids else [place for place in newest if handles[place] == ids[place]]
    if not (is_table and summaries):
        return _Listed(summaries, newest, first, [], 0)
    depths = dict(_below_parents(summaries, newest, first)) if all_ else dict.fromkeys(first, 0)
    if summaries is found:
        short = workspace.short_ids(refs, handles)
    else:
        every = workspace.short_ids([summary.ref for summary in found])
        short = [every[place] for place in chosen]
    lines = list(_table(summaries, times, short, depths, datetime.now(UTC)))
    return _Listed(summaries, newest, first, lines, len(summaries) - len(depths))


def _places(
    found: list[Summary], project: str | None, since: datetime | None, until: datetime | None
) -> Sequence[int]:
    """The places of the summaries that are asked for.

    Raises:
        NotFound: no project is called so.
    """
    if project is None and since is None and until is None:
        return range(len(found))
    slugs = None
    if project is not None:
        slugs = projects([summary.ref for summary in found], project)
    return [
        place
        for place, summary in enumerate(found)
        if (slugs is None or summary.ref.project in slugs) and _is_within(summary.updated, since, until)
    ]


def _is_within(when: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """A session whose last change nobody can tell is left out by neither."""
    return when is None or ((since is None or when >= since) and (until is None or when < until))


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
        "path": ref.folder,
    }


def _times(summaries: list[Summary]) -> list[float]:
    """When each was last changed, in seconds since 1970; of what nobody can tell minus infinity.

    Numbers are compared in a fraction of the time that dates take.
    """
    return [summary.updated.timestamp() if summary.updated else -math.inf for summary in summaries]


def _newest(summaries: list[Summary], times: list[float]) -> list[int]:
    """The places of the summaries, the newest first; of equal times the greater id, of equal ids the greater folder.

    By these only where two times are equal: to compare pairs costs several times as much.
    """
    places = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    in_order = [times[place] for place in places]
    if any(map(eq, in_order, in_order[1:])):

        def rank(place: int) -> tuple[float, str, str]:
            ref = summaries[place].ref
            return times[place], ref.session_id, ref.folder

        places.sort(key=rank, reverse=True)
    return places


def _below_parents(
    summaries: list[Summary], newest: list[int], first: list[int]
) -> Iterator[tuple[int, int]]:
    """The place of every session with its depth: sub-sessions behind their parents; those without one come last."""
    children: dict[str | None, list[int]] = {}
    top = set(first)
    for place in newest:
        if place not in top:
            children.setdefault(summaries[place].parent, []).append(place)
    todo = [(place, 0) for place in reversed(first)]
    seen: set[int] = set()
    orphans = iter(newest)
    while True:
        while todo:
            place, depth = todo.pop()
            if place not in seen:
                seen.add(place)
                yield place, depth
                below = children.get(summaries[place].ref.session_id, [])
                todo += [(child, depth + 1) for child in reversed(below)]
        left = next((place for place in orphans if place not in seen), None)
        if left is None:
            return
        todo.append((left, 0))


def _table(
    summaries: list[Summary],
    times: list[float],
    short: list[str],
    depths: dict[int, int],
    now: datetime,
) -> Iterator[str]:
    """The lines of the table; only on a terminal is anything cut, and then the ends of titles.

    They are made in the order in which the summaries came, and put into that of the table last: with ten thousand,
    memory visited in random order takes its time. So does memory used for the first time: of what has few values, as
    most counts have, each is written once.

    Args:
        summaries: all there are.
        times: when each was last changed.
        short: the short id of each.
        depths: the place in `summaries` of what is shown, in the order of the table, each with its depth.
        now: the time.
    """
    room = output.room()
    places = [place for place in range(len(summaries)) if place in depths]
    some = [summaries[place] for place in places]
    names = _projects({summary.ref.project or "-" for summary in some}, room)
    ids = column(["ID", *one_lines([short[place] for place in places])])
    changed = [summary.updated for summary in some]
    whens = column(["WHEN", *phrases.agos(changed, [times[place] for place in places], now)])
    project, projects = _column("PROJECT", names)
    msgs, messages = _column("MSGS", {each: str(each) for each in {one.messages for one in some}}, right=True)
    turn, turns = _column("TURNS", {each: str(each) for each in {one.turns for one in some}}, right=True)
    sizes = column(["SIZE", *[phrases.size(summary.size) for summary in some]], right=True)
    health, verdicts = _column(
        "HEALTH", {each: phrases.verdict(each) for each in {one.health for one in some}}
    )
    header = "  ".join((ids[0], whens[0], project, msgs, turn, sizes[0], health, "TITLE"))
    paint = output.painter()
    verdicts = {each: paint(text, phrases.colour(each)) for each, text in verdicts.items()}
    titles = _titles(some, [depths[place] for place in places], room and room - cells(header) + len("TITLE"))
    lines = [
        f"{id_}  {when}  {projects[one.ref.project or '-']}  {messages[one.messages]}  {turns[one.turns]}"
        f"  {size}  {verdicts[one.health]}  {title}"
        for one, id_, when, size, title in zip(some, ids[1:], whens[1:], sizes[1:], titles, strict=True)
    ]
    line_of = dict(zip(places, lines, strict=True))
    yield output.paint(header, "bold")
    yield from [line_of[place] for place in depths]


def _column(head: str, texts: Mapping[Value, str], *, right: bool = False) -> tuple[str, dict[Value, str]]:
    """The head and the texts, filled up to the width of the widest; the texts by what they stand for."""
    head, *filled = column([head, *texts.values()], right=right)
    return head, dict(zip(texts, filled, strict=True))


def _titles(some: list[Summary], depths: list[int], room: int | None) -> list[str]:
    """The titles, those of sub-sessions set in, those of forks with their origin; all cut to the room there is."""
    titles = one_lines(
        [
            f"{summary.title or '-'} (from {summary.parent[:SHORT]})"
            if summary.parent and not depth and summary.parent != summary.ref.session_id
            else summary.title or "-"
            for summary, depth in zip(some, depths, strict=True)
        ]
    )
    if any(depths):
        titles = [
            "  " * (depth - 1) + "└ " + title if depth else title
            for depth, title in zip(depths, titles, strict=True)
        ]
    return titles if room is None else [fit(title, max(room, 4)) for title in titles]


def _projects(slugs: set[str], room: int | None) -> dict[str, str]:
    """What stands for each project in the table."""
    names = {slug: one_line(name) for slug, name in _names(slugs).items()}
    if room is None:
        return names
    longest = 6 if room < 80 else 12 if room < 100 else 24
    return {slug: fit(name, longest, keep_end=True) for slug, name in names.items()}


def _names(slugs: set[str]) -> dict[str, str]:
    """Each project's folder name without what they all begin with, and without the home of the one who looks."""
    home = project_slug(Path.home())
    names = {slug: "~" if slug == home else slug.removeprefix(f"{home}-") for slug in slugs}
    first, last = min(names.values()), max(names.values())  # what these two share, all share
    same = next((at for at, char in enumerate(first) if last[at : at + 1] != char), len(first))
    common = first[:same] if first != last else ""
    return {slug: name[common.rfind("-") + 1 :] for slug, name in names.items()}


def _say_more(home: Path | None, summaries: list[Summary], hidden: int, left_out: int) -> None:
    """What a person should know of the sessions that are not shown, and of those that are not well."""
    if left_out:
        output.aside(f"{phrases.count(left_out, 'session')} of other projects or times not shown")
    if hidden:
        output.aside(f"{phrases.count(hidden, 'session')} of sub-agents not shown; --all shows them")
    counts = Counter([summary.health for summary in summaries])
    ill = counts.total() - counts["ok"] - counts[Severity.note.name]
    if ill:
        look = one_line(phrases.command(home, "check"))
        output.aside(f"{phrases.count(ill, 'session')} not well; `{look}` tells more")
