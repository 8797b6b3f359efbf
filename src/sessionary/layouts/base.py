"""The read protocol: what every layout offers to the code that lists, shows and checks sessions.

The four layouts write through four interfaces of their own, because their specifications fix them. Reading is one
protocol: a catalogue, a viewer or a command that knows only this module works over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from sessionary.layouts.files import Location, Part
from sessionary.model import Cursor, Header, Item, Place, Problem, SessionRef

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

MayMatch = Callable[[bytes], bool]
"""A predicate over stored lines: True unless no record in them, decoded, can be of interest."""


class Capability(Enum):
    """An ability of a layout beyond being read. Those that it does not grant are denied.

    Attributes:
        APPENDS: its conversation grows at the end, so a reader can go on from a cursor.
        NESTS: a session may have a parent.
        EVENTS: a session may have an event log.
        RESUME: its agent can continue a session by a command; see `Resumes`.
        REPAIR: its sessions can be repaired.
        REWIND: its sessions can go back to an earlier turn, and that can be undone.
        FORK: a session can be made from the first turns of another one.
        RENAME: its sessions have a name of their own that can be set.
        TRASH: its sessions can be moved to the trash, and that can be undone.
    """

    APPENDS = "appends"
    NESTS = "nests"
    EVENTS = "events"
    RESUME = "resume"
    REPAIR = "repair"
    REWIND = "rewind"
    FORK = "fork"
    RENAME = "rename"
    TRASH = "trash"


class Layout(Protocol):
    """The read side of one kind of session store.

    Whatever cannot be read becomes a `Problem` of its session, never an exception that hides the next one. Where a
    folder full of sessions cannot be read, `discover` MUST yield all the others before it raises. A method of one
    session raises `NotFound` if that, or the record, is gone; `read` and `raw` raise `StorageFailed` if it cannot be
    read.

    Attributes:
        name: the kind of its sessions.
        capabilities: what it can do beyond being read.
        side_files: our own files beside those of the format, as lines of a `.gitignore`.
        home: the folder of its sessions, whether it exists or not.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    side_files: ClassVar[tuple[str, ...]]
    home: Path

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
        """
        ...

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """The messages of the conversation in the order of the store, in one pass and bounded memory.

        What cannot be read is yielded as a problem where it occurs, and what the store says of the session as a `Fact`.
        The last item is the cursor from which a later call continues; there is none where that is not possible.

        Args:
            after: yield only what follows; `Reset` comes first if what was read before changed, and then everything.
            may_match: asked about stored lines as bytes; where it returns False, no record in them is of interest.
                Their messages may then be left out: `Skipped` counts those before a message that is not, and no
                cursor follows.
        """
        ...

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        """The bytes of the stored record at the place of a message."""
        ...

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """The raw files of a session, without locks and temporary files."""
        ...

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        """Everything that is not as it should be. Reads only."""
        ...
