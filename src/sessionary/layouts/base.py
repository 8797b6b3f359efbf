"""What every layout can be asked: the read-side waist between what lies on disk and whoever wants to show it.

The four layouts write through four interfaces of their own, because their specifications fix them. Reading is one
protocol: a catalogue, a viewer or a command that knows only this module works over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from sessionary.errors import AmbiguousId, NotFound
from sessionary.layouts.fields import Merged
from sessionary.model import Cursor, Entry, Message, Problem, SessionRef, Severity, Summary

MTIME_GRACE = 2.0
"""Seconds for which a file must have been left alone before it can be told by its times whether it changed.

No clock of a file system that matters ticks more slowly; within one tick a second change leaves no trace.
"""


AHEAD = 300.0
"""Seconds by which the times of a file may be ahead of the clock: that of a server may have set them."""


def changed_at(now: float, *times: float) -> float:
    """When a file was changed, in seconds since 1970: the first of its times that can be believed; 0 if none can.

    A time far ahead of the clock was set by somebody, or by a clock that was wrong. It would count as a change of
    this moment for ever, and nobody could change the session from afar again.

    Args:
        now: seconds since 1970.
        times: what the file says, in the order in which they are to be believed.
    """
    return next((told for told in times if told <= now + AHEAD), 0.0)


LATEST = "latest"
"""The word for the session that changed last, wherever an id is asked for."""

_SHOWN = 20


def ids_named(word: str, ids: Iterable[str]) -> list[str]:
    """The ids that a person may mean by a word.

    That is the one of exactly this text; else those of this text whatever its case; else those that begin so; else
    those that begin so whatever the case.
    """
    folded, known = word.casefold(), list(ids)
    ways: tuple[Callable[[str], bool], ...] = (
        lambda one: one == word,
        lambda one: one.casefold() == folded,
        lambda one: one.startswith(word),
        lambda one: one.casefold().startswith(folded),
    )
    return next((found for way in ways if (found := [one for one in known if way(one)])), [])


def one_named(word: str, ids: Iterable[str], what: str) -> str | None:
    """The one id that a word means, as `ids_named`; None if there is none.

    Args:
        word: what a person typed.
        ids: those that there are.
        what: what they name, for the message: ``features``.

    Raises:
        AmbiguousId: there are several; `details["matches"]` names them.
    """
    found = sorted(ids_named(word, ids)) if word else []
    if len(found) > 1:
        raise AmbiguousId(
            f"{len(found)} {what} begin with {word}",
            session=word,
            details={"matches": found[:_SHOWN], "count": len(found)},
            hint="give more of the id" + (f"; the first {_SHOWN} are shown" if len(found) > _SHOWN else ""),
        )
    return found[0] if found else None


def is_ahead(time: datetime | None, now: float) -> bool:
    """True for a time after the clock: it says nothing about when something was done, and orders no list."""
    return time is not None and time.timestamp() > now + AHEAD


_OLDEST = datetime.min.replace(tzinfo=UTC)


def believed(time: datetime | None, now: datetime | None = None) -> datetime:
    """A time as lists are sorted by it: none, and one after the clock, count as the oldest."""
    now = now or datetime.now(UTC)
    return _OLDEST if time is None or is_ahead(time, now.timestamp()) else time


FUTURE_TIME = "future_time"
FUTURE_REMEDY = "none needed, once the clock that set it is right; until then another time orders the lists"


def ahead_message(what: str, time: datetime) -> str:
    """What to report of a time after the clock."""
    return f"{what} is of {time.isoformat(sep=' ', timespec='seconds')}, which is after the clock"


def future_note(what: str, time: datetime | None, path: str, now: datetime | None = None) -> list[Problem]:
    """The note about a time after the clock; nothing if it is not."""
    if time is None or not is_ahead(time, (now or datetime.now(UTC)).timestamp()):
        return []
    message = ahead_message(what, time)
    return [Problem(FUTURE_TIME, Severity.note, path, None, None, message, FUTURE_REMEDY)]


class Capability(Enum):
    """What a layout can do beyond being read. What it does not grant is denied."""

    APPENDS = "appends"
    """Its conversation grows at the end, so a reader can go on from a cursor."""

    NESTS = "nests"
    """A session may have a parent."""

    EVENTS = "events"
    """A session may have an event log."""

    CHANGES = "changes"
    """Its sessions can be repaired, rewound, forked, renamed and moved to the trash, and that can be undone."""


class PartKind(Enum):
    """What a file of a session is to whoever copies it."""

    DOCUMENT = "document"
    """Replaced as a whole."""

    JOURNAL = "journal"
    """Grows at the end."""

    LOG = "log"
    """A journal of what happened, much larger than the conversation; nobody resumes from it."""

    KEPT = "kept"
    """A backup, or bytes set aside by a repair or a conflict; never read as the session itself."""

    BUNDLE = "bundle"
    """Not a file: all those of a session that are made once and never changed, carried as the lines of one journal."""


class Policy(Enum):
    """What becomes of a file that two devices have changed, each without knowing of the other's change.

    The set is closed: whoever carries sessions has one rule for each of these, and none for any layout.
    """

    FORK = "fork"
    """Both are a conversation that goes on: the session parts in two, and both are kept."""

    KEEP_BOTH = "both"
    """One version stands, the other is kept beside it."""

    IMMUTABLE = "once"
    """The file is made once and never changed: what either side has is kept by both."""

    UNION = "union"
    """The lines of both are kept, in the order of their times."""

    LEDGER = "ledger"
    """As UNION, but of the lines that have one key the earliest stands. One device alone writes it."""

    FIELDS = "fields"
    """The layout brings both together, field by field; see `SyncLayout.merged`."""

    MANUAL = "person"
    """Nobody but a person may decide: nothing is changed, and it is told."""


class Rule(NamedTuple):
    """How one file of a session is brought together with another version of it.

    Attributes:
        policy: what is done.
        time: for `UNION` and `LEDGER`, the key of a line under which its time stands, in ISO 8601.
        key: for `LEDGER`, the key of a line whose value no other line may have.
    """

    policy: Policy
    time: str = ""
    key: str = ""


class Part(NamedTuple):
    """One raw file of a session.

    Attributes:
        name: its name relative to the session's folder.
        path: where it lies.
        kind: how it changes.
        size: its bytes.
    """

    name: str
    path: str
    kind: PartKind
    size: int


class Layout(Protocol):
    """The read side of one kind of session store.

    Whatever cannot be read becomes a `Problem` of its session, never an exception that hides the next one. Where a
    folder full of sessions cannot be looked into, `discover` MUST yield all the others before it raises.

    Attributes:
        name: the kind of its sessions.
        capabilities: what it can do beyond being read.
        home: the folder below which its sessions lie.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    side_files: ClassVar[tuple[str, ...]]
    """What we put beside the files that the format knows, as lines of a `.gitignore`."""
    home: Path
    """The folder below which its sessions lie, whether it is there or not."""

    def discover(self) -> Iterator[SessionRef]:
        """Every session, in no order. MUST be cheap (names and stat only) and MUST leave strangers out.

        Raises:
            StorageFailed: a folder of the store cannot be looked into.
        """
        ...

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        """The session that lies in `folder`, wherever that is; None if the folder is no session of this kind."""
        ...

    def short_key(self, ref: SessionRef) -> str:
        """The id from where on it tells sessions apart: the id itself, unless it begins as others do by design."""
        ...

    def fingerprint(self, ref: SessionRef) -> bytes:
        """The state of a session, opaque: while it is the same, so is the summary. Names and stats only.

        Empty where a change could go unseen; see `fingerprints`.
        """
        ...

    def summary(self, ref: SessionRef) -> Summary:
        """What a list shows. MUST read the conversation at most once, in bounded memory, and no event log.

        Raises:
            NotFound: the session is gone.
        """
        ...

    def entries(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Entry]:
        """The readable records of the conversation in file order.

        With `after` (the cursor of an earlier entry) only the records behind it, for the cost of those: `index`
        and `line` then count from there, byte offsets stay those of the file. A file that was replaced since is
        read from its start; its entries carry cursors with another inode.

        Raises:
            NotFound: the session is gone.
        """
        ...

    def read(self, ref: SessionRef) -> Iterator[Message | Problem]:
        """The messages of the conversation in the order of the store, in one pass and bounded memory.

        What cannot be read stands as a problem where it occurs, if the layout does not report it in `summary`.

        Raises:
            NotFound: the session is gone.
            StorageFailed: it cannot be read.
        """
        ...

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """The raw files, for whoever copies a session; no locks, no temp files."""
        ...

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        """Everything that is not as it should be. Reads only."""
        ...


def summaries(layout: Layout) -> Iterator[Summary]:
    """The summary of every session of a layout, read anew.

    Raises:
        StorageFailed: as `Layout.discover`.
    """
    for ref in layout.discover():
        try:
            summary = layout.summary(ref)
        except NotFound:
            continue  # removed since its name was read
        if summary.listed:
            yield summary


@runtime_checkable
class ChecksHome(Protocol):
    """A layout that can tell what lies beside its sessions and belongs to none of them."""

    def check_home(self) -> Iterator[Problem]:
        """What is not as it should be below the home and concerns no one session. Reads only."""
        ...


class SyncLayout(Layout, Protocol):
    """A layout that can be given sessions from elsewhere: what whoever carries them must know of it, and no more.

    The files themselves are written by the carrier, whole, through `disk`. `discover` of a recipient MAY yield more
    than that of the layout: what lies beside its sessions and is to be carried too.
    """

    def project(self) -> str | None:
        """The one project here to which all of its sessions belong; None if each lies in a project of its own."""
        ...

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        """Where a session of this id belongs, whether one is there or not; where it lies already, if it does.

        Raises:
            Invalid: no session of this layout can have that id, or lie in that project.
        """
        ...

    def path_of(self, ref: SessionRef, name: str) -> str:
        """Where a file of a session lies. A session that is one file lies at its own `folder`."""
        ...

    def single_file(self, session_id: str) -> str | None:
        """The one file that a session of this id consists of; None if it is a folder, with files of several names.

        MUST be the same on all devices. What a head says of other files of such a session is refused.
        """
        ...

    def part_kind(self, name: str) -> PartKind | None:
        """What a file of that name would be; None if no session of this layout has such a file.

        MUST be None for every name that leads out of the session's folder.
        """
        ...

    def rule(self, name: str) -> Rule:
        """How a file of that name is brought together. MUST be the same on all devices, and for all time."""
        ...

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        """A file of the policy `FIELDS`, with what both sides changed in it; None if that cannot be said.

        MUST be pure, and bring the result together with `theirs` to the same bytes again.

        Args:
            name: the file.
            base: what both sides had last; None if that is not known.
            mine: what is here.
            theirs: what is on the other side.
            ours_lead: whether the conversation went on here. It decides about fields that both have changed where the
                document itself does not say which change came last.
        """
        ...

    def faults(self, name: str, data: bytes) -> list[Problem]:
        """What is wrong with a file of that name that has these bytes, by the rules of `check`.

        The files beside it say nothing here, and a file of a newer version is not at fault. Of a journal, `data` may
        be some whole lines. MUST be pure; the `path` of each problem is the name of the file.

        Args:
            name: the file.
            data: its bytes.
        """
        ...

    def lock(self, ref: SessionRef) -> AbstractContextManager[None]:
        """Take a session that is there: no writer of this layout changes it until the end of the block.

        Raises:
            NotFound: it is not there.
            Locked: another process held it all the time.
        """
        ...

    def parent(self, ref: SessionRef) -> str | None:
        """The session that it says to come from, without a look at its conversation; None if it says none."""
        ...

    def backup_of(self, name: str) -> str | None:
        """The name under which the previous version of a file is kept when it is replaced; None for nowhere."""
        ...

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        """Make a session that was moved to `ref` say its new id, and that it was forked from `parent`.

        MUST be safe to be repeated. Hold the session. Asked only of layouts that have a file of the policy `FORK`.

        Durability: when this returns, it survives a power cut; until then the old label does.
        """
        ...

    def trash(self, ref: SessionRef, now: datetime) -> None:
        """Move a session to the trash of this layout. Hold the session.

        Durability: when this returns, the move survives a power cut.
        """
        ...
