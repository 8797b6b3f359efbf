"""The sessions of an archive as its heads and blocks hold them: their versions, their files, and whether all is intact.

An archive is a folder to which sessions are pushed and from which none is pulled. A file that does not continue what
was kept begins a new version: the head lists the ends of the earlier one, as after a rewind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.spooled_file import Spool
from sessionary.errors import NotFound, SessionaryError
from sessionary.sync.blocks import START, Piece
from sessionary.sync.download import fetch, fetch_version
from sessionary.sync.heads import Head, decode
from sessionary.sync.remote import HeadRecord, Remote
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState

VERSIONS = 1000
"""Earlier versions that are listed of a session."""

RULES = Rules(logs=True, exact=True, history=VERSIONS)
"""An archive keeps all bytes."""


class Version(NamedTuple):
    """A version of an archived session.

    Attributes:
        number: its number, from 1.
        at: when it was replaced, in ISO 8601; for the newest, when it was pushed last.
        files: the number of blocks and the chain of each file, by name.
    """

    number: int
    at: str
    files: dict[str, tuple[int, str]]


def versions(head: Head) -> list[Version]:
    """The versions of a session, the newest first.

    An earlier version has each file as it was before it was replaced; files that were not replaced since are as they
    are now.
    """
    files = {part.name: (part.n, part.chain) for part in head.parts}
    found = [Version(head.gen + 1, head.at, dict(files))]
    for past in reversed(head.history):
        files |= past.tips
        found.append(Version(past.gen + 1, past.at, dict(files)))
    return found


def version_of(head: Head, number: int) -> Version:
    """The version of a number. Raises NotFound if there is none of this number."""
    found = versions(head)
    for one in found:
        if one.number == number:
            return one
    raise NotFound(
        f"{head.session} has no version {number} in the archive",
        session=head.session,
        hint=f"its versions are {', '.join(str(one.number) for one in reversed(found))}",
    )


def contents(remote: Remote, head: Head, name: str, tip: tuple[int, str], spool: Spool) -> Iterator[bytes]:
    """The bytes of a file of a version. Each block is compared with its hash before its bytes are yielded.

    Raises:
        RemoteError: a block is missing, or cannot be read.
        Corrupt: a block is damaged.
    """
    n, chain = tip
    if n == 0 and chain == START:
        return
    yield from fetch_version(remote, head.space, name, n, chain, spool).rest(None)


def sizes(remote: Remote, head: Head, fs: Fs = OS_FS) -> dict[int, int]:
    """The bytes of each version, by its number: earlier ones are read for it. Raises as `contents`."""
    found = {head.gen + 1: sum(part.size for part in head.parts)}
    for version in versions(head)[1:]:
        found[version.number] = 0
        for name, tip in version.files.items():
            with Spool(fs=fs) as spool:
                found[version.number] += sum(map(len, contents(remote, head, name, tip, spool)))
    return found


def state_of(remote: Remote, record: HeadRecord, folder: str, fs: Fs = OS_FS) -> SyncedState:
    """The state of a session that a push continues from, if the stored one was lost. Its blocks are read for it.

    Raises:
        RemoteError, Corrupt, Unsupported: the head or a block cannot be read.
    """
    head, pieces = decode(record.name, record.data), dict[str, list[Piece]]()
    for part in head.parts:
        with Spool(fs=fs) as spool:
            pieces[part.name] = fetch(remote, head.space, part, (), 0, spool).pieces
    return SyncedState(head, record.etag, pieces, folder)


def faults(remote: Remote, head: Head, fs: Fs = OS_FS) -> tuple[int, list[str]]:
    """Read all versions of a session back, and compare each file with its hash.

    Returns:
        The number of bytes that were read, and what is wrong, in sentences.
    """
    tips = {(name, tip) for version in versions(head) for name, tip in version.files.items()}
    size, wrong = 0, []
    for name, tip in sorted(tips):
        try:
            with Spool(fs=fs) as spool:
                size += sum(map(len, contents(remote, head, name, tip, spool)))
        except SessionaryError as error:
            wrong.append(f"{name}: {error.message}")
    return size, wrong
