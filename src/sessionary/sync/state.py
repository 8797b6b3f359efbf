"""What this machine remembers of the other side: disposable, but for the few moments in which an intent is open.

For each session one small file says what both sides agreed on last: the head, its etag, and where the blocks of each
file end. It is written last of all, after the other side has said yes, so it is never ahead of the truth. Without it
nothing is lost: files and head are then compared byte by byte.

Before a head is swapped, the new agreement is laid beside it as an *intent*. If the answer never comes, the next run
asks for the head once: if it is ours, byte for byte, then it was carried out, and the intent becomes the agreement.
What is agreed goes into the next head as it stands here. So a hash stands behind it: a bit that the disk has changed
would be what all devices are told.
The files of the sessions are the only queue; nothing waits here to be sent.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import TypeVar

import msgspec
from msgspec import Struct

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes, stat_or_none, storage_failed
from sessionary.disk.lock import FileLock
from sessionary.disk.spooled_file import Spool
from sessionary.sync.blocks import Piece
from sessionary.sync.derived_files import Copies
from sessionary.sync.heads import Head

_T = TypeVar("_T")
_STATE, _INTENT, _MOVE, _SPENT = ".state.json", ".intent.json", ".move.json", ".spent.json"
_HOLE, _TAKEN = ".hole.json", ".taken.json"


class Held(Struct, frozen=True):
    """A version of a file that is not carried because it is damaged.

    Attributes:
        chain: of the version here, that of the agreed version with which it was compared; of the remote's, its own.
        why: what is wrong with it, in a sentence.
        stamp: inode, size and times of the file here when it was compared; zeros if it may have changed since.
        is_behind: it was damaged, and is the beginning of the agreed version by now: a pull brings the rest.
    """

    chain: str
    why: str
    stamp: tuple[int, int, int, int] = (0, 0, 0, 0)
    is_behind: bool = False


class SyncedState(Struct, frozen=True):
    """What both sides have of a session.

    Attributes:
        head: as it is on the other side.
        etag: its version there; empty while that is not known (in an intent).
        pieces: where the blocks of each file end.
        folder: where the session lies here.
        seen: of each file, inode, size and times when it was found to be what the head says.
        held: the files here whose version is not sent, by their names.
        refused: the files whose version on the remote is not taken, by their names.
        unsure: in an intent, the numbers of the blocks of each file that are to be looked after once the head is there.
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


class Moving(Struct, frozen=True):
    """A session that gives way to the other side's: what is here moves to `sibling`, `staged` takes its place.

    The sibling says that it came about `at`; empty for now.
    """

    folder: str
    sibling: str
    sibling_id: str
    session: str
    project: str | None
    staged: str
    at: str = ""


class Hole(Struct, frozen=True):
    """A block that was not there: under which head, and when this machine did not find it for the first time."""

    etag: str
    block: str
    at: datetime


class _Spent(Struct, frozen=True):
    """The highest number that a head ever had of a session about which nothing else is remembered."""

    above: int


class States:
    """The agreements and intents below one folder. One process at a time: see `held`.

    Args:
        folder: where they lie; it is made when it is needed.
        fs: the file system.

    Attributes:
        copies: what is carried where that is not simply a file.
    """

    def __init__(self, folder: str, fs: Fs = OS_FS) -> None:
        self.folder = folder
        self._fs = fs
        self._agreed = msgspec.json.Decoder(SyncedState)
        self._moving = msgspec.json.Decoder(Moving)
        self._spent = msgspec.json.Decoder(_Spent)
        self._hole = msgspec.json.Decoder(Hole)
        self._taken = msgspec.json.Decoder(dict[str, list[Piece]])
        self._above: dict[str, int] = {}
        self.copies = Copies(fs, os.path.join(folder, "copies"))

    def lock(self) -> FileLock:
        """The lock that one synchronisation of this machine holds.

        Raises:
            StorageFailed: the folder cannot be made.
        """
        try:
            make_dirs(self._fs, self.folder)
        except OSError as error:
            raise storage_failed(error, "make", self.folder) from error
        return FileLock(os.path.join(self.folder, ".lock"), self._fs)

    def device(self, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> str:
        """Who this machine is: made up once, and then always the same. Only while holding the lock.

        Durability: a name that was returned once survives a power cut.
        """
        path = os.path.join(self.folder, "device")
        known = read_bytes(self._fs, path)
        if not known:  # missing, or left empty by a power cut before the name was ever returned
            known = new_id().encode()
            atomic.replace(path, (known,), fs=self._fs)
        return known.decode()

    def known_device(self) -> str | None:
        """As `device`, without making a name up. Without the lock too."""
        return (read_bytes(self._fs, os.path.join(self.folder, "device")) or b"").decode() or None

    def spool(self) -> Spool:
        """Room for what is fetched and may be too much for the memory. Without the lock too: nobody else sees it.

        The folder is made only if it really is too much: who merely looks mostly leaves nothing behind.
        """
        return Spool(self.folder, make=True, fs=self._fs)

    def names(self) -> Iterator[str]:
        """The head names of all sessions about which something is remembered."""
        suffixes = (_STATE, _INTENT, _MOVE)
        found = {
            name[: -len(suffix)]
            for name in self._listed()
            for suffix in suffixes
            if name.endswith(suffix) and not name.startswith(".")
        }
        yield from sorted(found)

    def _listed(self) -> list[str]:
        try:
            return self._fs.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_failed(error, "look into", self.folder) from error

    def agreed(self, name: str) -> SyncedState | None:
        """What was agreed about a session; None if nothing is remembered, or nothing that can be read."""
        found = self._read(name + _STATE, self._agreed)
        if found is not None:
            self._note(name, max(found.head.count, found.above))
        return found

    def agree(self, name: str, agreed: SyncedState) -> None:
        """Remember an agreement, and forget what was intended. Replaces whole or not at all."""
        above = max(self.above(name), agreed.above)
        self._write(name + _STATE, msgspec.structs.replace(agreed, above=above))
        self._note(name, max(above, agreed.head.count))
        self.forget_intent(name)

    def above(self, name: str) -> int:
        """The highest number that a head of a session ever had here, though it was only intended.

        A swap that was refused, or whose answer was lost, may have been carried out, and another device have seen it,
        before the remote was put back to an earlier state. So no head of this device has a number twice.
        """
        if name not in self._above and self.agreed(name) is None:
            spent = self._read(name + _SPENT, self._spent)
            self._note(name, spent.above if spent is not None else 0)
        return self._above[name]

    def _note(self, name: str, above: int) -> None:
        self._above[name] = max(self._above.get(name, 0), above)

    def give_up(self, name: str, intended: SyncedState) -> None:
        """Forget what was intended: it did not come about. Its number stays taken."""
        above = max(self.above(name), intended.head.count)
        self._note(name, above)
        agreed = self.agreed(name)
        if agreed is None:
            self._write(name + _SPENT, _Spent(above))
            self.forget_intent(name)
        else:
            self.agree(name, agreed)

    def intent(self, name: str) -> SyncedState | None:
        """What was to be agreed when the last push was cut off; None if none was."""
        return self._read(name + _INTENT, self._agreed)

    def intend(self, name: str, agreed: SyncedState) -> None:
        """Lay down what is to be agreed. Durability: on return it survives a power cut."""
        self._write(name + _INTENT, agreed)

    def forget_intent(self, name: str) -> None:
        """What was intended has come about; see `give_up`."""
        self._remove(name + _INTENT)

    def hole(self, name: str, found: Hole) -> datetime:
        """When a block was not there for the first time under this head; now, if it is the first time.

        A clock that was set back begins anew.
        """
        known = self._read(name + _HOLE, self._hole)
        if (
            known is not None
            and (known.etag, known.block) == (found.etag, found.block)
            and known.at <= found.at
        ):
            return known.at
        self._write(name + _HOLE, found)
        return found.at

    def forget_hole(self, name: str) -> None:
        """All blocks are there."""
        if stat_or_none(self._fs, os.path.join(self.folder, name + _HOLE)) is not None:
            self._remove(name + _HOLE)

    def taken(self, name: str) -> dict[str, list[Piece]]:
        """How far journals of a session had come before they were taken back, by this device or as it has heard."""
        return self._read(name + _TAKEN, self._taken) or {}

    def note_taken(self, name: str, file: str, pieces: list[Piece]) -> None:
        """Remember how far a journal had come that was taken back just now."""
        self._write(name + _TAKEN, {file: pieces})

    def forget_taken(self, name: str) -> None:
        """What was taken back is back, or the journal has gone on."""
        if stat_or_none(self._fs, os.path.join(self.folder, name + _TAKEN)) is not None:
            self._remove(name + _TAKEN)

    def moving(self, name: str) -> Moving | None:
        """The session that was giving way when the last pull was cut off; None if none was."""
        return self._read(name + _MOVE, self._moving)

    def move(self, name: str, moving: Moving) -> None:
        """Lay down that a session is to give way. Durability: on return it survives a power cut."""
        self._write(name + _MOVE, moving)

    def forget_move(self, name: str) -> None:
        """The session has given way, or stays."""
        self._remove(name + _MOVE)

    def forget(self, name: str) -> None:
        """Forget what was agreed: files and head are then compared byte by byte."""
        self._write(name + _SPENT, _Spent(self.above(name)))
        self._remove(name + _STATE)

    def _read(self, file: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
        data, _, proof = (read_bytes(self._fs, os.path.join(self.folder, file)) or b"").partition(b"\n")
        if proof and proof != _proof(data):  # an earlier version wrote none
            return None
        try:
            return decoder.decode(data)
        except msgspec.MsgspecError:
            pass
        try:
            found: _T = msgspec.convert(json.loads(data), decoder.type)  # a path that is not UTF-8
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None  # derived data: what cannot be read is worked out anew
        return found

    def _write(self, file: str, value: Struct | dict[str, list[Piece]]) -> None:
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:  # a path that is not UTF-8
            data = json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
        atomic.replace(os.path.join(self.folder, file), (with_proof(data),), fs=self._fs)

    def _remove(self, file: str) -> None:
        atomic.forget_file(os.path.join(self.folder, file), fs=self._fs)


def with_proof(data: bytes) -> bytes:
    """What is stored of a line of JSON: the line, and behind it the hash by which damage is known."""
    return data + b"\n" + _proof(data)


def _proof(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


def sibling_id(name: str, device: str, chain: str) -> str:
    """The id of the session that what is here moves to: the same if a cut off move is begun again."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"sessionary sibling {name} {device} {chain}"))


def digest(tips: dict[str, str]) -> str:
    """One hash of the chains of several files."""
    return sha256("\n".join(f"{name} {chain}" for name, chain in sorted(tips.items())).encode()).hexdigest()
