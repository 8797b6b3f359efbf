"""Sync state: what this machine knows about the remote. Disposable, except while an intent is open.

For each session a small file stores the last agreed state: the head, its etag, and the block ends of each file. It is
written last, after the remote has acknowledged, so it is never ahead of the remote. Without it nothing is lost: files
and head are then compared byte by byte.

Before a head is swapped, the new state is stored as an *intent*. If the answer is lost, the next run reads the head
once: if it equals ours byte for byte, the swap was carried out, and the intent becomes the agreed state. The agreed
state is copied into the next head. So the file has a hash behind it: a bit changed by the disk would otherwise be
sent to all devices. The files of the sessions are the only queue; nothing is queued here.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_folder, names_in, read_bytes, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.disk.spooled_file import Spool
from sessionary.model import SessionRef
from sessionary.sync.blocks import Piece
from sessionary.sync.heads import Head

_T = TypeVar("_T")


class Held(Struct, frozen=True):
    """A version of a file that is not synchronised because it is damaged.

    Attributes:
        chain: for a local version, the chain of the agreed version that it was compared with; for a remote version,
            its own.
        why: the damage, in a sentence.
        stamp: inode, size and times of the local file when it was compared; zeros if it may have changed since.
        is_behind: it was damaged, and is a prefix of the agreed version now: a pull restores the rest.
    """

    chain: str
    why: str
    stamp: tuple[int, int, int, int] = (0, 0, 0, 0)
    is_behind: bool = False


class SyncedState(Struct, frozen=True):
    """The agreed state of a session.

    Attributes:
        etag: its etag; empty if unknown (in an intent).
        pieces: the block ends of each file.
        seen: for each file, inode, size and times when it was found equal to the head.
        held: local files whose version is not sent, by name.
        refused: files whose remote version is not taken, by name.
        unsure: in an intent, the numbers of the blocks of each file to verify after the swap.
        above: the highest number of a head of this session that was agreed or intended here, see `States.above`.
    """

    head: Head
    etag: str
    pieces: dict[str, list[Piece]]
    folder: str
    seen: dict[str, tuple[int, int, int, int]] = {}
    unsure: dict[str, list[int]] = {}
    held: dict[str, Held] = {}
    refused: dict[str, Held] = {}
    above: int = 0

    def ref(self) -> SessionRef:
        """Return the local session."""
        return SessionRef(self.head.kind, self.head.session, self.folder, self.head.project)


class Moving(Struct, frozen=True):
    """A session that gives way to the remote version: the local one moves to `sibling`, `staged` takes its place.

    The sibling was created at `at`; empty for now.
    """

    folder: str
    sibling: str
    sibling_id: str
    session: str
    project: str | None
    staged: str
    at: str = ""


class Hole(Struct, frozen=True):
    """A block that was missing: under which head, and since when on this machine."""

    etag: str
    block: str
    at: datetime


class _Spent(Struct, frozen=True):
    """The highest number of any head of a session without other state."""

    above: int


class Records(Generic[_T]):
    """Values of one kind below a folder, for each session a file: a line of JSON, and a hash that detects damage."""

    def __init__(self, folder: str, suffix: str, kind: Any, fs: Fs) -> None:
        self.suffix = suffix
        self._folder = folder
        self._decoder: msgspec.json.Decoder[_T] = msgspec.json.Decoder(kind)
        self._fs = fs

    def get(self, name: str) -> _T | None:
        """Return the value of a session; None if it is missing or unreadable: derived data is computed again."""
        data, _, proof = (read_bytes(self._fs, self._path(name)) or b"").partition(b"\n")
        if proof and proof != _proof(data):  # earlier versions wrote no hash
            return None
        try:
            return self._decoder.decode(data)
        except msgspec.MsgspecError:
            pass
        try:
            found: _T = msgspec.convert(json.loads(data), self._decoder.type)  # a path that is not UTF-8
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found

    def put(self, name: str, value: _T) -> None:
        """Store a value atomically. Durability: on return it survives a power cut."""
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:  # a path that is not UTF-8
            data = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
        atomic.replace(self._path(name), (with_proof(data),), fs=self._fs)

    def forget(self, name: str) -> None:
        """Remove a value, if there is one."""
        if stat_or_none(self._fs, self._path(name)) is not None:
            atomic.forget_file(self._path(name), fs=self._fs)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name + self.suffix)


class States:
    """Agreed states and intents below one folder. One process at a time: see `lock`.

    Args:
        folder: the folder; it is made when needed.

    Attributes:
        intents: what was to be agreed when the last push was interrupted; see `intend` and `give_up`.
        moves: the sessions that give way, until they have done so.
        holes: the missing blocks; see `hole`.
        taken: the length of journals before they were rewound, by this device or by another one as far as known.
    """

    def __init__(self, folder: str, fs: Fs = OS_FS) -> None:
        self.folder = folder
        self._fs = fs
        self._agreed: Records[SyncedState] = Records(folder, ".state.json", SyncedState, fs)
        self.intents: Records[SyncedState] = Records(folder, ".intent.json", SyncedState, fs)
        self.moves: Records[Moving] = Records(folder, ".move.json", Moving, fs)
        self.taken: Records[dict[str, list[Piece]]] = Records(
            folder, ".taken.json", dict[str, list[Piece]], fs
        )
        self._spent: Records[_Spent] = Records(folder, ".spent.json", _Spent, fs)
        self.holes: Records[Hole] = Records(folder, ".hole.json", Hole, fs)
        self._above: dict[str, int] = {}

    def lock(self) -> FileLock:
        """Return the lock for one synchronisation of this machine."""
        make_folder(self._fs, self.folder)
        return FileLock(os.path.join(self.folder, ".lock"), self._fs)

    def device(self) -> str:
        """Return the name of this machine: generated once, then stable. Call it only while holding the lock.

        Durability: a returned name survives a power cut.
        """
        path = os.path.join(self.folder, "device")
        known = read_bytes(self._fs, path)
        if not known:  # missing, or left empty by a power cut before it was returned
            known = str(uuid.uuid4()).encode()
            atomic.replace(path, (known,), fs=self._fs)
        return known.decode()

    def known_device(self) -> str | None:
        """As `device`, without generating a name; None without one. The lock is not needed."""
        return (read_bytes(self._fs, os.path.join(self.folder, "device")) or b"").decode() or None

    def spool(self) -> Spool:
        """Return a spool for fetched data that may exceed the memory. The lock is not needed.

        The folder is made only if data is spilled, so that read-only commands usually leave nothing behind.
        """
        return Spool(self.folder, make=True, fs=self._fs)

    def names(self) -> Iterator[str]:
        """Yield the head names of all sessions with stored state."""
        suffixes = tuple(records.suffix for records in (self._agreed, self.intents, self.moves))
        yield from sorted(
            {
                name.removesuffix(suffix)
                for name in names_in(self._fs, self.folder) or ()
                for suffix in suffixes
                if name.endswith(suffix) and not name.startswith(".")
            }
        )

    def agreed(self, name: str) -> SyncedState | None:
        """Return the agreed state of a session; None if it is missing or unreadable."""
        found = self._agreed.get(name)
        if found is not None:
            self._note(name, max(found.head.count, found.above))
        return found

    def agree(self, name: str, agreed: SyncedState) -> None:
        """Store an agreed state atomically, and delete its intent."""
        above = max(self.above(name), agreed.above)
        self._agreed.put(name, msgspec.structs.replace(agreed, above=above))
        self._note(name, max(above, agreed.head.count))
        self.intents.forget(name)

    def above(self, name: str) -> int:
        """Return the highest number of any head of a session here, even if it was only intended.

        A swap that was refused, or whose answer was lost, may have been carried out and seen by another device before
        the remote was restored to an earlier state. So this device uses no number twice.
        """
        if name not in self._above and self.agreed(name) is None:
            spent = self._spent.get(name)
            self._note(name, spent.above if spent is not None else 0)
        return self._above[name]

    def _note(self, name: str, above: int) -> None:
        self._above[name] = max(self._above.get(name, 0), above)

    def intend(self, name: str, agreed: SyncedState) -> None:
        """Store what is to be agreed. Durability: on return it survives a power cut."""
        self.intents.put(name, agreed)

    def give_up(self, name: str, intended: SyncedState) -> None:
        """Forget what was intended: it did not come about. Its number stays taken."""
        above = max(self.above(name), intended.head.count)
        self._note(name, above)
        agreed = self.agreed(name)
        if agreed is None:
            self._spent.put(name, _Spent(above))
            self.intents.forget(name)
        else:
            self.agree(name, agreed)

    def hole(self, name: str, found: Hole) -> datetime:
        """Return when a block was missing for the first time under this head; now, if it is the first time.

        A clock that was set back begins anew.
        """
        known = self.holes.get(name)
        if (
            known is not None
            and msgspec.structs.replace(known, at=found.at) == found
            and known.at <= found.at
        ):
            return known.at
        self.holes.put(name, found)
        return found.at

    def forget(self, name: str) -> None:
        """Forget the agreed state: files and head are then compared byte by byte."""
        self._spent.put(name, _Spent(self.above(name)))
        self._agreed.forget(name)


def with_proof(data: bytes) -> bytes:
    """Return the stored form of a JSON line: the line, and a hash that detects damage."""
    return data + b"\n" + _proof(data)


def _proof(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


def sibling_id(name: str, device: str, chain: str) -> str:
    """Return the id of the session for a version that gives way: the same if the move is repeated."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"sessionary sibling {name} {device} {chain}"))


def digest(tips: dict[str, str]) -> str:
    """Return one hash for the chains of several files."""
    return sha256("\n".join(f"{name} {chain}" for name, chain in sorted(tips.items())).encode()).hexdigest()
