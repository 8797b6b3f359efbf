"""Format work sessions, breadcrumbs, totals and the states of consumers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sessionary.cli import output
from sessionary.cli.text import cells, fit, harmless, one_line, wrap
from sessionary.layouts.maestro.costs import count, tokens
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.times import parse_time
from sessionary.workspace import short_name

if TYPE_CHECKING:
    from sessionary.mailbox import Status

# Signs of one cell each: those of the original are two cells wide on some terminals.
_STATUSES = {
    "running": ("▶", "green"),
    "paused": ("·", "yellow"),
    "completed": ("✓", "green"),
    "interrupted": ("×", "red"),
    "failed": ("✗", "red"),
}
SHORT = 12
"""Characters of an id in a table; enough to identify the session."""
_LEAD = "   "
_LISTED, _TIMELINE = 50, 100
_LONGEST_ERROR = 1000


# -- sessions


def status(session: WorkSession) -> str:
    """Sign and status."""
    return f"{sign(session)} {one_line(session.status)}"


def sign(session: WorkSession) -> str:
    """The sign of the status."""
    return _STATUSES.get(session.status, ("?", ""))[0]


def colour(session: WorkSession) -> str:
    """The colour that repeats the sign."""
    return _STATUSES.get(session.status, ("", "dim"))[1]


def short_id(session: WorkSession) -> str:
    """The beginning of a random id; any other id in full, such as one given by hand."""
    return one_line(short_name(session.session_id, SHORT))


def entity(session: WorkSession) -> str:
    """The entities of the work, or ``-``."""
    about = session.related_entity
    text = next((about[key] for key in ("name", "id", "track_id", "phase_id") if about.get(key)), "-")
    return one_line(str(text))


def label(session: WorkSession) -> str:
    """The name of a session in a tree: its purpose, else its entities, else ``unnamed``."""
    about = session.related_entity
    return one_line(str(session.purpose or about.get("name") or about.get("id") or "unnamed"))


def context(session: WorkSession) -> str:
    """``kind:ref``, or nothing."""
    kind, ref = session.context.get("kind"), session.context.get("ref")
    return one_line(f"{kind}:{ref}") if kind and ref else ""


def lasted(session: WorkSession) -> str:
    """From creation to last change, in the format of the original: ``0:04:21.719567``."""
    created, modified = parse_time(session.created), parse_time(session.modified)
    return str(modified - created) if created and modified else ""


# -- lines and values


def dollars(cost: float | None, digits: int = 6) -> str:
    """An amount, or unknown."""
    return "unknown" if cost is None else f"${cost:.{digits}f}"


def span(seconds: float) -> str:
    """A duration: ``21 s``, ``4 min 5 s``, ``1 h 30 min``, ``3 d 2 h``."""
    whole = int(seconds)
    for unit, size, lower, step in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // step
            return f"{whole // size:,} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{whole} s"


def cut(line: str) -> str:
    """A line cut to the width, if that is known."""
    room = output.room()
    return line if room is None else fit(line, room)


def head(line: str) -> str:
    """The first line of a page."""
    return output.paint(cut(line), "bold")


def _preview(lead: str, text: str, most: int) -> str:
    """A label and the first `most` characters of a text, on one line that fits the width, if there is one."""
    shown = one_line(text[: 8 * most])
    return cut(lead + (shown[:most] + "…" if len(shown) > most else shown))


# -- breadcrumbs


def listed(number: int, crumb: Breadcrumb, owner: WorkSession | None) -> Iterator[str]:
    """An entry of a list, with all its counts; `owner` is its session, where several are listed."""
    yield cut(f"{number}. [{one_line(crumb.timestamp)}] - {one_line(crumb.model_used)}")
    yield from _owner_and_texts(crumb, owner, _LISTED)
    yield f"{_LEAD}Tools Called: {count(crumb.tools_called)}"
    yield f"{_LEAD}Files Modified: {count(crumb.files_modified)}"
    yield f"{_LEAD}Depth: {crumb.depth_level}"
    yield from _details(crumb)


def in_time(number: int, crumb: Breadcrumb, owner: WorkSession | None, later: str) -> Iterator[str]:
    """An entry of a timeline; `later` is the time since the previous one, at the right edge."""
    first = f"{number}. {_when_and_who(crumb)}"
    gap = output.width() - cells(first) - cells(later)
    yield f"{first}{' ' * gap}{later}" if later and gap > 1 else cut(first)
    yield from _owner_and_texts(crumb, owner, _TIMELINE)
    for name, items in (("Tools Called", crumb.tools_called), ("Files Modified", crumb.files_modified)):
        if items:
            yield f"{_LEAD}{name}: {count(items)}"
    yield from _details(crumb)


def whole(crumb: Breadcrumb) -> Iterator[str]:
    """A message, with its whole text."""
    yield cut(_when_and_who(crumb))
    yield cut(f"{_LEAD}Id: {one_line(crumb.breadcrumb_id)}")
    for name, text in (("Prompt", crumb.prompt), ("Response", crumb.response)):
        if text:
            for line in wrap(harmless(f"{name}: {text}"), output.width() - len(_LEAD)):
                yield _LEAD + line
    if crumb.error:
        yield _preview(f"{_LEAD}Error: ", str(crumb.error), _LONGEST_ERROR)


def _when_and_who(crumb: Breadcrumb) -> str:
    when, model = one_line(crumb.timestamp), one_line(crumb.model_used)
    return f"[{when}] Depth: {crumb.depth_level}, Model: {model}"


def _owner_and_texts(crumb: Breadcrumb, owner: WorkSession | None, most: int) -> Iterator[str]:
    if owner is not None:
        yield cut(f"{_LEAD}Session: {one_line(owner.session_id)}")
    yield _preview(f"{_LEAD}Prompt: ", crumb.prompt, most)
    yield _preview(f"{_LEAD}Response: ", crumb.response, most)


def _details(crumb: Breadcrumb) -> Iterator[str]:
    if crumb.kind not in ("", "note") or crumb.tags:
        tags = f" ({', '.join(map(str, crumb.tags))})" if crumb.tags else ""
        yield _preview(f"{_LEAD}Kind: ", f"{crumb.kind}{tags}", 200)
    yield f"{_LEAD}Tokens: Input: {tokens(crumb, 'input')}, Output: {tokens(crumb, 'output')}"
    if crumb.cost is not None:
        yield f"{_LEAD}Cost: {dollars(crumb.cost)}"
    if crumb.error:
        yield _preview(f"{_LEAD}Error: ", str(crumb.error), _LONGEST_ERROR)


# -- totals


def figures(sums: dict[str, Any], used: dict[str, str]) -> dict[str, str]:
    """The statistics as labels and values; `used` has those of the tokens."""
    return {
        "Total Breadcrumbs": f"{sums['total_breadcrumbs']:,}",
        **used,
        "Estimated Cost": known_cost(sums, dollars(sums["estimated_cost"], 2)),
        "Files Modified": f"{sums['files_modified']:,}",
        "Tools Called": f"{sums['tools_called']:,}",
        "Duration (seconds)": f"{int(sums['duration_seconds'])}",
        "Success Rate": f"{sums['success_rate']:.1f}%",
    }


def known_cost(sums: dict[str, Any], amount: str) -> str:
    """The cost, with what it leaves out."""
    missing, total = sums["breadcrumbs_without_cost"], sums["total_breadcrumbs"]
    if not missing:
        return amount
    if missing == total:
        return "unknown"
    return f"{amount} (without {missing:,} of {total:,}, whose cost is unknown)"


# -- consumers


def counts(one: Status) -> str:
    """The counts of a consumer in a line."""
    bad = [f"{len(one.bad):,} bad"] if one.bad else []
    parts = [
        f"{one.applied:,} applied",
        f"{one.pending:,} pending",
        f"{one.unwritten:,} incomplete",
        f"{len(one.failing):,} failed",
        f"{len(one.dead):,} dead",
        *bad,
    ]
    return f"{one.consumer}: {', '.join(parts)}"


def consumers(statuses: Iterable[Status]) -> Iterator[str]:
    """Each consumer, with its dead letters and the files that are not messages."""
    for one in statuses:
        yield cut(counts(one))
        if one.worker:
            yield cut(f"  running: process {one.worker.get('pid', '?')}")
        for dead in one.dead:
            yield cut(
                f"  dead: {one_line(dead.breadcrumb_id)} ({one_line(dead.file)}): {one_line(dead.error)}"
            )
        yield from (cut(f"  bad: {one_line(file)}") for file in one.bad)


def consumer_object(one: Status) -> dict[str, Any]:
    """A consumer with the field names of docs/cli-json.md."""
    return {
        **{name: getattr(one, name) for name in ("consumer", "applied", "pending", "unwritten", "failing")},
        "dead": [dead._asdict() for dead in one.dead],
        "bad": one.bad,
        "worker": one.worker or None,
        "problems": [problem.as_dict() for problem in one.problems],
    }
