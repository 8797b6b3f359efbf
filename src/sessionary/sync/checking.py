"""Check of the remote copies of local sessions by hash, and their repair from local files.

A push trusts acknowledged blocks and never reads them again. So a lost or damaged block or head on a remote is only
noticed by devices that pull, which lack the data. This check runs on a device that has the data.

A block is damaged if its bytes do not match its id, or if it cannot be decrypted. It was compressed against the bytes
before it: those come from the local file, as far as it is as agreed, and from the blocks behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from sessionary.disk.line_reader import LineFile
from sessionary.errors import Corrupt, NotFound, RemoteError, SessionaryError, Unsupported
from sessionary.model import SessionRef
from sessionary.sync.blocks import LOOK_BACK, START, Piece, block_id, id_range, pack, part_key, unfold, unpack
from sessionary.sync.context import Context, Step
from sessionary.sync.heads import SHORT, decode, place_of
from sessionary.sync.local_files import LocalPart, match, opened
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import HeadRecord, blocks_of, is_unreadable, read_block, stats_of
from sessionary.sync.report import Report
from sessionary.sync.shown import is_before, is_later
from sessionary.sync.state import SyncedState

MISSING, DAMAGED, EARLIER = "missing", "damaged", "earlier"

NEWER = "newer on the remote; run `sessionary sync pull` first"
UNKNOWN = "not compared with the remote yet; run `sessionary sync pull` first"
ELSEWHERE = "not on this machine: run `sessionary sync check --repair` on one that has it"


class Fault(NamedTuple):
    """A difference between a session on the remote and what was put.

    Attributes:
        file: the file; empty for the head.
        block: the id of the block; empty for the head.
        what: ``missing``, ``damaged``, or for a head ``earlier``: the remote shows an earlier state.
        healed: it was repaired.
        note: what is wrong, and the remedy if it was not repaired.
    """

    file: str
    block: str
    what: str
    healed: bool = False
    note: str = ""


class BlockFault(NamedTuple):
    """A block that a head refers to and that is not as it was put.

    Attributes:
        number: its number in the file, from 0.
        id: its id.
        why: the fault; empty if it is missing.
    """

    number: int
    id: str
    why: str = ""


class Compared(NamedTuple):
    """A file to verify.

    Attributes:
        space: the space of its blocks.
        name: its name.
        pieces: its agreed blocks.
        here: the local file; None without one.
        matched: number of pieces that the local file starts with.
    """

    space: str
    name: str
    pieces: Sequence[Piece]
    here: LocalPart | None
    matched: int

    def before(self, number: int) -> Piece:
        """Return the start of a block, and the chain before it."""
        return self.pieces[number - 1] if number else Piece(0, START)

    def id(self, number: int) -> str:
        """Return the id of a block."""
        return block_id(part_key(self.name), number, self.pieces[number].chain)


class Checked(NamedTuple):
    """Result for one session.

    Attributes:
        kind: the kind of session, as its layout is called.
        session_id: its id.
        project: the shared name of its project.
        blocks: number of blocks read.
        faults: the differences.
        note: why it was not compared; empty if it was.
        error: the error that prevented the comparison.
    """

    kind: str
    session_id: str
    project: str | None
    blocks: int = 0
    faults: tuple[Fault, ...] = ()
    note: str = ""
    error: SessionaryError | None = None

    @property
    def is_right(self) -> bool:
        """False if a fault was not repaired."""
        return all(fault.healed for fault in self.faults)

    @property
    def state(self) -> str:
        """``whole``, ``healed``, ``damaged``, or ``not_compared``."""
        if self.faults:
            return "healed" if self.is_right else "damaged"
        return "not_compared" if self.note else "whole"


class Checker(Step):
    """Compares the sessions of one layout with a remote.

    Args:
        recovered: returns the agreed state of a session, after an interrupted push was resolved.
        here: the local sessions, by head name.
        alone: takes the lock of synchronisation on this machine.
    """

    def __init__(
        self,
        context: Context,
        recovered: Callable[[str], SyncedState | None],
        here: Callable[[Report], dict[str, SessionRef]],
        alone: Callable[[], AbstractContextManager[Report]],
    ) -> None:
        super().__init__(context)
        self._recovered = recovered
        self._here = here
        self._alone = alone

    def check(self, heads: Mapping[str, HeadRecord], *, repair: bool = False) -> list[Checked]:
        """Read all blocks of all local sessions from the remote.

        Args:
            heads: all heads on the remote, by name.
            repair: repair missing or damaged data from local files.

        Durability: what counts as healed can be pulled from then on. Local files are never changed.

        Raises:
            Locked: another synchronisation of this machine is running.
        """
        with self._alone() as report:
            here = self._here(report)
            unnamed = [
                Checked(self._layout.name, one.session_id, one.project, note=one.note, error=one.error)
                for one in report.outcomes
                if isinstance(one.error, SessionaryError)
            ]
            found = [self._guarded(name, ref, heads.get(name), repair) for name, ref in sorted(here.items())]
            return [*found, *unnamed, *self._unreadable(heads, here)]

    def device(self) -> str:
        """Return the name of this machine in heads, shortened as in `Head.counts`."""
        with self._alone():
            return self._states.device()[:SHORT]

    def _guarded(self, name: str, ref: SessionRef, record: HeadRecord | None, repair: bool) -> Checked:
        try:
            project = self._projects.identity(ref)
        except NotFound:
            project = ref.project
        try:
            return self._session(name, ref, project, record, repair)
        except SessionaryError as error:
            return Checked(ref.kind, ref.session_id, project, note=error.message, error=error)

    def _unreadable(
        self, heads: Mapping[str, HeadRecord], here: Mapping[str, SessionRef]
    ) -> Iterator[Checked]:
        """Yield the unreadable heads of this layout whose sessions are not here."""
        for name, record in sorted(heads.items()):
            place = place_of(record.data)
            if name in here or place is None or place.kind != self._layout.name:
                continue
            try:
                decode(name, record.data)
            except Corrupt as error:
                fault = Fault("", "", DAMAGED, note=f"{error.message}; {ELSEWHERE}")
                yield Checked(place.kind, place.session, place.project, faults=(fault,))
            except SessionaryError:
                continue  # written by a newer version

    def _session(
        self, name: str, ref: SessionRef, project: str | None, record: HeadRecord | None, repair: bool
    ) -> Checked:
        agreed = self._recovered(name)
        record = record or self._remote.read_head(name)  # an unreadable head is listed separately
        if agreed is None or (agreed.head.deleted and record is not None):
            note = UNKNOWN if record is not None else "never synced; `sessionary sync push` sends it"
            return Checked(ref.kind, ref.session_id, project, note=note)
        fault = _fault_of_head(record, agreed)
        if fault is None and record is not None and record.etag != agreed.etag:
            return Checked(ref.kind, ref.session_id, project, note=NEWER)
        faults: list[Fault] = []
        if fault is not None:
            if repair:
                agreed, fault = self._heal_head(name, ref, agreed, record, fault)
            faults.append(fault)
        blocks, wrong = self._files(name, ref, agreed, repair and all(one.healed for one in faults))
        checked = Checked(ref.kind, ref.session_id, project, blocks, (*faults, *wrong))
        if left_out := self._surveyor.left_out(ref):
            error = self._links.error(ref, left_out)
            return checked._replace(note=error.message, error=error)
        return checked

    def _heal_head(
        self, name: str, ref: SessionRef, agreed: SyncedState, record: HeadRecord | None, fault: Fault
    ) -> tuple[SyncedState, Fault]:
        held = decode(name, record.data) if record is not None and fault.what == EARLIER else None
        etag = None if record is None else record.etag
        done = Pusher(self._context).put_back(name, ref, agreed, etag, held)
        if not done.again:
            return agreed, fault._replace(note="another device changed it meanwhile; run the check again")
        return done.agreed, fault._replace(healed=True)

    # -- blocks

    def _files(
        self, name: str, ref: SessionRef, agreed: SyncedState, repair: bool
    ) -> tuple[int, list[Fault]]:
        """Check all blocks of a session; return their number and the faults."""
        mine = self._surveyor.survey(ref)
        blocks, faults = 0, list[Fault]()
        for part in agreed.head.parts:
            pieces = agreed.pieces.get(part.name, [])
            if part.data is not None or not pieces:
                continue
            here = mine.get(part.name)
            matched = match(self._fs, here, pieces, None).pieces if here else 0
            one = Compared(agreed.head.space, part.name, pieces, here, matched)
            wrong = self._examine(one)
            blocks += len(pieces)
            for fault in wrong:
                healed = repair and self._put_right(one, fault)
                faults.append(_fault(one, fault)._replace(healed=healed))
        return blocks, faults

    # -- the bytes of a block

    def _examine(self, one: Compared) -> list[BlockFault]:
        """Read and verify all blocks of a file; return the missing and damaged ones.

        Raises:
            RemoteError: the remote failed.
            Unsupported: a newer version wrote a block.
        """
        faults: list[BlockFault] = []
        known: bytes | None = b""  # the bytes before the block, behind the local ones; None if unavailable
        with opened(self._fs, one.here) as file:
            for number, found in enumerate(self._found(one)):
                begin = one.before(number).end
                if number <= one.matched and file is not None:
                    known = file.read(max(0, begin - LOOK_BACK), min(begin, LOOK_BACK))
                fault, raw = _proved(one, number, found, known)
                known = (known + raw)[-LOOK_BACK:] if known is not None and raw is not None else None
                if fault is not None:
                    faults.append(fault)
        return faults

    def _found(self, one: Compared) -> Iterator[bytes | RemoteError | None]:
        """Yield the bytes of each block in order; None for a missing one, an error for one that cannot be decrypted."""
        at = 0
        key = part_key(one.name)
        try:
            for block in blocks_of(self._remote, one.space, *id_range(key, 0, len(one.pieces))):
                while at < len(one.pieces) and one.id(at) < block.id:
                    yield None
                    at += 1
                if at < len(one.pieces) and one.id(at) == block.id:
                    yield block.data
                    at += 1
        except RemoteError as error:
            if not is_unreadable(error):
                raise
        else:
            yield from [None] * (len(one.pieces) - at)
            return
        for number in range(at, len(one.pieces)):
            yield read_block(self._remote, one.space, one.id(number))

    def _put_right(self, one: Compared, fault: BlockFault) -> bool:
        """Put a block again from the local file, in place of a damaged one; False if that is impossible.

        Raises:
            RemoteError: the remote failed, or does not permit the removal.
        """
        if one.here is None or fault.number >= one.matched:
            return False
        begin, prev = one.before(fault.number)
        with LineFile(one.here.path, self._fs) as file:
            chain, data = pack(file, begin, one.pieces[fault.number].end, prev)
        if chain != one.pieces[fault.number].chain:
            return False  # changed since it was compared
        if not fault.why and self._remote.put_block(one.space, fault.id, data):
            return True
        for stat in stats_of(self._remote, one.space, fault.id, fault.id + "~"):
            if stat.id == fault.id:
                self._remote.delete_block(one.space, fault.id, stat.version)
        self._remote.put_block(one.space, fault.id, data)
        return isinstance(found := read_block(self._remote, one.space, fault.id), bytes) and _holds(
            found, data
        )


def _fault_of_head(record: HeadRecord | None, agreed: SyncedState) -> Fault | None:
    """Return the fault of a head; None if it is the agreed one or a successor.

    Raises:
        Unsupported: a newer version wrote it.
        RemoteError: another device continued from a state before the agreed one.
    """
    if record is None:
        return Fault("", "", MISSING, note="the head is missing")
    try:
        head = decode(record.name, record.data)
    except Corrupt as error:
        return Fault("", "", DAMAGED, note=error.message)
    if record.etag == agreed.etag:
        is_it = head == agreed.head
        return None if is_it else Fault("", "", DAMAGED, note="the head differs from the one that was put")
    if is_before(record, agreed):
        return Fault("", "", EARLIER, note="the head shows an earlier state than the remote had before")
    if not is_later(record, agreed):
        raise RemoteError(
            "the remote has lost the agreed state, and another device has continued from an earlier one",
            operation="check",
            hint="run `sessionary sync pull`: it keeps both",
        )
    return None


def _fault(one: Compared, fault: BlockFault) -> Fault:
    number = fault.number
    words = f"block {number + 1} of {len(one.pieces)} of {one.name}"
    if number >= one.matched:
        why = "has changed here" if one.here is not None else "is not here"
        words += f", which {why}: only another machine can put it again"
    what = DAMAGED if fault.why else MISSING
    return Fault(one.name, fault.id, what, note=f"{words}: {fault.why}" if fault.why else words)


def _proved(
    one: Compared, number: int, found: bytes | RemoteError | None, before: bytes | None
) -> tuple[BlockFault | None, bytes | None]:
    """Return the fault of a block, and its bytes if they are verified."""
    name = one.id(number)
    if found is None:
        return BlockFault(number, name), None
    if isinstance(found, RemoteError):
        return BlockFault(number, name, "it cannot be opened"), None
    begin, prev = one.before(number)
    end, chain = one.pieces[number]
    try:
        stored = unpack(name, found)._replace(chain=chain)
        if (stored.prev, stored.raw) != (prev, end - begin):
            return BlockFault(number, name, "its header belongs to another block"), None
        if before is None or (stored.back > len(before) and number > one.matched):
            return None, None  # its dictionary is damaged or missing
        return None, b"".join(unfold([stored], before))
    except Corrupt as error:
        return BlockFault(number, name, error.message), None


def _holds(found: bytes, data: bytes) -> bool:
    """True if a stored block has the same header as the one that was put, and a body of the same length."""
    try:
        return unpack("", found) == unpack("", data)
    except (Corrupt, Unsupported):
        return False
