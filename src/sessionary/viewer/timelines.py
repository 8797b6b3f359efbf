"""The plots of one session over time: its tools, the work below it, its score."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from sessionary.export.wording import one_line
from sessionary.viewer.plots import Bar, Lane, Point, curve, lanes
from sessionary.workspace.family import Kin, descent
from sessionary.workspace.tool_times import ToolTime

if TYPE_CHECKING:
    from sessionary.layouts.brainstorm.scores import Score
    from sessionary.layouts.maestro.spans import WorkSpan

PAUSE = timedelta(minutes=1)
"""A longer time in which no tool runs is drawn as so long."""

_TOOLS = 14
"""Lanes of the timeline of tools: those that took most time."""

_CALLS = 3_000
"""Calls that are drawn, the last ones."""

_SESSIONS = 200
"""Work sessions that are drawn."""

_STATES = {"completed": "well", "failed": "bad", "interrupted": "bad", "paused": "warn"}


def tool_timeline(calls: Sequence[ToolTime]) -> tuple[str, str]:
    """The plot of the calls of tools, empty if they bear no times, and what it leaves out.

    Each tool has a lane, those that took most time above; a bar is as long as the call took.
    """
    timed = [(one, one.begun) for one in calls if one.begun is not None][-_CALLS:]
    if not timed:
        return "", ""
    ends = [begun + timedelta(seconds=one.seconds or 0) for one, begun in timed]
    scale = _Scale(sorted(zip((begun for _, begun in timed), ends, strict=True)))
    rows: dict[str, list[tuple[ToolTime, Bar]]] = {}
    for (one, begun), end in zip(timed, ends, strict=True):
        words = f"{one.name}: {_taken(one)}, message {one.index}, {_clock(begun)}"
        kind = "bad" if one.failed else "well" if one.answered else "warn"
        rows.setdefault(one.name, []).append(
            (one, Bar(scale.at(begun), scale.at(end), kind, one_line(words)))
        )
    order = sorted(rows, key=lambda name: -sum(one.seconds or 0 for one, _ in rows[name]))
    drawn = [
        Lane(name, [bar for _, bar in rows[name]], _facts([one for one, _ in rows[name]]))
        for name in order[:_TOOLS]
    ]
    first, last = min(begun for _, begun in timed), max(ends)
    svg = lanes(f"{len(timed):,} calls of tools over time", drawn, _ends(first, last))
    return svg, " ".join(_left_out(len(calls), len(timed), len(rows), scale.shortened))


def _left_out(calls: int, timed: int, tools: int, shortened: bool) -> Iterable[str]:
    if timed < calls:
        yield f"{calls - timed:,} of {calls:,} calls are not drawn: they bear no time, or are too early."
    if tools > _TOOLS:
        yield f"{tools - _TOOLS} tools that took less time are not drawn."
    if shortened:
        yield "Pauses longer than a minute are drawn as a minute."


def _facts(calls: Sequence[ToolTime]) -> str:
    seconds = [one.seconds for one in calls if one.seconds is not None]
    failed = sum(one.failed for one in calls)
    words = [f"{len(calls):,}×"]
    if failed:
        words.append(f"{failed:,} failed")
    if seconds:
        words.append(f"median {duration(median(seconds))}, max {duration(max(seconds))}")
    return " · ".join(words)


def _taken(one: ToolTime) -> str:
    if not one.answered:
        return "no result"
    return ("" if one.seconds is None else duration(one.seconds)) + (" failed" if one.failed else "")


class _Scale:
    """Places of times from 0 to 1, with pauses shortened.

    Args:
        spans: begin and end of what happened, sorted.

    Attributes:
        shortened: True if a pause was.
    """

    def __init__(self, spans: Sequence[tuple[datetime, datetime]]) -> None:
        self.shortened = False
        self._steps: list[tuple[datetime, timedelta]] = [(spans[0][0], timedelta())]
        busy, cut = spans[0][1], timedelta()
        for begun, end in spans[1:]:
            if begun - busy > PAUSE:
                cut += begun - busy - PAUSE
                self._steps.append((begun, cut))
                self.shortened = True
            busy = max(busy, end)
        self._whole = (busy - cut - spans[0][0]) or timedelta(seconds=1)

    def at(self, time: datetime) -> float:
        """The place of a time in one of the spans."""
        step = bisect_right(self._steps, time, key=lambda step: step[0]) - 1
        return (time - self._steps[step][1] - self._steps[0][0]) / self._whole


def work_timeline(tops: Iterable[Kin], spans: Mapping[str, WorkSpan]) -> str:
    """The tree of work sessions, each with the time that it took and a mark for each breadcrumb; empty without times.

    Args:
        spans: the times by the locator of the session.
    """
    found = []
    for top in tops:
        for kin, levels in descent(top):
            span = spans.get(kin.ref.locator)
            begun = None if span is None else span.begun or min(span.crumbs, default=None)
            if span is not None and begun is not None:
                end = span.ended or max([begun, *span.crumbs, *_updated(kin)])
                found.append((kin, len(levels), span, begun, max(begun, end)))
    found = found[:_SESSIONS]
    if not found:
        return ""
    first, last = min(one[3] for one in found), max(one[4] for one in found)
    whole = (last - first) or timedelta(seconds=1)
    rows = []
    for kin, depth, span, begun, end in found:
        words = f"{span.status}, {_clock(begun)} to {_clock(end)}, {_crumbs(span)}"
        bars = [
            Bar((begun - first) / whole, (end - first) / whole, _STATES.get(span.status or "", ""), words)
        ]
        inside = [(crumb - first) / whole for crumb in span.crumbs if begun <= crumb <= end]
        bars += [Bar(at, at, "crumb", "a breadcrumb") for at in inside]
        facts = f"{span.status} · {duration((end - begun).total_seconds())} · {_crumbs(span)}"
        rows.append(Lane(kin.summary.title or kin.ref.session_id, bars, facts, depth))
    return lanes(f"{len(rows)} work sessions over time", rows, _ends(first, last))


def _crumbs(span: WorkSpan) -> str:
    return f"{len(span.crumbs)} breadcrumb{'' if len(span.crumbs) == 1 else 's'}"


def _updated(kin: Kin) -> list[datetime]:
    return [] if kin.summary.updated is None else [kin.summary.updated]


def score_curve(scores: Sequence[Score]) -> str:
    """The score of a brainstorm over its history; empty without scores.

    Entries that a branch replaced are lines of their own, in another colour.
    """
    last = max(len(scores) - 1, 1)
    points = [
        (one.superseded, Point(at / last, one.ems / 100, *_of_score(one))) for at, one in enumerate(scores)
    ]
    runs = [[point for _, point in run] for gone, run in groupby(points, lambda pair: pair[0]) if gone]
    title = f"EMS over {len(scores)} entries, {scores[-1].ems} at last" if scores else ""
    return curve(
        title, [*runs, [point for gone, point in points if not gone]], {0.0: "0", 0.5: "50", 1.0: "100"}
    )


def _of_score(one: Score) -> tuple[str, str]:
    """What a point is, and the class of its colour."""
    words = f"iteration {one.iteration}: EMS {one.ems}, {one.phase or 'no phase'}"
    if one.superseded:
        return one_line(f"{words}, replaced by a branch"), "replaced"
    return one_line(
        f"{words}, the session is here" if one.current else words
    ), "current" if one.current else "live"


def duration(seconds: float) -> str:
    """A duration, in the largest unit that gives a readable number."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 or not seconds else f"{seconds * 1000:.0f} ms"


def _ends(first: datetime, last: datetime) -> tuple[str, str]:
    """The words at both ends of an axis: the day once if it is one, and seconds only where minutes are equal."""
    one, other = first.astimezone(), last.astimezone()
    form = "%H:%M:%S" if other - one < timedelta(minutes=10) else "%H:%M"
    day = "" if one.date() == other.date() else f"{other:%Y-%m-%d} "
    return f"{one:%Y-%m-%d} {one:{form}}", f"{day}{other:{form}}"


def _clock(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}"
