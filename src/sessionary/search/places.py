"""Where a search looks: the conversations of sessions, the one with the newest message first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from sessionary.codec import read_lines
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk.fs import OS_FS, READ, Fs, read_at, require_regular
from sessionary.layouts.amplifier.files import TRANSCRIPT
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.clock import changed_at
from sessionary.model import SessionRef
from sessionary.search.scan import Place

if TYPE_CHECKING:
    from sessionary.catalog import Catalog

_TAIL = 1 << 14
_OLDEST = float("-inf")


def places(
    layout_of: Callable[[SessionRef], Layout], catalog: Catalog, refs: Iterable[SessionRef], fs: Fs = OS_FS
) -> list[Place]:
    """The places to search.

    Args:
        layout_of: returns the layout of a session.
        catalog: where summaries of sessions are kept that have no file of their own to ask.
        refs: the sessions.
        fs: the file system.
    """
    found: list[Place] = []
    newest: dict[str, float | None] = {}
    now = datetime.now(UTC).timestamp()
    for kind, those in groupby(refs, attrgetter("kind")):
        some = list(those)
        layout = layout_of(some[0])
        if Capability.APPENDS in layout.capabilities:
            found += _in_files(fs, layout, some, _conversation(kind), newest, now)
        else:
            wanted = {ref.locator for ref in some}
            summaries = [one for one in catalog.summaries(layout) if one.ref.locator in wanted]
            found += [Place(one.ref, layout, None, _seconds(one.updated), one.size) for one in summaries]
            newest |= {one.ref.locator: _seconds(one.updated) for one in summaries}

    def key(place: Place) -> tuple[float, str]:
        time = newest[place.ref.locator]
        return (_OLDEST if time is None else time, place.ref.session_id)

    return sorted(found, key=key, reverse=True)


def _in_files(
    fs: Fs, layout: Layout, refs: list[SessionRef], name: str, newest: dict[str, float | None], now: float
) -> Iterator[Place]:
    """Sessions that keep their conversation in one file of this name; the time of the last change goes to `newest`.

    A file that was copied may be older than its messages, and one that was touched newer: it is passed over for its
    age only if both are old.
    """
    for ref in refs:
        path = f"{ref.locator}/{name}"
        try:
            found = fs.stat(path)
        except (OSError, ValueError):
            newest[ref.locator] = None
            yield Place(ref, layout, path, None, 0)  # the search itself reports what cannot be read
            continue
        said = _last_time(fs, path)
        changed = found.st_mtime if said is None else max(found.st_mtime, said.timestamp())
        newest[ref.locator] = changed_at(
            now, *([] if said is None else [said.timestamp()]), found.st_mtime, found.st_ctime
        )
        yield Place(ref, layout, path, changed, found.st_size)


def _last_time(fs: Fs, path: str) -> datetime | None:
    """The time of the last message that bears one, by the end of its file; None also if that cannot be read."""
    try:
        fd = fs.open(path, READ)
        try:
            size = require_regular(fs.fstat(fd)).st_size
            data = read_at(fs, fd, min(size, _TAIL), max(0, size - _TAIL))
        finally:
            fs.close(fd)
    except OSError:
        return None
    values = read_lines(data if size <= _TAIL else data[data.find(b"\n") + 1 :]).values
    return next(filter(None, (parse_time(timestamp_of(value)) for value in reversed(values))), None)


def _conversation(kind: str) -> str:
    """The file that holds the conversation, in sessions that keep it in one."""
    if kind != "feature":
        return TRANSCRIPT
    from sessionary.layouts.orchestrator.names import HISTORY  # here, as only projects with features need it

    return HISTORY


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
