"""What a disk may hold after the power went, enumerated from a recording.

Killing processes proves little about power cuts: the page cache outlives the process, so every byte written
before the kill is there afterwards. Of the five planted bugs of `planted` a kill finds one. Here the disk
is a model instead: an operation is *durable* once the right sync came after it, and until then *pending*;
after a cut each pending operation may or may not have reached the disk. Three models say which combinations
are possible:

``prefix``
    Everything up to the cut, in program order: what a SIGKILL leaves. If the cut comes right after a write,
    that write may be torn.
``ordered``
    Directory changes reach the disk in program order (a metadata journal, as ext4 and xfs have), file data
    whenever it likes: the pending directory changes are cut off somewhere, and any subset of the pending
    data is there.
``relaxed``
    Any subset of pending directory changes with any subset of pending data: all that POSIX allows.

In the last two, the last pending write that is there may also be torn: only its first byte, half of it, all
but its last byte, or as many NULs (its size reached the disk and its bytes did not).

The rules of durability are the cautious reading of what file systems promise:

- fsync and fdatasync of a file make the earlier data of that file durable, and not its name.
- fsync of a directory makes earlier changes of its slots durable. A link or a create changes the directory
  of the new name. A rename from one directory to another is durable only after **both** were synced; most
  journals need only one.
- A rename is atomic: never half. It carries the file, so the new name is there although the create of the
  old name was lost.
- A failed sync makes nothing durable, and what was pending then **stays pending for ever**: kernels mark
  the pages clean and report success the next time, although nothing was stored. Only rewriting the bytes
  helps.

Each crash point has at most `limit` states: all combinations where up to five operations of a kind are
pending, and a seeded sample of them (always with nothing lost and everything lost) beyond that. States that
were seen before with the same acknowledgments are left out.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.recorder import ROOT, Ack, DataOp, NameOp, Op, Recording, SyncOp

Model = Literal["prefix", "ordered", "relaxed"]
MODELS: tuple[Model, ...] = ("prefix", "ordered", "relaxed")

EXHAUSTIVE = 5  # pending operations of one kind up to which every subset is tried
SAMPLES = 32  # subsets tried beyond that
LIMIT = 400  # states per crash point

Lost = frozenset[int]  # indices of operations that did not reach the disk


@dataclass(frozen=True, slots=True)
class Torn:
    """The operation `index` left only `kept` bytes, or NULs in place of all its bytes if `kept` is None."""

    index: int
    kept: int | None

    def tear(self, op: DataOp) -> DataOp:
        """The operation as it reached the disk."""
        data = op.data or b""
        return DataOp(
            op.text, op.node, op.offset, b"\0" * len(data) if self.kept is None else data[: self.kept]
        )


@dataclass(frozen=True, slots=True)
class Survivor:
    """One state that the disk may be in.

    Attributes:
        model: the model that allows it.
        k: the number of operations begun before the cut.
        acked: what the caller had got by then, in order.
        tree: the content of each file by its path below the root.
        directories: the folders by their path below the root, parents first.
        symlinks: the target of each symbolic link.
        nodes: the number of each file in `tree`; equal numbers are hard links to one file.
        lost: indices of the operations that are not there.
        torn: the write that is there only in part.
        key: equal for states that no reader can distinguish.
    """

    model: Model
    k: int
    acked: tuple[Any, ...]
    tree: dict[str, bytes]
    directories: tuple[str, ...]
    symlinks: dict[str, str]
    nodes: dict[str, int]
    lost: Lost
    torn: Torn | None
    key: int
    ops: tuple[Op, ...] = field(repr=False)

    def describe(self) -> str:
        """The operations before the cut with what became of each, and the files that are left."""
        lines = [f"power cut after {self.k} operations, model {self.model}:"]
        lines += [f"  {self._fate(index):>7} {op.text}" for index, op in enumerate(self.ops[: self.k])]
        lines += [f"  left: {path} = {_excerpt(content)}" for path, content in self.tree.items()]
        return "\n".join(lines)

    def _fate(self, index: int) -> str:
        if self.torn is not None and self.torn.index == index:
            return "NULs" if self.torn.kept is None else f"{self.torn.kept} B"
        return "LOST" if index in self.lost else ""


def _excerpt(content: bytes) -> str:
    return (
        repr(content) if len(content) <= 120 else f"{content[:60]!r}…{content[-40:]!r} ({len(content)} bytes)"
    )


def survivors(
    recording: Recording, model: Model = "relaxed", *, seed: int = 0, limit: int = LIMIT, since: Any = None
) -> Iterator[Survivor]:
    """The states that a power cut may leave, for a cut after each operation.

    Args:
        recording: what was done.
        model: ``prefix``, ``ordered`` or ``relaxed``; see the module.
        seed: of the sampling; the same seed gives the same states.
        limit: most states per crash point.
        since: only cuts after this value was marked.
    """
    if model not in MODELS:
        raise ValueError(f"no model {model!r}: take one of {', '.join(MODELS)}")
    rng = random.Random(seed)
    disk = _Disk(recording)
    seen: set[tuple[int, int]] = set()
    for k in range(len(recording.ops) + 1):
        if k:
            disk.advance(k - 1)
        if since is not None and since not in disk.acked:
            continue
        for survivor in _states_at(disk, k, model, rng, limit):
            known = (len(survivor.acked), survivor.key)
            if known not in seen:
                seen.add(known)
                yield survivor


def intact(recording: Recording) -> Survivor:
    """The state with every operation done and nothing lost."""
    disk = _Disk(recording)
    for index in range(len(recording.ops)):
        disk.advance(index)
    return disk.survivor("prefix", len(recording.ops), disk.tree(_NOTHING), _NOTHING, None, {})


def _states_at(disk: _Disk, k: int, model: Model, rng: random.Random, limit: int) -> Iterator[Survivor]:
    fates = _prefix_fates(disk, k) if model == "prefix" else _cut_fates(disk, model, rng)
    if len(fates) > limit:
        # The first is "nothing lost", the last "everything lost": the two that a sample must not miss.
        fates = [fates[0], *rng.sample(fates[1:-1], max(limit - 2, 0)), fates[-1]]
    contents: dict[Any, bytes] = {}
    for tree, lost, torn in fates:
        yield disk.survivor(model, k, tree, lost, torn, contents)


Fate = tuple["_Tree", Lost, Torn | None]
_NOTHING: Lost = frozenset()


def _prefix_fates(disk: _Disk, k: int) -> list[Fate]:
    tree = disk.tree(_NOTHING)
    last = disk.ops[k - 1] if k else None
    torn = _tears(k - 1, last)[:-1] if isinstance(last, DataOp) else []  # a kill leaves no NULs
    return [(tree, _NOTHING, None), *((tree, _NOTHING, how) for how in torn)]


def _cut_fates(disk: _Disk, model: Model, rng: random.Random) -> list[Fate]:
    fates: list[Fate] = []
    for lost_names in _lost_names(disk, model, rng):
        tree = disk.tree(lost_names)
        there = set(tree.files.values())
        pending = [index for index in disk.pending_data if disk.data_node(index) in there]
        for lost_data in _subsets(pending, rng):
            lost = lost_names | lost_data
            kept = [index for index in pending if index not in lost_data]
            fates.append((tree, lost, None))
            if kept:
                fates += [(tree, lost, torn) for torn in _tears(kept[-1], disk.ops[kept[-1]])]
    return fates


def _lost_names(disk: _Disk, model: Model, rng: random.Random) -> list[Lost]:
    if model == "relaxed":
        return _subsets(sorted(disk.pending_names), rng)
    # A journal is committed up to some point: whatever came before a durable change is durable as well.
    free = [index for index in sorted(disk.pending_names) if index > disk.last_durable_name]
    return [frozenset(free[kept:]) for kept in range(len(free), -1, -1)]


def _subsets(pending: Sequence[int], rng: random.Random) -> list[Lost]:
    """Subsets of what is pending, from nothing to everything."""
    if len(pending) <= EXHAUSTIVE:
        sizes = range(len(pending) + 1)
        return [frozenset(some) for size in sizes for some in itertools.combinations(pending, size)]
    drawn = {frozenset(index for index in pending if rng.random() < 0.5): None for _ in range(SAMPLES)}
    one_lost = [frozenset({index}) for index in rng.sample(list(pending), EXHAUSTIVE)]
    return [_NOTHING, *one_lost, *drawn, frozenset(pending)]


def _tears(index: int, op: Op) -> list[Torn]:
    if not isinstance(op, DataOp) or not op.data:
        return []
    size = len(op.data)
    cuts = sorted({1, size // 2, size - 1} - {0, size})
    return [Torn(index, kept) for kept in [*cuts, None]]


@dataclass(slots=True)
class _Tree:
    """The names that are there: paths of folders, and the file behind each path."""

    directories: tuple[str, ...]
    files: dict[str, int]
    key: int = 0

    def __post_init__(self) -> None:
        self.key = hash((self.directories, tuple(self.files.items())))


@dataclass(slots=True)
class _File:
    """One file: what is settled, and the operations from the first pending one on."""

    settled: bytes = b""
    unsettled: list[int] = field(default_factory=list)


class _Disk:
    """The model of the disk, moved through the recording one operation at a time."""

    def __init__(self, recording: Recording) -> None:
        self.ops = recording.ops
        self.kinds = recording.kinds
        self.acked: tuple[Any, ...] = ()
        self.pending_data: list[int] = []
        self.pending_names: dict[int, set[int]] = {}  # operation -> its directories that are not synced yet
        self.last_durable_name = -1
        self._spoilt: set[int] = set()
        self._names = dict(recording.names)
        self._unsettled_names: list[int] = []
        self._files = {node: _File(content) for node, content in recording.contents.items()}

    def data_node(self, index: int) -> int:
        """The file that a data operation changes."""
        op = self.ops[index]
        assert isinstance(op, DataOp)
        return op.node

    def advance(self, index: int) -> None:
        """The operation `index` has been done."""
        op = self.ops[index]
        match op:
            case Ack():
                self.acked += (op.value,)
            case DataOp():
                self.pending_data.append(index)
                self._files.setdefault(op.node, _File()).unsettled.append(index)
            case NameOp():
                self.pending_names[index] = op.directories
                self._unsettled_names.append(index)
            case SyncOp(failed=True):
                self._spoilt.update(i for i in self.pending_data if self.data_node(i) == op.node)
                self._spoilt.update(i for i, waiting in self.pending_names.items() if op.node in waiting)
            case SyncOp():
                self._sync(op.node)

    def _sync(self, node: int) -> None:
        if self.kinds[node] == "directory":
            self._sync_directory(node)
            return
        self.pending_data = [i for i in self.pending_data if self.data_node(i) != node or i in self._spoilt]
        if file := self._files.get(node):
            while file.unsettled and file.unsettled[0] not in self.pending_data:
                file.settled = self._data(file.unsettled.pop(0)).apply(file.settled)

    def _sync_directory(self, node: int) -> None:
        for index, waiting in list(self.pending_names.items()):
            if index in self._spoilt:
                continue
            waiting.discard(node)
            if not waiting:
                del self.pending_names[index]
                self.last_durable_name = max(self.last_durable_name, index)
        while self._unsettled_names and self._unsettled_names[0] not in self.pending_names:
            self._name(self._unsettled_names.pop(0)).apply(self._names)

    def _data(self, index: int) -> DataOp:
        op = self.ops[index]
        assert isinstance(op, DataOp)
        return op

    def _name(self, index: int) -> NameOp:
        op = self.ops[index]
        assert isinstance(op, NameOp)
        return op

    def tree(self, lost: Lost) -> _Tree:
        """The names that are there if the name operations `lost` are not."""
        names = dict(self._names)
        for index in self._unsettled_names:
            if index not in lost:
                self._name(index).apply(names)
        inside: dict[int, list[tuple[str, int]]] = {}
        for (directory, name), node in sorted(names.items()):
            inside.setdefault(directory, []).append((name, node))
        directories: list[str] = []
        files: dict[str, int] = {}
        for path, node in self._walk("", ROOT, inside):
            if self.kinds[node] == "directory":
                directories.append(path)
            else:
                files[path] = node
        return _Tree(tuple(directories), files)

    def _walk(
        self, path: str, node: int, inside: dict[int, list[tuple[str, int]]]
    ) -> Iterator[tuple[str, int]]:
        # Taken out of `inside`: where a lost rename leaves a folder in two places, one of them is empty,
        # and no loop.
        for name, child in inside.pop(node, ()):
            below = f"{path}/{name}" if path else name
            yield below, child
            if self.kinds[child] == "directory":
                yield from self._walk(below, child, inside)

    def _content(self, node: int, lost: Lost, torn: Torn | None, known: dict[Any, bytes]) -> bytes:
        """The bytes of a file. Equal wishes get the same object, whose hash Python computes only once."""
        file = self._files.get(node)
        if file is None or not file.unsettled:
            return file.settled if file else b""
        mine = torn if torn is not None and self.data_node(torn.index) == node else None
        wish = (node, tuple(index for index in file.unsettled if index in lost), mine)
        if wish not in known:
            content = file.settled
            for index in file.unsettled:
                if index not in lost:
                    op = self._data(index)
                    content = (mine.tear(op) if mine and mine.index == index else op).apply(content)
            known[wish] = content
        return known[wish]

    def survivor(
        self, model: Model, k: int, names: _Tree, lost: Lost, torn: Torn | None, known: dict[Any, bytes]
    ) -> Survivor:
        """The state with these names, without the operations `lost`, and with one write torn."""
        tree: dict[str, bytes] = {}
        symlinks: dict[str, str] = {}
        for path, node in names.files.items():
            content = self._content(node, lost, torn, known)
            if self.kinds[node] == "symlink":
                symlinks[path] = os.fsdecode(content)
            else:
                tree[path] = content
        key = hash((names.key, tuple(tree.values())))
        nodes = {path: names.files[path] for path in tree}
        return Survivor(
            model, k, self.acked, tree, names.directories, symlinks, nodes, lost, torn, key, self.ops
        )


def materialise(survivor: Survivor, folder: str | os.PathLike[str]) -> None:
    """Write a state into a new folder, hard links and symbolic links included. Modes and times are fresh."""
    root = os.fspath(folder)
    os.mkdir(root, 0o700)
    for path in survivor.directories:
        os.mkdir(f"{root}/{path}", 0o700)
    first: dict[int, str] = {}
    for path, content in survivor.tree.items():
        place = f"{root}/{path}"
        if (node := survivor.nodes[path]) in first:
            os.link(first[node], place)
            continue
        first[node] = place
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb", buffering=0) as file:
            file.write(content)
    for path, target in survivor.symlinks.items():
        os.symlink(target, f"{root}/{path}")
