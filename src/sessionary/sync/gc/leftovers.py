"""Count of unreachable blocks: from pushes that lost a race, and from interrupted pushes.

Only counts; `removal` removes them, from remotes that support it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sessionary.errors import RemoteError, SessionaryError
from sessionary.sync.gc.reach import Reach, all_chains, past_tips, tips
from sessionary.sync.heads import Head, decode
from sessionary.sync.remote import (
    HeadRecord,
    Remote,
    blocks_of,
    collectable,
    heads_of,
    is_unreadable,
    stats_of,
)

OnProgress = Callable[[int], None]


@dataclass(slots=True)
class Leftovers:
    """Result of a count.

    Attributes:
        heads: number of heads, tombstones included.
        tombstones: number of heads of trashed sessions.
        unread: number of unreadable heads; their blocks do not count as unreachable.
        spaces: number of spaces that were examined.
        blocks, size: all blocks and their bytes as stored.
        past_blocks, past_size: those that only an earlier generation reaches, left by a rewind.
        dead_blocks, dead_size: those that only tombstones reach.
        lost_blocks, lost_size: those that no head reaches.
        closed: number of spaces that were skipped because a block of them cannot be decrypted.
        holes: number of missing blocks that heads of current versions reach.
        holed: number of spaces with missing blocks.
    """

    heads: int = 0
    tombstones: int = 0
    unread: int = 0
    spaces: int = 0
    blocks: int = 0
    size: int = 0
    past_blocks: int = 0
    past_size: int = 0
    dead_blocks: int = 0
    dead_size: int = 0
    lost_blocks: int = 0
    lost_size: int = 0
    closed: int = 0
    holes: int = 0
    holed: int = 0

    def add(self, sizes: Mapping[str, int], past: set[str], dead: set[str], lost: set[str]) -> None:
        """Add the counts of a space."""
        self.spaces += 1
        self.blocks, self.size = _more(self.blocks, self.size, sizes, sizes)
        self.past_blocks, self.past_size = _more(self.past_blocks, self.past_size, past, sizes)
        self.dead_blocks, self.dead_size = _more(self.dead_blocks, self.dead_size, dead, sizes)
        self.lost_blocks, self.lost_size = _more(self.lost_blocks, self.lost_size, lost, sizes)


@dataclass(slots=True)
class Heads:
    """All heads of a remote.

    Attributes:
        records: as stored, by name.
        read: the readable ones, decoded, by name.
        unread: the names of the unreadable ones.
    """

    records: dict[str, HeadRecord] = field(default_factory=dict)
    read: dict[str, Head] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def spaces(self) -> dict[str, list[Head]]:
        """Return the heads of each space."""
        found: dict[str, list[Head]] = {}
        for head in self.read.values():
            found.setdefault(head.space, []).append(head)
        return found


def read_heads(remote: Remote) -> Heads:
    """List all heads from the store, and decode them.

    Raises:
        RemoteError: the remote failed.
    """
    found = Heads()
    for record in heads_of(remote, anew=True):
        found.records[record.name] = record
        found.unread.discard(record.name)
        try:
            found.read[record.name] = decode(record.name, record.data)
        except SessionaryError:
            found.read.pop(record.name, None)
            found.unread.add(record.name)
    return found


def count_leftovers(remote: Remote, on_progress: OnProgress = lambda done: None) -> Leftovers:
    """Count the blocks in every space that a head names.

    If a remote lists blocks without their bytes, little more than that is requested. From another one **all blocks
    are read**, so everything is downloaded. Spaces that no head names cannot be found: no verb lists them.

    Args:
        remote: the remote.
        on_progress: called with the number of finished spaces.

    Raises:
        RemoteError: the remote failed.
    """
    heads = read_heads(remote)
    found = begun(heads)
    spaces = heads.spaces()
    for space in sorted(spaces.keys() - heads.unread):  # an unreadable head may have started its own space
        sizes: dict[str, int] = {}
        try:
            add_space(found, _looked_through(remote, space, sizes), sizes, spaces[space])
        except RemoteError as error:
            if not is_unreadable(error):
                raise
            found.closed += 1
        on_progress(found.spaces)
    return found


def begun(heads: Heads) -> Leftovers:
    """Return a count of the heads only."""
    dead = sum(head.deleted for head in heads.read.values())
    return Leftovers(heads=len(heads.records), tombstones=dead, unread=len(heads.unread))


def add_space(found: Leftovers, reach: Reach, sizes: Mapping[str, int], heads: list[Head]) -> set[str]:
    """Count the blocks of a space; return those that no head reaches."""
    living = [head for head in heads if not head.deleted]
    live = reach.to(tips(living))
    holes = reach.holes(tips(living))
    found.holes += holes
    found.holed += bool(holes)
    past = reach.to(past_tips(living)) - live
    dead = reach.to([*tips(heads), *past_tips(heads)]) - live - past
    lost = sizes.keys() - live - past - dead
    found.add(sizes, past, dead, lost)
    return lost


def _looked_through(remote: Remote, space: str, sizes: dict[str, int]) -> Reach:
    store = collectable(remote)
    if store is None:
        before = all_chains(blocks_of(remote, space, "", "~"), sizes)
        return Reach(remote, space, sizes, before=before)
    sizes |= {stat.id: stat.size for stat in stats_of(store, space)}
    return Reach(remote, space, sizes)


def _more(blocks: int, size: int, names: Iterable[str], sizes: Mapping[str, int]) -> tuple[int, int]:
    added = [sizes[name] for name in names if name in sizes]
    return blocks + len(added), size + sum(added)
