"""What every layout can be asked: the read-side waist between what lies on disk and whoever wants to show it.

The four layouts write through four interfaces of their own, because their specifications fix them. Reading is one
protocol: a catalogue, a viewer or a command that knows only this module works over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from sessionary.model import Cursor, Entry, Problem, SessionRef, Summary


class Capability(Enum):
    """What a layout can do beyond being read; decides which tests of the shared suite apply to it."""

    APPENDS = "appends"
    """Its conversation grows at the end, so a reader can go on from a cursor."""

    NESTS = "nests"
    """A session may have a parent."""

    BACKS_UP = "backs up"
    """It keeps the previous version of what it replaces."""


class PartKind(Enum):
    """What a file of a session is to whoever copies it."""

    DOCUMENT = "document"
    """Replaced as a whole."""

    JOURNAL = "journal"
    """Grows at the end."""

    KEPT = "kept"
    """A backup, or bytes set aside by a repair or a conflict; never read as the session itself."""


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
    folder full of sessions cannot be looked into, `discover` and `summaries` MUST yield all the others before they
    raise.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]

    def discover(self) -> Iterator[SessionRef]:
        """Every session, in no order. MUST be cheap (names and stat only) and MUST leave strangers out.

        Raises:
            StorageFailed: a folder of the store cannot be looked into.
        """
        ...

    def at(self, folder: Path) -> SessionRef | None:
        """The session that lies in `folder`, wherever that is; None if the folder is no session of this kind."""
        ...

    def handle(self, ref: SessionRef) -> str:
        """The id from where on it tells sessions apart: the id itself, unless it begins as others do by design."""
        ...

    def summaries(self) -> Iterator[Summary]:
        """The summary of every session: as `summary` of each that `discover` finds, with fewer looks at the disk.

        Raises:
            StorageFailed: as `discover`.
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

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """The raw files, for whoever copies a session; no locks, no temp files."""
        ...

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        """Everything that is not as it should be. Reads only."""
        ...
