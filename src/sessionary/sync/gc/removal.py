"""What no head reaches, removed from the other side: old blocks, old generations, what trashed sessions consisted of.

A block is put before the head that points to it, and no verb asks for both at once. So whoever finds a block that no
head reaches cannot know whether one will in the next moment. Three things together make sure that none is missed:

*   A block is removed only if it was put longer ago than any push takes to get from its blocks to its head, unless it
    rests; and a push that has rested, or was told that a block was there already, puts it again *after* the swap.
*   Its bytes are kept here first, and when all is removed the heads are looked at once more. Whatever one of them
    reaches by now is put back. So of a push and a removal that meet, at least one sees the other: if the swap came
    before that look, this side puts back; if it came after, that push puts again.
*   A removal that is cut off is known by a file. The next one, or the next push or pull of this machine, looks again in
    its place, from what was kept.

What was kept is proved before it is put back. What this disk has changed since is told and stays where it is: nothing
may be stored under a name that other bytes deserve, and no other block waits for it.

A head that cannot be read may reach anything: then nothing is removed, and what was just removed is put back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final

import msgspec

from sessionary.disk.lock import TIMEOUT
from sessionary.errors import Corrupt, Invalid, RemoteError, SessionaryError, StorageFailed
from sessionary.sync.gc.leftovers import Heads, Leftovers, Tell, add_space, begun, read_heads
from sessionary.sync.gc.reach import Reach, past_tips, tips
from sessionary.sync.gc.removed import Get, Removed, is_block
from sessionary.sync.heads import Head, Past, encode
from sessionary.sync.remote import BlockStat, Collectable, HeadRecord, blocks_of, is_unreadable, stats_of
from sessionary.sync.verify_blocks import REST

RETENTION: Final = timedelta(days=30)
LEAST: Final = timedelta(hours=1)
"""Far more than a push takes between a block and the head, without putting the block again."""

_NOBODY = "00000000-00000000-" + 32 * "0"


@dataclass(slots=True)
class Removal:
    """What was done.

    Attributes:
        found: what there was before, old generations and trashed sessions being forgotten already.
        removed, removed_size: the blocks that were removed, and their bytes.
        trimmed: of how many sessions old generations were forgotten.
        emptied: of how many trashed sessions only the name is left.
        unripe: of how many sessions that would be forgotten, were it not that this machine has seen it only lately.
        restored: how many blocks were put back because a head reaches them after all.
        young: how many blocks no head reaches that stay: too young, or called as none of ours is.
        undated: how many of which the store cannot say how old they are.
        missing: how many blocks a head reaches that are neither there nor kept here. Nothing beside them was removed.
        unkept: how many blocks stay since they cannot be kept here: one beside them cannot be opened.
        spoilt: of each block that was to be put back and is not, because this disk does not give what was kept of it:
            why, and where. All others were.
        can: False if the remote does not offer it.
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
    can: bool = True

    @property
    def is_whole(self) -> bool:
        """False if something kept it from being done."""
        hindered = (
            self.found.unread
            or self.found.closed
            or self.missing
            or self.undated
            or self.unkept
            or self.spoilt
        )
        return self.can and not hindered


class Remover:
    """Removes blocks from one remote, and puts back what should not have been.

    Args:
        remote: the other side.
        removed: where what was removed is kept.
        older: what is younger than this stays. For as long, and thirty days at least, what was removed is kept.
        now: the clock of this machine, for what heads say of their time.
        sleep: how to wait, in seconds.
        tell: told how many spaces were looked through, and then blocks removed.

    Raises:
        Invalid: `older` is so short that blocks of pushes under way would be removed.
    """

    def __init__(
        self,
        remote: Collectable,
        removed: Removed,
        *,
        older: timedelta = RETENTION,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        tell: Tell = lambda done: None,
    ) -> None:
        if older < LEAST:
            raise Invalid(
                f"what is younger than {LEAST} may belong to a push that is under way", operation="gc"
            )
        self._remote = remote
        self._removed = removed
        self._older = older
        self._now = now
        self._sleep = sleep
        self._tell = tell

    def remove(self) -> Removal:
        """Remove what is old and left over.

        Durability: each block is kept on this disk, flushed, before it is removed there. If this does not return, what
        a head has come to reach meanwhile is put back by the next call of this or of `finish`.

        Raises:
            Locked: another removal of this machine is under way.
            RemoteError: the other side failed, or does not let this user remove; what was removed until then was
                looked after.
            StorageFailed: what is to be removed cannot be kept.
        """
        done = Removal()
        with self._alone():
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

    def look(self) -> None:
        """Note which tombstones and earlier generations there are: they are forgotten some day if they still are then.

        Raises:
            Locked, RemoteError, StorageFailed: as `remove`.
        """
        with self._alone():
            self._seen(read_heads(self._remote), self._now())

    def finish(self) -> Removal:
        """Look again after a removal that was cut off, if one was; else ask nothing of anybody.

        Raises:
            Locked: a removal is under way, and looks itself.
            RemoteError, StorageFailed: as `remove`.
        """
        done = Removal()
        if self._removed.open_run() is not None:
            with self._alone(0.0):
                self._finish(done)
        return done

    @contextmanager
    def _alone(self, patience: float = TIMEOUT) -> Iterator[None]:
        lock = self._removed.lock()
        try:
            with lock.held(patience, note="gc"):
                yield
        finally:
            lock.close()

    def _finish(self, done: Removal) -> None:
        run = self._removed.open_run()
        if run is None:
            return
        self._rest()  # a call of it may be on its way still
        self._look_again(run or None, Heads(), done)
        self._removed.end()

    # -- heads

    def _forget_past(self, heads: Heads, done: Removal) -> Heads:
        """Forget generations and what trashed sessions consisted of, where that is long ago; the heads after it."""
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
        told = ((head, heads.records[name]) for name, head in heads.read.items())
        return self._removed.first_seen((mark for pair in told for mark in _marks(*pair)), now)

    def _refuse_early(self, space: str) -> None:
        """Find out whether this user may remove at all, before anything is changed for it."""
        self._remote.delete_block(space, _NOBODY, "0")

    # -- blocks

    def _look_through(self, heads: Heads, done: Removal) -> list[tuple[str, BlockStat]]:
        """Count all spaces; the blocks that may be removed, with their spaces."""
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
                done.found.closed += 1  # nobody knows where the chains of this space lead: all of it stays
                continue
            if reach.missing:
                done.missing += len(reach.missing)
            else:
                wanted += [(space, stats[name]) for name in sorted(lost) if self._is_old(stats[name], done)]
            self._tell(done.found.spaces)
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
        """Keep, remove, and look again. If it is cut off, or the other side fails, the run stays open."""
        if not wanted:
            return
        self._refuse_early(wanted[0][0])
        run = self._removed.begin(self._now())
        try:
            for count, (space, stat) in enumerate(wanted, done.found.spaces + 1):
                self._remove(run, space, stat, done)
                self._tell(count)
        except RemoteError:
            self._look_again(run, heads, done)
            raise
        if self._remote.settled_after:
            self._look_again(
                run, heads, done
            )  # mostly that is all there is to it, and nobody has to wait for it
            self._rest()
        self._look_again(run, heads, done)
        self._removed.end()

    def _rest(self) -> None:
        """Wait until no call is on its way any more, and no push relies on what it put while one was."""
        if self._remote.settled_after:
            self._sleep(self._remote.settled_after + REST)

    def _remove(self, run: str, space: str, stat: BlockStat, done: Removal) -> None:
        data = self._bytes(space, stat.id, done)
        if data is None:
            return
        self._removed.keep(run, space, stat.id, data)
        if self._remote.delete_block(space, stat.id, stat.version):
            done.removed += 1
            done.removed_size += stat.size

    def _bytes(self, space: str, name: str, done: Removal) -> bytes | None:
        """The bytes of a block; None if somebody else was faster, or if they cannot be had and so cannot be kept."""
        try:
            found = blocks_of(self._remote, space, name, name + "~")
            return next((block.data for block in found if block.id == name), None)
        except RemoteError as error:
            if not is_unreadable(error):
                raise
            done.unkept += 1
            return None

    # -- looking again

    def _look_again(self, run: str | None, known: Heads, done: Removal) -> None:
        """Put back what a head reaches by now of what a run has removed; all of it, if a head cannot be read."""
        heads = read_heads(self._remote)
        heads.read = {
            **known.read,
            **heads.read,
        }  # heads do not go away: one that is not listed is overlooked
        self._put_back(heads, self._removed.blocks(run), done, doubt=bool(heads.unread))

    def _put_back(self, heads: Heads, kept: dict[str, dict[str, Get]], done: Removal, *, doubt: bool) -> None:
        """Put back those of these blocks that a head reaches and that are not there; in doubt, all that are not."""
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
                        raise  # else it may lead to any of them
            for name in sorted(wanted):
                try:
                    data = blocks[name]()
                except (Corrupt, StorageFailed) as error:
                    _note(error, done)
                    continue
                if data is not None:
                    done.restored += self._remote.put_block(space, name, data)


def _note(error: SessionaryError, done: Removal) -> None:
    """Note what this disk does not give, once: it is looked several times whether it is needed."""
    if error.path not in {one.path for one in done.spoilt}:
        done.spoilt.append(error)


def without_past(head: Head, limit: datetime, is_seen: Callable[[Past | None], bool]) -> Head:
    """A head without generations from before this time, and without all parts if it was trashed before it.

    Args:
        head: the head.
        limit: the time. What a head says of its own is what the clock of some device said, which may be wrong by years;
            one that cannot be read is taken for a late one.
        is_seen: whether this machine saw that generation left, or for None that tombstone, before that time itself.

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
    """By what is known again what may be forgotten of a head: its tombstone, and the generations that were left."""
    if head.deleted:
        yield _mark(record, None)
    yield from (_mark(record, past) for past in head.history)


def _mark(record: HeadRecord, past: Past | None) -> str:
    told = record.etag if past is None else sha256(msgspec.json.encode(past, order="sorted")).hexdigest()[:20]
    return f"{record.name} {told}"


def _is_in(ripe: set[str], record: HeadRecord, past: Past | None) -> bool:
    return _mark(record, past) in ripe


def _is_before(text: str, limit: datetime) -> bool:
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return False
    return (told if told.tzinfo else told.replace(tzinfo=UTC)) < limit
