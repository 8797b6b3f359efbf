"""An `Fs` that does every call for real and writes down what it changed, in program order.

The record is what `survivors` needs to say what a power cut may leave behind. So it speaks of inodes and
directory slots, not of paths: a file keeps its number through renames and hard links, a folder that is
renamed takes its content along, and bytes written through a descriptor go to the file that was opened,
whatever its name is by now.

Four kinds of operation are enough. `DataOp` changes the bytes of one file. `NameOp` changes slots of
directories, and is atomic: a rename empties one slot and fills another. `SyncOp` is an fsync or fdatasync
of a file, or an fsync of a directory. `Ack` is not an operation: it marks the place where a caller
got a result.

Modes, owners and times are not recorded: no promise of ours rests on their order.

Everything below the root when recording begins is taken to be durable. From then on everything MUST go
through the recorder; a file that it has not seen made is an error, because a writer that goes around the
seam escapes the proof.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from sessionary.disk.fs import DIR_MODE, FILE_MODE, O_TMPFILE, OS_FS, Fs
from sessionary.testing.wrapper import WrappedFs

ROOT = 0
Kind = Literal["file", "directory", "symlink"]
Slot = tuple[int, str]  # (number of the directory, name in it)


@dataclass(frozen=True, slots=True)
class DataOp:
    """Bytes of one file: `data` stored at `offset`; without data, the file cut or stretched to `offset`."""

    text: str
    node: int
    offset: int
    data: bytes | None

    def resize(self, size: int) -> int:
        """The size of the file after this."""
        return self.offset if self.data is None else max(size, self.offset + len(self.data))

    def apply(self, content: bytes) -> bytes:
        """The content of the file after this."""
        if self.data is None:
            return content[: self.offset].ljust(self.offset, b"\0")
        if len(content) == self.offset:
            return content + self.data
        start = content[: self.offset].ljust(self.offset, b"\0")  # unwritten bytes before it read as NUL
        return start + self.data + content[self.offset + len(self.data) :]


@dataclass(frozen=True, slots=True)
class NameOp:
    """Directory slots: `emptied` is emptied and `filled` names `node` from now on; either may be missing."""

    text: str
    emptied: Slot | None = None
    filled: Slot | None = None
    node: int = -1

    @property
    def directories(self) -> set[int]:
        """The directories whose content this changes."""
        return {slot[0] for slot in (self.emptied, self.filled) if slot is not None}

    def apply(self, names: dict[Slot, int]) -> None:
        """Change `names` in place."""
        if self.emptied is not None:
            names.pop(self.emptied, None)
        if self.filled is not None:
            names[self.filled] = self.node


@dataclass(frozen=True, slots=True)
class SyncOp:
    """A flush of a file or directory. A failed one spoils what was pending (see `survivors`)."""

    text: str
    node: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """Here the caller got `value`."""

    text: str
    value: Any


Op = DataOp | NameOp | SyncOp | Ack


@dataclass(frozen=True, slots=True)
class Recording:
    """What happened below a root.

    Attributes:
        kinds: what each number is. names: the directory slots before the first operation. contents: the
            bytes of each file (for a link: its target) before the first operation; a file made later
            is not in here.
        ops: the operations in program order.
    """

    kinds: dict[int, Kind]
    names: dict[Slot, int]
    contents: dict[int, bytes]
    ops: tuple[Op, ...]

    def describe(self) -> str:
        """One numbered line for each operation."""
        return "\n".join(f"{index:4} {op.text}" for index, op in enumerate(self.ops))


@dataclass(slots=True)
class _Open:
    """An open descriptor: which file, and where the next write goes unless it appends."""

    node: int
    append: bool
    position: int = 0


@dataclass(slots=True)
class _Shadow:
    """What the recorder knows to exist right now."""

    kinds: dict[int, Kind] = field(default_factory=lambda: {ROOT: "directory"})
    names: dict[Slot, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def add(self, kind: Kind) -> int:
        """A new number for a new file or directory."""
        node = len(self.kinds)
        self.kinds[node] = kind
        return node

    def scan(self, folder: str, directory: int, known: dict[tuple[int, int], int]) -> None:
        """Take in the content of `folder`; `known` identifies hard links to the same file."""
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            info = entry.stat(follow_symlinks=False)
            identity = (info.st_dev, info.st_ino)
            if identity not in known:
                known[identity] = self._take_in(entry, info)
            self.names[directory, entry.name] = known[identity]
            if entry.is_dir(follow_symlinks=False):
                self.scan(entry.path, known[identity], known)

    def _take_in(self, entry: os.DirEntry[str], info: os.stat_result) -> int:
        if stat.S_ISDIR(info.st_mode):
            return self.add("directory")
        if stat.S_ISLNK(info.st_mode):
            node = self.add("symlink")
            self.contents[node] = os.fsencode(os.readlink(entry.path))
            return node
        node = self.add("file")
        with open(entry.path, "rb") as file:
            self.contents[node] = file.read()
        self.sizes[node] = len(self.contents[node])
        return node


class RecordingFs(WrappedFs):
    """Does every call through `inner` and records what it changed below `root`.

    Safe for threads: each call that changes something is done and recorded under one lock, so the record is
    an order in which it can have happened. Not for several processes.

    Attributes:
        root: the folder, links resolved. It MUST exist.
    """

    def __init__(self, root: str | os.PathLike[str], inner: Fs = OS_FS) -> None:
        super().__init__(inner)
        self.root = os.path.realpath(root)
        self._shadow = _Shadow()
        self._shadow.scan(self.root, ROOT, {})
        self._before = (dict(self._shadow.names), dict(self._shadow.contents))
        self._ops: list[Op] = []
        self._files: dict[int, _Open] = {}
        self._guard = threading.RLock()

    @property
    def recording(self) -> Recording:
        """What happened so far."""
        with self._guard:
            names, contents = self._before
            return Recording(dict(self._shadow.kinds), dict(names), dict(contents), tuple(self._ops))

    @property
    def acked(self) -> tuple[Any, ...]:
        """The values marked so far."""
        return tuple(op.value for op in self._ops if isinstance(op, Ack))

    def mark(self, value: Any) -> None:
        """Record that the caller got `value` here: what it promises must hold in every later state."""
        with self._guard:
            self._ops.append(Ack(f"-- acknowledged: {value!r}", value))

    # Descriptors

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        with self._guard:
            slot = self._slot(path, follow=not flags & getattr(os, "O_NOFOLLOW", 0))
            if slot is not None and not flags & os.O_EXCL and os.path.lexists(path):
                self._node(slot)  # raises if we have not seen it made
            fd = self.inner.open(path, flags, mode)
            if slot is None and os.path.realpath(path) != self.root:
                return fd
            self._files[fd] = _Open(self._opened(slot, flags), append=bool(flags & os.O_APPEND))
            return fd

    def _opened(self, slot: Slot | None, flags: int) -> int:
        if O_TMPFILE and flags & O_TMPFILE == O_TMPFILE:
            return self._shadow.add("file")  # in that folder, and so far without a name
        if slot is None:
            return ROOT
        if slot not in self._shadow.names and flags & os.O_CREAT:
            node = self._shadow.add("file")
            self._change(NameOp(f"create {self._path(slot)}", filled=slot, node=node))
            return node
        node = self._node(slot)
        if flags & os.O_TRUNC and self._shadow.sizes.get(node):
            self._store(DataOp(f"truncate {self._path(slot)} to 0", node, 0, None))
        return node

    def close(self, fd: int) -> None:
        with self._guard:
            self._files.pop(fd, None)
            self.inner.close(fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        with self._guard:
            written = self.inner.write(fd, data)
            file = self._files.get(fd)
            if file is None:
                return written
            offset = self._shadow.sizes.get(file.node, 0) if file.append else file.position
            file.position = offset + written
            how = "append" if file.append else "write"
            text = f"{how} {written} bytes at {offset} to {self._label(file.node)}"
            self._store(DataOp(text, file.node, offset, bytes(data[:written])))
            return written

    def truncate(self, fd: int, size: int) -> None:
        with self._guard:
            self.inner.truncate(fd, size)
            if file := self._files.get(fd):
                self._store(DataOp(f"truncate {self._label(file.node)} to {size}", file.node, size, None))

    def clone(self, source: int, target: int) -> None:
        with self._guard:
            self.inner.clone(source, target)
            if file := self._files.get(target):
                data = self._read(source)
                text = f"clone {len(data)} bytes to {self._label(file.node)}"
                self._store(DataOp(text, file.node, 0, data))

    def fsync(self, fd: int) -> None:
        self._flush("fsync", self.inner.fsync, fd)

    def fdatasync(self, fd: int) -> None:
        self._flush("fdatasync", self.inner.fdatasync, fd)

    def _flush(self, name: str, flush: Callable[[int], None], fd: int) -> None:
        with self._guard:
            file = self._files.get(fd)
            text = f"{name} {self._label(file.node)}" if file else ""
            try:
                flush(fd)
            except OSError as error:
                if file:
                    self._ops.append(SyncOp(f"{text} FAILED ({error})", file.node, failed=True))
                raise
            if file:
                self._ops.append(SyncOp(text, file.node))

    # Names

    def rename(self, source: str, target: str) -> None:
        with self._guard:
            old, new = self._slots(source, target)
            self.inner.rename(source, target)
            if old is None or new is None:
                return
            node = self._node(old)
            if self._shadow.names.get(new) == node:
                return  # POSIX: renaming one hard link onto another of the same file does nothing at all
            text = f"rename {self._path(old)} to {self._path(new)}"
            self._change(NameOp(text, emptied=old, filled=new, node=node))

    def link(self, source: str, target: str) -> None:
        with self._guard:
            old, new = self._slots(source, target)
            self.inner.link(source, target)
            if old is not None and new is not None:
                text = f"link {self._path(old)} to {self._path(new)}"
                self._change(NameOp(text, filled=new, node=self._node(old)))

    def link_fd(self, fd: int, target: str) -> None:
        with self._guard:
            slot, file = self._slot(target), self._files.get(fd)
            if (slot is None) != (file is None):
                raise ValueError(f"{target} crosses the border of what is recorded ({self.root})")
            self.inner.link_fd(fd, target)
            if slot is not None and file is not None:
                text = f"name {self._label(file.node)} {self._path(slot)}"
                self._change(NameOp(text, filled=slot, node=file.node))

    def unlink(self, path: str) -> None:
        self._empty("unlink", self.inner.unlink, path)

    def rmdir(self, path: str) -> None:
        self._empty("rmdir", self.inner.rmdir, path)

    def _empty(self, name: str, empty: Callable[[str], None], path: str) -> None:
        with self._guard:
            slot = self._slot(path)
            empty(path)
            if slot is not None:
                self._node(slot)
                self._change(NameOp(f"{name} {self._path(slot)}", emptied=slot))

    def mkdir(self, path: str, mode: int = DIR_MODE) -> None:
        with self._guard:
            slot = self._slot(path)
            self.inner.mkdir(path, mode)
            if slot is not None:
                node = self._shadow.add("directory")
                self._change(NameOp(f"mkdir {self._path(slot)}", filled=slot, node=node))

    # From paths to slots, and back for people

    def _change(self, op: NameOp) -> None:
        op.apply(self._shadow.names)
        self._ops.append(op)

    def _slot(self, path: str, *, follow: bool = False) -> Slot | None:
        """The directory slot of a path below the root; None outside of it, and for the root itself."""
        folder, name = os.path.split(os.path.abspath(path))
        place = os.path.join(os.path.realpath(folder), name)
        if follow and os.path.islink(place):
            place = os.path.realpath(place)
        inside = os.path.relpath(place, self.root).split(os.sep)
        if inside[0] in (os.pardir, os.curdir):
            return None
        node = ROOT
        for part in inside[:-1]:
            node = self._shadow.names.get(
                (node, part), -1
            )  # a folder that is missing makes the real call fail
        return node, inside[-1]

    def _slots(self, source: str, target: str) -> tuple[Slot | None, Slot | None]:
        old, new = self._slot(source), self._slot(target)
        if (old is None) != (new is None):
            raise ValueError(f"{source} to {target} crosses the border of what is recorded ({self.root})")
        return old, new

    def _node(self, slot: Slot) -> int:
        try:
            return self._shadow.names[slot]
        except KeyError:
            raise LookupError(f"{self._path(slot)} was made behind the back of the recorder") from None

    def _path(self, slot: Slot) -> str:
        directory, name = slot
        return name if directory == ROOT else f"{self._label(directory)}/{name}"

    def _label(self, node: int) -> str:
        if node == ROOT:
            return "."
        for slot, named in self._shadow.names.items():
            if named == node:
                return self._path(slot)
        return f"(nameless {self._shadow.kinds.get(node, 'file')} {node})"

    # Bytes

    def _store(self, op: DataOp) -> None:
        self._shadow.sizes[op.node] = op.resize(self._shadow.sizes.get(op.node, 0))
        self._ops.append(op)

    def _content(self, node: int) -> bytes:
        content = self._shadow.contents.get(node, b"")
        for op in self._ops:
            if isinstance(op, DataOp) and op.node == node:
                content = op.apply(content)
        return content

    def _read(self, fd: int) -> bytes:
        if fd in self._files:
            return self._content(self._files[fd].node)
        return self.inner.pread(fd, self.inner.fstat(fd).st_size, 0)
