"""Check of the remote copies of local sessions by hash, and their repair from local files.

A push trusts acknowledged blocks and never reads them again. So a lost or damaged block or head on a remote is only
noticed by devices that pull, which lack the data. This check runs on a device that has the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

from sessionary.errors import Corrupt, NotFound, RemoteError, SessionaryError
from sessionary.model import SessionRef
from sessionary.sync.context import Context, Step
from sessionary.sync.heads import SHORT, decode, place_of
from sessionary.sync.local_files import LocalPart, match
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import HeadRecord, collectable
from sessionary.sync.report import Report
from sessionary.sync.shown import is_before, is_later
from sessionary.sync.state import SyncedState
from sessionary.sync.verifying import BlockFault, Compared, examine, put_right

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


class Checker(Step):
    """Compares the sessions of one layout with a remote.

    Args:
        context: the sessions and the remote.
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
            StorageFailed: the sessions cannot be listed.
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
            wrong = examine(self._fs, self._remote, one)
            blocks += len(pieces)
            faults += self._healed(name, one, wrong) if repair else [_fault(one, fault) for fault in wrong]
        return blocks, faults

    def _healed(self, name: str, one: Compared, wrong: list[BlockFault]) -> list[Fault]:
        """Return the faults of a file, repaired where possible."""
        store = collectable(self._remote)
        found: list[Fault] = []
        stay: list[BlockFault] = []
        for fault in wrong:
            if put_right(self._fs, self._remote, store, one, fault):
                found.append(_fault(one, fault)._replace(healed=True))
            else:
                stay.append(fault)
        if stay and store is None and one.here is not None and one.matched == len(one.pieces):
            anew = self._cut_anew(name, one.here, stay[0].number)
            return found + [_fault(one, fault)._replace(healed=anew) for fault in stay]
        return found + [_fault(one, fault) for fault in stay]

    def _cut_anew(self, name: str, here: LocalPart, first: int) -> bool:
        agreed = self._states.agreed(name)
        return agreed is not None and Pusher(self._context).cut_anew(name, agreed, here, first)


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
