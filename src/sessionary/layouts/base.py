"""The read protocol: what every layout offers to the code that lists, shows and checks sessions.

The four layouts write through four interfaces of their own, because their specifications fix them. Reading is one
protocol: a catalogue, a viewer or a command that knows only this module works over all of them.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.model import Cursor, Fact, Header, Item, Place, Problem, Reset, SessionRef

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

MayMatch = Callable[[bytes], bool]
"""A predicate over stored lines: True unless no record in them, decoded, can be of interest."""

MTIME_GRACE = 2.0
"""Seconds for which a file must have been left alone before it can be known by its times whether it changed.

No clock of a file system that matters ticks more slowly; within one tick a second change leaves no trace.
"""


LINES = (".jsonl", ".jsonl.zst")
"""The endings of files of JSON Lines."""


class Capability(Enum):
    """An ability of a layout beyond being read. Those that it does not grant are denied."""

    APPENDS = "appends"
    """Its conversation grows at the end, so a reader can go on from a cursor."""

    NESTS = "nests"
    """A session may have a parent."""

    EVENTS = "events"
    """A session may have an event log."""

    RESUME = "resume"
    """Its agent can continue a session by a command; see `Resumes`."""

    REPAIR = "repair"
    """Its sessions can be repaired."""

    REWIND = "rewind"
    """Its sessions can go back to an earlier turn, and that can be undone."""

    FORK = "fork"
    """A session can be made from the first turns of another one."""

    RENAME = "rename"
    """Its sessions have a name of their own that can be set."""

    TRASH = "trash"
    """Its sessions can be moved to the trash, and that can be undone."""


def mended_copy(ref: SessionRef) -> str:
    """The remedy for a session that only its agent may write; copies are made of JSON Lines."""
    name = quote(ref.session_id)  # a foreign id may hold what a shell would run
    if not ref.locator.endswith(LINES):
        return f"`sessionary export {name} --format json` writes what can be read of it"
    return f"`sessionary repair {name} --out DIR` writes a repaired copy"


class PartKind(Enum):
    """The way in which a file of a session changes, for the code that copies it."""

    DOCUMENT = "document"
    """Replaced as a whole."""

    JOURNAL = "journal"
    """Grows at the end."""

    LOG = "log"
    """A journal of what happened, much larger than the conversation; no agent resumes from it."""

    KEPT = "kept"
    """A backup, or bytes quarantined by a repair or a conflict; never read as the session itself."""

    BUNDLE = "bundle"
    """Not a file: all those of a session that are made once and never changed, carried as the lines of one journal."""


class Part(NamedTuple):
    """One raw file of a session.

    Attributes:
        name: its name relative to the session's folder.
        path: its path.
        kind: how it changes.
        size: its bytes.
    """

    name: str
    path: str
    kind: PartKind
    size: int


class Location(NamedTuple):
    """A place of sessions: a path, and its state: ``found``, ``missing`` or ``unreadable``."""

    path: str
    state: str


def location_of(fs: Fs, path: str) -> Location:
    """The state of a path."""
    try:
        found = fs.stat(path)
        if stat.S_ISDIR(found.st_mode):
            fs.listdir(path)
        return Location(path, "found")
    except (FileNotFoundError, NotADirectoryError):
        return Location(path, "missing")
    except OSError:
        return Location(path, "unreadable")


class Retention(NamedTuple):
    """The retention of an agent: days after their last change until it deletes sessions, and the setting."""

    days: int
    source: str


class Layout(Protocol):
    """The read side of one kind of session store.

    Whatever cannot be read becomes a `Problem` of its session, never an exception that hides the next one. Where a
    folder full of sessions cannot be read, `discover` MUST yield all the others before it raises.

    Attributes:
        name: the kind of its sessions.
        capabilities: what it can do beyond being read.
        home: the folder of its sessions.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    side_files: ClassVar[tuple[str, ...]]
    """Our own files beside those of the format, as lines of a `.gitignore`."""
    home: Path
    """The folder of its sessions, whether it exists or not."""

    def locations(self) -> Iterator[Location]:
        """The places in which this layout looks."""
        ...

    def discover(self) -> Iterator[SessionRef]:
        """Every session, in no order. MUST be cheap (names and stat only) and MUST leave strangers out.

        Raises:
            StorageFailed: a folder of the store cannot be read.
        """
        ...

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        """The session in `folder`, wherever that is; None if the folder is not a session of this kind."""
        ...

    def short_key(self, ref: SessionRef) -> str:
        """The id from where on it differs between sessions: the id itself, unless it begins as others do by design."""
        ...

    def fingerprint(self, ref: SessionRef) -> bytes:
        """The state of a session, opaque: while it is the same, so is the summary. Names and stats only.

        Empty where a change could go unseen; see `fingerprints`.
        """
        ...

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        """Facts of a session outside of its messages, from documents, names and stats. Never reads the conversation.

        Args:
            fold: what its messages add up to, to compare documents with them, and for the time of the last change.

        Raises:
            NotFound: the session is gone.
        """
        ...

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """The messages of the conversation in the order of the store, in one pass and bounded memory.

        What cannot be read stands as a problem where it occurs, and what the store says of the session as a `Fact`.
        The last item is the cursor from which a later call continues; there is none where that is not possible.

        Args:
            after: yield only what follows; `Reset` comes first if what was read before changed, and then everything.
            may_match: asked about stored lines as bytes; where it returns False, no record in them is of interest.
                Their messages may then be left out: `Skipped` counts those before a message that is not, and no
                cursor follows.

        Raises:
            NotFound: the session is gone.
            StorageFailed: it cannot be read.
        """
        ...

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        """The bytes of the stored record at the place of a message.

        Raises:
            NotFound: it is gone.
            StorageFailed: it cannot be read.
        """
        ...

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """The raw files of a session, without locks and temporary files."""
        ...

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        """Everything that is not as it should be. Reads only."""
        ...


@runtime_checkable
class Resumes(Protocol):
    """A layout whose agent can continue a session by a command."""

    def resume_command(self, ref: SessionRef) -> list[str]:
        """The program and its arguments, without a shell. It is to be run in the folder that the agent worked in."""
        ...


@runtime_checkable
class SaysByPlace(Protocol):
    """A layout to which the place of a session says something of it."""

    def stated(self, ref: SessionRef) -> Iterator[Fact]:
        """What the place of a session, and the documents there, say of it: parent, folder. Reads no session."""
        ...


@runtime_checkable
class Retains(Protocol):
    """A layout of an agent that deletes old sessions."""

    def retention(self) -> Retention | None:
        """The retention of the agent; None if it keeps sessions. Reads its settings, never its credentials."""
        ...


@runtime_checkable
class HasTitles(Protocol):
    """A layout whose sessions may have a title beside the conversation."""

    def stated_title(self, ref: SessionRef) -> str | None:
        """That title; None without one. Raises nothing."""
        ...


@runtime_checkable
class KeepsMessagesInLines(Protocol):
    """A layout that stores each message in one line of a file: a message holds no word that its line lacks."""

    messages_in_lines: ClassVar[bool]


@runtime_checkable
class HasLeftovers(Protocol):
    """A layout that finds what is left of sessions that are gone."""

    def leftovers(self) -> Iterator[Problem]:
        """A note on each file or folder of a session whose own file is missing. Reads names only."""
        ...


@runtime_checkable
class LooksInFolders(Protocol):
    """A layout of an agent that keeps its sessions in the folders of projects, wherever these are."""

    def look_in(self, folders: Callable[[], Iterable[str]]) -> None:
        """Look in these folders too. Each `Layout.discover` calls the function anew."""
        ...


class Rewinding(NamedTuple):
    """The result of a rewind, or its preview.

    Attributes:
        to_turn: the last turn after it.
        turns: the turns before it.
        messages_kept, messages_dropped: the messages that stay, and those that do not. A format may keep all.
    """

    to_turn: int
    turns: int
    messages_kept: int
    messages_dropped: int


class Forked(NamedTuple):
    """The result of a fork, or its preview.

    Attributes:
        session_id: the new session.
        path: its path.
        turn: the last turn in it.
        turns: the turns of the session that it comes from.
        messages: the messages in it.
    """

    session_id: str
    path: str
    turn: int
    turns: int
    messages: int


class Trashed(NamedTuple):
    """A session in the trash.

    Attributes:
        ref: the session in the place that it was moved from.
        stored: the session in the trash; it can be read there.
        at: the time of the move, as text that sorts.
        size: its bytes.
    """

    ref: SessionRef
    stored: SessionRef
    at: str
    size: int


class Undoable(NamedTuple):
    """A change that can be undone.

    Attributes:
        ref: the session, in its place although it may lie in the trash.
        operation: ``rewind``, ``undo`` or ``trash``.
        at: the time, as text that sorts.
        size: the bytes that are kept beside the session.
        kept_in: the file with the replaced data.
        facts: details of the operation.
    """

    ref: SessionRef
    operation: str
    at: str
    size: int
    kept_in: str
    facts: dict[str, Any]


class MovedAside(NamedTuple):
    """The damaged lines that a repair moved, each with its number and its bytes, and the file that has them now.

    The file is None if there are none, or nothing was written.
    """

    lines: list[tuple[int, int]]
    path: str | None


@runtime_checkable
class Renames(Protocol):
    """A layout that sets the names of its sessions itself. It grants `Capability.RENAME`."""

    def set_name(self, ref: SessionRef, name: str | None) -> str | None:
        """Set or remove the name of a session; return the one that it had.

        Durability: when this returns, the name survives a power cut.

        Raises:
            NotFound: it is gone.
            Corrupt, SchemaError: what holds its name cannot be read; it is unchanged.
            Locked: another process holds the session.
            StorageFailed: it cannot be written.
        """
        ...


@runtime_checkable
class Reverts(Protocol):
    """A layout that rewinds its sessions, moves them to the trash, and undoes both itself.

    It grants `Capability.REWIND` and `Capability.TRASH`.

    Attributes:
        name: the kind of its sessions.
        turn_unit: what a rewind counts: ``turn``, or ``iteration`` if the turns are those that the header states.
    """

    name: ClassVar[str]
    turn_unit: ClassVar[str]

    def refused(self, ref: SessionRef) -> frozenset[str]:
        """The names of operations that its layout grants, and a session does not allow as it is."""
        ...

    def rewind(self, ref: SessionRef, turn: int, *, dry_run: bool) -> Rewinding:
        """Go back to the end of a turn, 0 meaning before the first. Nothing is erased.

        Durability: when this returns, it survives a power cut.

        Raises:
            Invalid: the turn does not exist.
            Unsupported: its framework has to do that.
            TransitionError: the session has ended.
            Locked: another process holds the session.
            StorageFailed: it cannot be written.
        """
        ...

    def move_to_trash(self, ref: SessionRef, now: datetime) -> str:
        """Move a session to the trash; return its place there.

        Durability: when this returns, the move survives a power cut.

        Raises:
            NotFound: it is gone.
            TransitionError: the session has not ended, and its format keeps such sessions.
            Locked, StorageFailed: as `rewind`.
        """
        ...

    def trashed(self, closed: list[StorageFailed]) -> Iterator[Trashed]:
        """The sessions in the trash, in no order. Errors of folders that cannot be read are added to `closed`."""
        ...

    def delete_trashed(self, stored: SessionRef) -> bool:
        """Delete a session in the trash permanently; False if it is not there any more.

        Durability: when this returns, it stays deleted after a power cut.

        Raises:
            StorageFailed: it could not be deleted; what is left of it is in the trash, or hidden there.
        """
        ...

    def undoable(self, ref: SessionRef | None, closed: list[StorageFailed]) -> Iterator[Undoable]:
        """The changes of a session, or of all, that can be undone, the trash included, in no order.

        Errors of folders that cannot be read are added to `closed`.
        """
        ...

    def undo(self, ref: SessionRef) -> int:
        """Undo the last change of a session that is not in the trash; return how many messages were added since.

        These leave the conversation; undoing the undo brings them back. Nothing is erased.

        Durability: when this returns, it survives a power cut.

        Raises:
            NotFound: nothing to undo.
            Locked, StorageFailed: as `rewind`.
        """
        ...

    def restore(self, ref: SessionRef) -> None:
        """Restore the session from the trash that was moved there last under this reference.

        Durability: when this returns, it survives a power cut.

        Raises:
            NotFound: it is not in the trash.
            AlreadyExists: a session of this id was created since.
            Locked, StorageFailed: as `rewind`.
        """
        ...


@runtime_checkable
class Changes(Reverts, Protocol):
    """A layout that changes its sessions itself. It also grants `Capability.REPAIR` and `Capability.FORK`."""

    def repair(self, ref: SessionRef, *, dry_run: bool) -> MovedAside:
        """Move damaged lines, which no reader uses, into a file beside the session.

        Durability: when this returns, it survives a power cut; until then the old file does.

        Raises:
            Locked, StorageFailed: as `rewind`.
        """
        ...

    def fork(self, ref: SessionRef, turn: int | None, session_id: str | None, *, dry_run: bool) -> Forked:
        """Create a session from the first turns of another one.

        Args:
            ref: the other one; it stays unchanged.
            turn: the last turn; None for all.
            session_id: the id of the new session; None for a new UUID.
            dry_run: write nothing.

        Durability: when this returns, it survives a power cut.

        Raises:
            AlreadyExists: the id exists.
            Invalid, Unsupported, Locked, StorageFailed: as `rewind`.
        """
        ...


class ChainHead(NamedTuple):
    """The end of a hash chain: the number of the last record, its SHA-256, and that of the first record."""

    number: int
    digest: str
    first: str


@runtime_checkable
class ChecksChain(Protocol):
    """A layout whose sessions may have a hash chain."""

    def check_chain(self, ref: SessionRef, kept: ChainHead | None) -> tuple[list[Problem], ChainHead | None]:
        """The problems of the chain of a session, and its head if it is complete. Reads only.

        Args:
            kept: the head that it had earlier; None if that is unknown.

        Raises:
            StorageFailed: it cannot be read.
        """
        ...


class Recency(Struct, frozen=True, gc=False):
    """The last change of a conversation, by its last bytes and its stat alone.

    Attributes:
        newest: the time of its newest message, else of its file, in seconds since 1970; None if neither is known.
        changed: nothing in it is newer; None if that is unknown.
        size: its bytes.
    """

    newest: float | None
    changed: float | None
    size: int


class KnownTime(Struct, frozen=True, gc=False):
    """When a session changed last, in seconds since 1970, as long as its fingerprint is the same."""

    fingerprint: bytes
    updated: float


@runtime_checkable
class HasRecency(Protocol):
    """A layout that knows when a session changed without reading its conversation."""

    def recency(self, ref: SessionRef, known: KnownTime | None = None) -> Recency:
        """When a session changed. Raises nothing: reading reports what cannot be read.

        Args:
            known: spares a layout to read the end of a session that has not changed since.
        """
        ...


def from_start(items: Iterator[Item], after: Cursor | None) -> Iterator[Item]:
    """The items of a session that can only be read from its start, as `Layout.read` yields them."""
    if after is not None:
        yield Reset()
    yield from items


@runtime_checkable
class ChecksHome(Protocol):
    """A layout that checks what is stored beside its sessions and belongs to none of them."""

    def check_home(self) -> Iterator[Problem]:
        """Problems below the home that concern no single session. Reads only."""
        ...
