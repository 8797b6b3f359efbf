"""What lies on the other side and no head reaches: blocks of pushes that lost a race, and of pushes that were cut off.

Here it is only counted. `removal` removes it, from remotes that offer that.
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

Tell = Callable[[int], None]


@dataclass(slots=True)
class Leftovers:
    """What was found.

    Attributes:
        heads: how many heads there are, tombstones included.
        tombstones: how many of them say that a session was trashed.
        unread: heads that could not be read; their blocks count as left over by nobody, since it is not known.
        spaces: how many spaces were looked through.
        blocks, size: all blocks and their bytes as stored.
        past_blocks, past_size: of these, what only an earlier generation reaches: what a rewind left behind.
        dead_blocks, dead_size: what only tombstones reach.
        lost_blocks, lost_size: what no head reaches.
        closed: how many spaces were passed over, since a block of them cannot be opened.
        holes: how many blocks heads reach that are not there, of the present versions of sessions.
        holed: in how many spaces.
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
        """Count one more space."""
        self.spaces += 1
        self.blocks, self.size = _more(self.blocks, self.size, sizes, sizes)
        self.past_blocks, self.past_size = _more(self.past_blocks, self.past_size, past, sizes)
        self.dead_blocks, self.dead_size = _more(self.dead_blocks, self.dead_size, dead, sizes)
        self.lost_blocks, self.lost_size = _more(self.lost_blocks, self.lost_size, lost, sizes)


@dataclass(slots=True)
class Heads:
    """All heads of a remote.

    Attributes:
        records: as they are stored, by name.
        read: those that can be read, by name.
        unread: the names of those that cannot.
    """

    records: dict[str, HeadRecord] = field(default_factory=dict)
    read: dict[str, Head] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def spaces(self) -> dict[str, list[Head]]:
        """The heads of each space."""
        found: dict[str, list[Head]] = {}
        for head in self.read.values():
            found.setdefault(head.space, []).append(head)
        return found


def read_heads(remote: Remote) -> Heads:
    """List all heads anew, and read them.

    Raises:
        RemoteError: the other side failed.
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


def count_leftovers(remote: Remote, tell: Tell = lambda done: None) -> Leftovers:
    """Look through every space that a head names.

    A remote that lists blocks without their bytes is asked for little more than that. Of another one **all blocks are
    read**: as much comes down as is stored. Spaces that no head names cannot be found: no verb lists them.

    Args:
        remote: the other side.
        tell: told how many spaces are done.

    Raises:
        RemoteError: the other side failed.
    """
    heads = read_heads(remote)
    found = begun(heads)
    spaces = heads.spaces()
    for space in sorted(spaces.keys() - heads.unread):  # it may have begun its own space
        sizes: dict[str, int] = {}
        try:
            add_space(found, _looked_through(remote, space, sizes), sizes, spaces[space])
        except RemoteError as error:
            if not is_unreadable(error):
                raise
            found.closed += 1
        tell(found.spaces)
    return found


def begun(heads: Heads) -> Leftovers:
    """A count of the heads alone."""
    dead = sum(head.deleted for head in heads.read.values())
    return Leftovers(heads=len(heads.records), tombstones=dead, unread=len(heads.unread))


def add_space(found: Leftovers, reach: Reach, sizes: Mapping[str, int], heads: list[Head]) -> set[str]:
    """Count the blocks of a space; returns those that no head reaches."""
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
