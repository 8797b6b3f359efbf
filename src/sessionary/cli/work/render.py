"""Format statuses, costs, durations and names of work sessions."""

from __future__ import annotations

from sessionary.cli import output
from sessionary.cli.text import fit, one_line
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.times import parse_time
from sessionary.workspace import short_name

# Signs of one cell each: those of the original are two cells wide on some terminals.
_STATUSES = {
    "running": ("▶", "green"),
    "paused": ("·", "yellow"),
    "completed": ("✓", "green"),
    "interrupted": ("×", "red"),
    "failed": ("✗", "red"),
}
_ABOUT = ("name", "id", "track_id", "phase_id")
UNKNOWN = "unknown"
SHORT = 12
"""Characters of an id in a table; enough to identify the session."""


def status(session: WorkSession) -> str:
    """Sign and status."""
    return f"{sign(session)} {one_line(session.status)}"


def sign(session: WorkSession) -> str:
    """The sign alone."""
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
    text = next((about[key] for key in _ABOUT if about.get(key)), "-")
    return one_line(str(text))


def label(session: WorkSession) -> str:
    """The name of a session in a tree: its purpose, else its entities, else ``unnamed``."""
    about = session.related_entity
    text = session.purpose or about.get("name") or about.get("id") or "unnamed"
    return one_line(str(text))


def context(session: WorkSession) -> str:
    """``kind:ref``, or nothing."""
    kind, ref = session.context.get("kind"), session.context.get("ref")
    return one_line(f"{kind}:{ref}") if kind and ref else ""


def moment(text: str | None) -> str:
    """A time of a session: local, without the fraction of a second; unchanged if it cannot be parsed."""
    when = parse_time(text)
    if when is None:
        return one_line(text) if text else "-"
    return f"{when.astimezone():%Y-%m-%dT%H:%M:%S}"


def dollars(cost: float | None, digits: int = 6) -> str:
    """An amount, or unknown."""
    return UNKNOWN if cost is None else f"${cost:.{digits}f}"


def span(seconds: float) -> str:
    """A duration: ``21 s``, ``4 min 5 s``, ``1 h 30 min``, ``3 d 2 h``."""
    whole = int(seconds)
    for unit, size, lower, step in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // step
            return f"{whole // size:,} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{whole} s"


def preview(lead: str, text: str, most: int) -> str:
    """A label and the first `most` characters of a text, on one line that fits the width, if there is one."""
    shown = one_line(text[: 8 * most])
    if len(shown) > most:
        shown = shown[:most] + "…"
    return cut(lead + shown)


def cut(line: str) -> str:
    """A line cut to the width, if that is known."""
    room = output.room()
    return line if room is None else fit(line, room)


def head(line: str) -> str:
    """The first line of a page."""
    return output.paint(cut(line), "bold")


def count_of(items: object) -> int:
    """The number of tools or files in a breadcrumb."""
    return len(items) if isinstance(items, list) else 0


def error_of(crumb: Breadcrumb) -> str | None:
    """The error, on one line; None if there is none."""
    return one_line(str(crumb.error)) if crumb.error else None


def lasted(session: WorkSession) -> str:
    """From creation to last change, in the format of the original: ``0:04:21.719567``."""
    created, modified = parse_time(session.created), parse_time(session.modified)
    return str(modified - created) if created and modified else ""
