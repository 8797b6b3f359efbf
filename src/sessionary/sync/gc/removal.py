"""Removal of unreachable blocks, old generations, and the content of trashed sessions.

A block is put before the head that refers to it, and no verb does both at once. So an unreachable block may become
reachable the next moment. Three rules prevent its loss:

*   A block is removed only if it was put longer ago than any push takes from its blocks to its head, unless the push
    is suspended; and a push that was suspended, or that found a block in place, puts it again *after* the swap.
*   Its bytes are first saved locally, and after the removal the heads are read again. Blocks that a head reaches by
    then are put back. So of a push and a removal at the same time, at least one sees the other: if the swap came
    before the second reading, the removal puts back; if it came after, the push puts again.
*   An interrupted removal is recorded in a file. The next one, or the next push or pull of this machine, does the
    second reading from the saved blocks.

Saved blocks are verified before they are put back. One that the local disk has damaged is reported and not put: no
wrong bytes may be stored under its name. The other blocks are not affected.

An unreadable head may reach any block: then nothing is removed, and blocks that were just removed are put back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final

import msgspec

from sessionary.codec.times import parse_iso
from sessionary.errors import Corrupt, Invalid, RemoteError, SessionaryError, StorageFailed
from sessionary.sync.gc.leftovers import (
    Heads,
    Leftovers,
    OnProgress,
    Reach,
    add_space,
    begun,
    past_tips,
    read_heads,
    tips,
)
from sessionary.sync.gc.removed import Get, Removed, is_block
from sessionary.sync.heads import Head, Past, encode
from sessionary.sync.remote import BlockStat, HeadRecord, Remote, is_unreadable, read_block, stats_of
from sessionary.sync.upload_plan import REST

RETENTION: Final = timedelta(days=30)
LEAST: Final = timedelta(hours=1)
"""Far more than a push takes between a block and its head, without putting the block again."""

_NO_BLOCK = "00000000-00000000-" + 32 * "0"


@dataclass(slots=True)
class Removal:
    """Result of a removal.

    Attributes:
        found: the count before the removal, after old generations and trashed sessions were forgotten.
        removed, removed_size: the removed blocks, and their bytes.
        trimmed: number of sessions whose old generations were forgotten.
        emptied: number of trashed sessions of which only the name is kept.
        unripe: number of sessions that would be forgotten, but which this machine has seen for too short a time.
        restored: number of blocks that were put back because a head reaches them.
        young: number of unreachable blocks that stay: too young, or with a foreign name.
        undated: number of unreachable blocks whose age the store does not know.
        missing: number of reachable blocks that exist neither remotely nor locally. Nothing beside them was removed.
        unkept: number of blocks that stay because they cannot be saved locally: a block beside them cannot be
            decrypted.
        spoilt: for each block that could not be put back, because its local copy is damaged or unreadable: the error
            with its path. All others were put back.
    """

    found: Leftovers = field(default_factory=Leftovers)
    removed: int = 0
    removed_size: int = 0
    trimmed: int = 0
    emptied: int = 0
    unripe: int = 0
    restored: int = 0
    young: int = 0
    undated: int = 0
    missing: int = 0
    unkept: int = 0
    spoilt: list[SessionaryError] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """False if something prevented a part of the removal."""
        found = self.found
        return not (
            found.unread or found.closed or self.missing or self.undated or self.unkept or self.spoilt
        )


class Remover:
    """Removes blocks from one remote, and puts back those that have become reachable.

    Args:
        older: blocks younger than this stay. Removed blocks are kept for as long, and for thirty days at least.
        now: the clock of this machine, compared with times in heads.
        on_progress: called with the number of examined spaces, and then of removed blocks.

    Raises:
        Invalid: `older` is so short that blocks of running pushes would be removed.
    """

    def __init__(
        self,
        remote: Remote,
        removed: Removed,
        *,
        older: timedelta = RETENTION,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        on_progress: OnProgress = lambda done: None,
    ) -> None:
        if older < LEAST:
            raise Invalid(f"blocks younger than {LEAST} may belong to a running push", operation="gc")
        self._remote = remote
        self._removed = removed
        self._older = older
        self._now = now
        self._sleep = sleep
        self._on_progress = on_progress

    def remove(self) -> Removal:
        """Remove old unreachable blocks.

        Durability: each block is saved on the local disk, flushed, before it is removed. If this does not return,
        blocks that became reachable meanwhile are put back by the next call of this or of `finish`.

        Raises:
            Locked: another removal of this machine is running.
            RemoteError: the remote failed, or does not permit the removal; blocks removed until then were checked
                again.
        """
        done = Removal()
        with self._removed.lock().once(note="gc"):
            self._finish(done)
            heads = read_heads(self._remote)
            self._put_back(heads, self._removed.blocks(), done, doubt=False)
            if not heads.unread:
                heads = self._forget_past(heads, done)
            done.found = begun(heads)
            found = self._look_through(heads, done)
            if not heads.unread:
                self._remove_all(found, heads, done)
                self._removed.forget(self._now(), max(self._older, RETENTION))
        return done

    def finish(self) -> Removal:
        """Do the second reading of an interrupted removal; without one, make no request.

        Raises:
            Locked: a removal is running, and does it itself.
            RemoteError: as `remove`.
        """
        done = Removal()
        if self._removed.open_run() is not None:
            with self._removed.lock().once(0.0, note="gc"):
                self._finish(done)
        return done

    def _finish(self, done: Removal) -> None:
        run = self._removed.open_run()
        if run is None:
            return
        self._rest()  # one of its calls may still take effect
        self._look_again(run or None, Heads(), done)
        self._removed.end()

    # -- heads

    def _forget_past(self, heads: Heads, done: Removal) -> Heads:
        """Forget old generations and the content of old trashed sessions; return the heads after that."""
        now = self._now()
        limit = now - self._older
        seen = self._seen(heads, now)
        swapped = False
        for name, head in sorted(heads.read.items()):
            record = heads.records[name]
            ripe = {mark for mark in _marks(head, record) if seen[mark] <= limit}
            kept = without_past(head, limit, partial(_is_in, ripe, record))
            done.unripe += kept != without_past(head, limit, lambda past: True)
            if kept is head:
                continue
            if not swapped:
                self._refuse_early(head.space)
            swapped = True
            if self._remote.swap_head(name, encode(kept), heads.records[name].etag) is not None:
                done.emptied += head.deleted
                done.trimmed += not head.deleted
        return read_heads(self._remote) if swapped else heads

    def _seen(self, heads: Heads, now: datetime) -> dict[str, datetime]:
        pairs = ((head, heads.records[name]) for name, head in heads.read.items())
        return self._removed.first_seen((mark for pair in pairs for mark in _marks(*pair)), now)

    def _refuse_early(self, space: str) -> None:
        """Check whether this user may remove blocks, before anything is changed."""
        self._remote.delete_block(space, _NO_BLOCK, "0")

    # -- blocks

    def _look_through(self, heads: Heads, done: Removal) -> list[tuple[str, BlockStat]]:
        """Count all spaces; return the blocks that may be removed, with their spaces."""
        wanted: list[tuple[str, BlockStat]] = []
        spaces = heads.spaces()
        for space in sorted(spaces.keys() - heads.unread):
            stats = {stat.id: stat for stat in stats_of(self._remote, space)}
            reach = Reach(self._remote, space, stats)
            sizes = {stat.id: stat.size for stat in stats.values()}
            try:
                lost = add_space(done.found, reach, sizes, spaces[space])
            except RemoteError as error:
                if not is_unreadable(error):
                    raise
                done.found.closed += 1  # the chains of this space are unknown: all of it stays
                continue
            if reach.missing:
                done.missing += len(reach.missing)
            else:
                wanted += [(space, stats[name]) for name in sorted(lost) if self._is_old(stats[name], done)]
            self._on_progress(done.found.spaces)
        return wanted

    def _is_old(self, stat: BlockStat, done: Removal) -> bool:
        if stat.age is None:
            done.undated += 1
            return False
        if stat.age < self._older.total_seconds() or not is_block(stat.id):
            done.young += 1
            return False
        return True

    def _remove_all(self, wanted: list[tuple[str, BlockStat]], heads: Heads, done: Removal) -> None:
        """Save, remove, and check again. If this is interrupted, or the remote fails, the run stays open."""
        if not wanted:
            return
        self._refuse_early(wanted[0][0])
        run = self._removed.begin(self._now())
        try:
            for count, (space, stat) in enumerate(wanted, done.found.spaces + 1):
                self._remove(run, space, stat, done)
                self._on_progress(count)
        except RemoteError:
            self._look_again(run, heads, done)
            raise
        if self._remote.settled_after:
            self._look_again(run, heads, done)  # usually nothing is to be removed, and no waiting is needed
            self._rest()
        self._look_again(run, heads, done)
        self._removed.end()

    def _rest(self) -> None:
        """Wait until all calls have taken effect, and no push relies on blocks that it put before."""
        if self._remote.settled_after:
            self._sleep(self._remote.settled_after + REST)

    def _remove(self, run: str, space: str, stat: BlockStat, done: Removal) -> None:
        data = read_block(self._remote, space, stat.id)
        done.unkept += isinstance(data, RemoteError)  # it cannot be read, and so not saved
        if not isinstance(data, bytes):
            return
        self._removed.keep(run, space, stat.id, data)
        if self._remote.delete_block(space, stat.id, stat.version):
            done.removed += 1
            done.removed_size += stat.size

    # -- looking again

    def _look_again(self, run: str | None, known: Heads, done: Removal) -> None:
        """Put back the blocks of a run that a head reaches now; all of them, if a head is unreadable."""
        heads = read_heads(self._remote)
        heads.read = {**known.read, **heads.read}  # heads are never removed: one not listed was overlooked
        self._put_back(heads, self._removed.blocks(run), done, doubt=bool(heads.unread))

    def _put_back(self, heads: Heads, kept: dict[str, dict[str, Get]], done: Removal, *, doubt: bool) -> None:
        """Put back the missing blocks that a head reaches; with `doubt`, all that are missing."""
        spaces = heads.spaces()
        for space, blocks in sorted(kept.items()):
            there = {stat.id for stat in stats_of(self._remote, space)}
            reach = Reach(self._remote, space, there, blocks)
            here = spaces.get(space, [])
            wanted: Iterable[str] = blocks.keys() - there
            if not doubt:
                try:
                    reach.to([*tips(here), *past_tips(here)])
                    wanted = reach.missing & blocks.keys()
                except RemoteError as error:
                    if not is_unreadable(error):
                        raise  # otherwise it may reach any of them
            for name in sorted(wanted):
                try:
                    data = blocks[name]()
                except (Corrupt, StorageFailed) as error:
                    _note(error, done)
                    continue
                if data is not None:
                    done.restored += self._remote.put_block(space, name, data)


def _note(error: SessionaryError, done: Removal) -> None:
    """Record the error of a damaged local copy once: it is examined several times."""
    if error.path not in {one.path for one in done.spoilt}:
        done.spoilt.append(error)


def without_past(head: Head, limit: datetime, is_seen: Callable[[Past | None], bool]) -> Head:
    """Return a head without generations from before `limit`, and without all parts if it was trashed before it.

    Args:
        limit: the time. Times in heads are untrusted: the clock of some device may be wrong by years; an unreadable
            time counts as late.
        is_seen: returns whether this machine saw that generation replaced, or for None that tombstone, before the
            limit.

    Returns:
        The same object if there is nothing to forget.
    """
    parts, history = head.parts, head.history
    if head.deleted and _is_before(head.at, limit) and is_seen(None):
        parts, history = (), ()
    else:
        history = tuple(past for past in history if not (_is_before(past.at, limit) and is_seen(past)))
    if (parts, history) == (head.parts, head.history):
        return head
    return msgspec.structs.replace(head, count=head.count + 1, parts=parts, history=history)


def _marks(head: Head, record: HeadRecord) -> Iterator[str]:
    """Yield the marks of what may be forgotten of a head: its tombstone, and the replaced generations."""
    if head.deleted:
        yield _mark(record, None)
    yield from (_mark(record, past) for past in head.history)


def _mark(record: HeadRecord, past: Past | None) -> str:
    key = record.etag if past is None else sha256(msgspec.json.encode(past, order="sorted")).hexdigest()[:20]
    return f"{record.name} {key}"


def _is_in(ripe: set[str], record: HeadRecord, past: Past | None) -> bool:
    return _mark(record, past) in ripe


def _is_before(text: str, limit: datetime) -> bool:
    time = parse_iso(text)
    return time is not None and time < limit
