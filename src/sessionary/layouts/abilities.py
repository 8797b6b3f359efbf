"""The protocols of what some layouts can do besides being read; see `layouts.base` for what all can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from sessionary.model import Fact, Problem, SessionRef


class Retention(NamedTuple):
    """The retention of an agent: days after their last change until it deletes sessions, and the setting."""

    days: int
    source: str


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
class HasOpening(Protocol):
    """A layout whose first records say where the agent worked."""

    def opening(self, ref: SessionRef) -> Iterator[Fact]:
        """The facts in the first records of a session, before it is read. Reads a bounded part of it.

        Raises:
            NotFound: the session is gone.
            StorageFailed: it cannot be read.
        """
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


@runtime_checkable
class ChecksHome(Protocol):
    """A layout that checks what is stored beside its sessions and belongs to none of them."""

    def check_home(self) -> Iterator[Problem]:
        """Problems below the home that concern no single session. Reads only."""
        ...
