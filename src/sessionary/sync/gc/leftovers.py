"""Count of unreachable blocks: from pushes that lost a race, and from interrupted pushes.

Only counts; `removal` removes them.

A chain is followed from its end: each block states in its header the chain before it. Reading all blocks for that
would download everything. Usually it is not necessary: the id of a block contains its file and number, and if there
is only one block of each number, the chain consists of these. Only the blocks of files that were rewound, forked, or
pushed by two devices at once are read.

In doubt a block counts as reachable. If a block is missing or unreadable, the rest of its chain is unknown, so all
blocks of its file with smaller numbers count as reachable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sessionary.errors import RemoteError, SessionaryError
from sessionary.sync.blocks import block_id, id_range, part_key, unpack
from sessionary.sync.heads import Head, decode
from sessionary.sync.remote import HeadRecord, Remote, blocks_of, heads_of, is_unreadable, stats_of

Tip = tuple[str, int, str]
"""The key of a file, its number of blocks, and its chain."""

_MOST = 99_999_999  # numbers have eight digits


class Reach:
    """The blocks of one space, and the subset that chains reach.

    Args:
        kept: local copies of blocks that may be missing there, as `removed.Get`.

    Attributes:
        there: as given.
        missing: the blocks that chains have reached so far and that do not exist.
    """

    def __init__(
        self,
        remote: Remote,
        space: str,
        there: Iterable[str],
        kept: Mapping[str, Callable[[], bytes | None]] | None = None,
    ) -> None:
        self.there = frozenset(there)
        self.missing: set[str] = set()
        self._remote = remote
        self._space = space
        self._kept = kept or {}
        self._read: dict[str, dict[str, str]] = {}
        self._numbers: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name in {*self.there, *self._kept}:
            key, _, rest = name.partition("-")
            number = rest.partition("-")[0]
            if number.isdecimal():
                self._numbers[key][int(number)].add(name)

    def to(self, tips: Iterable[Tip]) -> set[str]:
        """Return the ids of all blocks that these chains reach. Raises RemoteError if the remote failed."""
        by_key: dict[str, set[Tip]] = defaultdict(set)
        for tip in tips:
            if tip[1]:
                by_key[tip[0]].add(tip)
        reached: set[str] = set()
        for key, ends in sorted(by_key.items()):
            reached |= self._only(key, ends) or self._followed(key, ends)
        self.missing |= reached - self.there
        return reached

    def holes(self, ends: Iterable[Tip]) -> int:
        """Return how many blocks of these chains are missing, as far as known.

        More may be missing behind a missing block.
        """
        ends = list(ends)
        missing = {tuple(name.split("-")[:2]) for name in self.to(ends) - self.there}
        there = {tuple(name.split("-")[:2]) for name in self.there}
        wanted = {(key, f"{number:08}") for key, count, _ in ends for number in range(count)}
        return len(missing | (wanted - there))

    def _only(self, key: str, ends: set[Tip]) -> set[str] | None:
        """Return the blocks of a file's chains if there is one block of each number; else None."""
        most = max(count for _, count, _ in ends)
        numbers = self._numbers[key]
        if most > len(numbers) or any(len(numbers.get(number, ())) != 1 for number in range(most)):
            return None
        if any(block_id(key, count - 1, chain) not in numbers[count - 1] for _, count, chain in ends):
            return None
        return {name for number in range(most) for name in numbers[number]}

    def _followed(self, key: str, ends: set[Tip]) -> set[str]:
        before = self._chains(key)
        reached: set[str] = set()
        for _, count, tip in ends:
            chain = tip
            for number in reversed(range(count)):
                name = block_id(key, number, chain)
                if name in reached:
                    break
                reached.add(name)
                if name not in before:
                    reached |= self._up_to(key, number)
                    break
                chain = before[name]
        return reached

    def _up_to(self, key: str, number: int) -> set[str]:
        return {name for at, names in self._numbers[key].items() if at <= number for name in names}

    def _chains(self, key: str) -> dict[str, str]:
        """Return the chain before each readable block of a file."""
        if key not in self._read:
            self._read[key] = dict(_prevs(self._bytes(key)))
        return self._read[key]

    def _bytes(self, key: str) -> Iterator[tuple[str, bytes]]:
        yield from blocks_of(self._remote, self._space, *id_range(key, 0, _MOST))
        for name, get in self._kept.items():
            if name.startswith(key + "-") and name not in self.there and (data := _had(get)) is not None:
                yield name, data


def _had(get: Callable[[], bytes | None]) -> bytes | None:
    try:
        return get()
    except SessionaryError:
        return None  # the chain ends here; a failed restore reports it


def _prevs(blocks: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    for name, data in blocks:
        try:
            yield name, unpack(name, data).prev
        except SessionaryError:
            continue  # the chain ends here; a pull reports it


def tips(heads: Iterable[Head]) -> list[Tip]:
    """Return the ends of the files of these heads."""
    return [(part_key(part.name), part.n, part.chain) for head in heads for part in head.parts]


def past_tips(heads: Iterable[Head]) -> list[Tip]:
    """Return their ends before they were rewound."""
    return [
        (part_key(name), n, chain)
        for head in heads
        for past in head.history
        for name, (n, chain) in past.tips.items()
    ]


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
    """List all heads from the store, and decode them. Raises RemoteError if the remote failed."""
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

    Spaces that no head names cannot be found: no verb lists them.

    Args:
        on_progress: called with the number of finished spaces.
    """
    heads = read_heads(remote)
    found = begun(heads)
    spaces = heads.spaces()
    for space in sorted(spaces.keys() - heads.unread):  # an unreadable head may have started its own space
        sizes = {stat.id: stat.size for stat in stats_of(remote, space)}
        try:
            add_space(found, Reach(remote, space, sizes), sizes, spaces[space])
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


def _more(blocks: int, size: int, names: Iterable[str], sizes: Mapping[str, int]) -> tuple[int, int]:
    added = [sizes[name] for name in names if name in sizes]
    return blocks + len(added), size + sum(added)
