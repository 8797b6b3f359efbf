"""What lies on the other side and no head reaches: blocks of pushes that lost a race, and of pushes that were cut off.

**It is only counted, never removed.** A block that no head reaches may belong to a push that is under way: it is put
before the head that will point to it, and a push may rest for days, on a machine that is asleep. Whoever removes it
leaves a head behind that points to nothing, and with it a session that nobody can pull any more. To remove safely, a
remote would have to know the age of a block, list ids without their bytes, and refuse the head of a push that is older
than the retention time; of the five verbs none does. docs/formats/sync.md tells what such a verb would have to promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sessionary.errors import SessionaryError
from sessionary.sync.blocks import block_id, part_key, unpack
from sessionary.sync.heads import Head, decode
from sessionary.sync.remote import Remote, blocks_of, heads_of

_Tip = tuple[str, int, str]  # key of the part, number of blocks, chain


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


def count_leftovers(remote: Remote, tell: Callable[[int], None] = lambda done: None) -> Leftovers:
    """Look through every space that a head names. **Reads all blocks**: as much comes down as is stored.

    Spaces that no head names cannot be found: no verb lists them.

    Args:
        remote: the other side.
        tell: told how many spaces are done.

    Raises:
        RemoteError: the other side failed.
    """
    found = Leftovers()
    spaces: dict[str, list[Head]] = {}
    unsure = set()
    for record in heads_of(remote):
        found.heads += 1
        try:
            head = decode(record.name, record.data)
        except SessionaryError:
            found.unread += 1
            unsure.add(record.name)  # it may have begun its own space; one that it shares has other heads too
            continue
        found.tombstones += head.deleted
        spaces.setdefault(head.space, []).append(head)
    for space in sorted(spaces.keys() - unsure):
        _look_through(remote, space, spaces[space], found)
        found.spaces += 1
        tell(found.spaces)
    return found


def _look_through(remote: Remote, space: str, heads: list[Head], found: Leftovers) -> None:
    sizes: dict[str, int] = {}
    before: dict[str, str] = {}
    for block in blocks_of(remote, space, "", "~"):
        sizes[block.id] = len(block.data)
        try:
            before[block.id] = unpack(block.id, block.data).prev
        except SessionaryError:
            continue  # the chain ends here; whoever pulls is told
    living = [head for head in heads if not head.deleted]
    live = _reached(_tips(living), before)
    past = _reached(_past(living), before) - live
    dead = _reached([*_tips(heads), *_past(heads)], before) - live - past
    lost = sizes.keys() - live - past - dead
    found.blocks += len(sizes)
    found.size += sum(sizes.values())
    found.past_blocks, found.past_size = _more(found.past_blocks, found.past_size, past, sizes)
    found.dead_blocks, found.dead_size = _more(found.dead_blocks, found.dead_size, dead, sizes)
    found.lost_blocks, found.lost_size = _more(found.lost_blocks, found.lost_size, lost, sizes)


def _more(blocks: int, size: int, names: Iterable[str], sizes: dict[str, int]) -> tuple[int, int]:
    added = [sizes[name] for name in names if name in sizes]
    return blocks + len(added), size + sum(added)


def _tips(heads: Iterable[Head]) -> list[_Tip]:
    return [(part_key(part.name), part.n, part.chain) for head in heads for part in head.parts]


def _past(heads: Iterable[Head]) -> list[_Tip]:
    return [
        (part_key(name), n, chain)
        for head in heads
        for past in head.history
        for name, (n, chain) in past.tips.items()
    ]


def _reached(tips: Iterable[_Tip], before: dict[str, str]) -> set[str]:
    """The ids of all blocks that chains lead to, followed back from their ends."""
    reached: set[str] = set()
    for key, count, tip in tips:
        chain = tip
        for number in reversed(range(count)):
            name = block_id(key, number, chain)
            if name in reached or name not in before:
                break
            reached.add(name)
            chain = before[name]
    return reached
