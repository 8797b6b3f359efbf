"""The protocols of layouts that change their sessions: go back, fork, repair, rename and trash."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from sessionary.errors import StorageFailed
from sessionary.layouts.clock import moment
from sessionary.model import SessionRef


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

    @property
    def when(self) -> datetime | None:
        """The time of the move; None if unknown."""
        return moment(self.at)


class Undoable(NamedTuple):
    """A change that can be undone.

    Attributes:
        ref: the session, in its place although it may lie in the trash.
        operation: ``rewind``, ``repair``, ``restore-backup``, ``restore-conflict``, ``undo``; ``trash``; or
            ``conflict``: a save replaced what another program had stored.
        at: the time, as text that sorts.
        size: the bytes that are kept beside the session.
        kept_in: the folder or file with the replaced data.
        facts: details of the operation.
        next: True if undoing this session undoes this change first.
    """

    ref: SessionRef
    operation: str
    at: str
    size: int
    kept_in: str
    facts: dict[str, Any]
    next: bool = False

    @property
    def when(self) -> datetime | None:
        """The time of the change; None if unknown."""
        return moment(self.at)


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
class Trashes(Protocol):
    """A layout that moves its sessions to the trash, and lists what can be undone. It grants `Capability.TRASH`.

    Attributes:
        name: the kind of its sessions.
    """

    name: ClassVar[str]

    def move_to_trash(self, ref: SessionRef, now: datetime) -> str:
        """Move a session to the trash; return its place there.

        Durability: when this returns, the move survives a power cut.

        Raises:
            NotFound: it is gone.
            TransitionError: the session has not ended, and its format keeps such sessions.
            Locked, StorageFailed: as every write.
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

    def restore(self, ref: SessionRef) -> None:
        """Restore the session from the trash that was moved there last under this reference.

        Durability: when this returns, it survives a power cut.

        Raises:
            NotFound: it is not in the trash.
            AlreadyExists: a session of this id was created since.
            Locked, StorageFailed: as every write.
        """
        ...


@runtime_checkable
class Reverts(Trashes, Protocol):
    """A layout that also rewinds its sessions, and undoes that, itself. It grants `Capability.REWIND`.

    Attributes:
        turn_unit: what a rewind counts: ``turn``, or ``iteration`` if the turns are those that the header states.
    """

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

    def undo(self, ref: SessionRef) -> int:
        """Undo the last change of a session that is not in the trash; return how many messages were added since.

        These leave the conversation; undoing the undo brings them back. Nothing is erased.

        Durability: when this returns, it survives a power cut.

        Raises:
            NotFound: nothing to undo.
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
