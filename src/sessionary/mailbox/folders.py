"""Find pending messages in the folders of a mailbox, as cheaply as possible without missing any.

A message is a file in a folder that is named by a number, and it is never changed, moved or removed. So such
a folder only gains names, which changes its times (both count: the mtime can be set back). A poll of an idle
mailbox reads these times, one stat for each folder, and lists nothing, however many messages there are.

File times advance in ticks. A name that is created in the tick of our listing, but after it, does not change
them again; so a listing is final only if the folder was unchanged for two seconds before it, and is repeated
otherwise.

Listed messages that are not known to be done are in one queue, in order. The caller knows which are done, and
reports them by name; the queue never reads a file. The cost of a call follows what has changed, not the
number of pending messages.

A name identifies one message for ever; only if two devices have created a message under one name, each of
these is renamed, and the contested name is free again. Such a name proves nothing any more: its file is
always read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, Fs, storage_failed
from sessionary.layouts.maestro.names import BREADCRUMBS, depth_of, is_crumb_name
from sessionary.layouts.own_names import contested_name

SETTLED_NS = 2_000_000_000


class Place(NamedTuple):
    """The place of a message. Places sort in the order of application: by name, which is a time, then by depth.

    Attributes:
        depth: the number of the folder.
        label: the folder as written in the ledger: ``0``, or the path of a legacy one.
    """

    name: str
    depth: int
    label: str
    path: str

    @property
    def file(self) -> str:
        """``<depth>/<name>``, which identifies the message in the ledger."""
        return f"{self.label}/{self.name}"


@dataclass(slots=True)
class _Folder:
    """A folder: its version when its names were read, and of a folder of messages what is known of them.

    `label` is that of `Place`; of a `breadcrumbs` folder, the prefix of those of its depth folders. `contested` are
    the names that several messages had.
    """

    path: str
    label: str
    depth: int = 0
    version: tuple[int, int, int] | None = None
    settled: bool = False
    queued: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    contested: set[str] = field(default_factory=set)

    def place(self, name: str) -> Place:
        """The place of a message in it."""
        return Place(name, self.depth, self.label, f"{self.path}{os.sep}{name}")


class Root(NamedTuple):
    """A `breadcrumbs` folder, and the labels of its depth folders in the ledger besides their numbers."""

    path: str
    prefix: str = ""


def roots_of(folder: str, top: str) -> list[Root]:
    """The `breadcrumbs` folders of the session in a folder: its own, and the legacy one if it is nested.

    Maestro writes the breadcrumbs of a nested session to `<root>/<child>/breadcrumbs`; `top` is the folder that
    contains all sessions of its tree.
    """
    own = os.path.join(folder, BREADCRUMBS)
    stray = os.path.join(top, os.path.basename(folder), BREADCRUMBS)
    if stray == own:
        return [Root(own)]
    return [Root(own), Root(stray, os.path.relpath(stray, own).replace(os.sep, "/") + "/")]


class Folders:
    """The queue of messages in the folders of one mailbox.

    Args:
        roots: the `breadcrumbs` folders; they may not exist yet.
        now: the time, in seconds since 1970.
    """

    def __init__(self, roots: list[Root], fs: Fs = OS_FS, now: Callable[[], float] = time.time) -> None:
        self._fs = fs
        self._now = now
        self._roots = [_Folder(root.path, root.prefix) for root in roots]
        self._depths: dict[str, _Folder] = {}
        self._queue: list[Place] = []  # sorted; places that are no longer queued are skipped

    def paths(self) -> list[str]:
        """Every folder that may change."""
        return [folder.path for folder in (*self._roots, *self._depths.values())]

    @property
    def waiting(self) -> int:
        """Number of queued files."""
        return sum(len(depth.queued) for depth in self._depths.values())

    def refresh(self, done: dict[str, set[str]]) -> bool:
        """Read new names; True if the queue has grown.

        Args:
            done: the names that need not be queued, by label.
        """
        for root in self._roots:
            for name in self._news(root):
                number, label = depth_of(name), root.label + name
                if number is not None and label not in self._depths:
                    self._depths[label] = _Folder(os.path.join(root.path, name), label, number)
        before = len(self._queue)
        for depth in self._depths.values():
            if names := self._news(depth):
                self._enqueue(depth, names, done.get(depth.label, set()))
        if len(self._queue) == before:
            return False
        self._queue.sort()
        return True

    def queue(self) -> Iterator[Place]:
        """The messages in order, as queued when their turn comes."""
        first = next((n for n, place in enumerate(self._queue) if self._is_queued(place)), len(self._queue))
        del self._queue[:first]
        before = None  # a contested name is listed again each time
        for place in self._queue[:]:
            if place != before and self._is_queued(place):
                yield place
            before = place

    def queued(self, file: str) -> Place | None:
        """The place of a file, by ``<depth>/<name>``, if it is queued."""
        label, _, name = file.rpartition("/")
        depth = self._depths.get(label)
        return depth.place(name) if depth is not None and name in depth.queued else None

    def is_contested(self, place: Place) -> bool:
        """True if several messages had the name, so that it proves nothing."""
        return place.name in self._depths[place.label].contested

    def done(self, label: str, names: Iterable[str]) -> None:
        """Remove the messages with these names, which were applied, from the queue."""
        depth = self._depths.get(label)
        if depth is not None:
            depth.queued.difference_update(names)

    def ignore(self, place: Place) -> None:
        """Remove a message from the queue permanently."""
        self.done(place.label, (place.name,))
        self._depths[place.label].ignored.add(place.name)

    def leave(self, place: Place) -> None:
        """Remove a file from the queue until the next listing."""
        self.done(place.label, (place.name,))
        self._queue.remove(place)

    def forget(self) -> None:
        """Start again: earlier results may be void."""
        self._queue.clear()
        for depth in self._depths.values():
            depth.queued.clear()
            depth.ignored.clear()
            depth.version = None

    def _is_queued(self, place: Place) -> bool:
        return place.name in self._depths[place.label].queued

    def _news(self, folder: _Folder) -> Iterable[str]:
        """Names in a folder that may be new.

        Raises:
            StorageFailed: it cannot be read. A missing folder has no names.
        """
        try:
            found = self._fs.stat(folder.path)
            version = found.st_ino, found.st_mtime_ns, found.st_ctime_ns
            if version == folder.version and folder.settled:
                return ()
            now = int(self._now() * 1e9)
            names = self._fs.listdir(folder.path)
        except FileNotFoundError:
            folder.version = None
            return ()
        except NotADirectoryError:
            return ()
        except OSError as error:
            raise storage_failed(error, "list", folder.path) from error
        folder.version = version
        folder.settled = now - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS
        return names

    def _enqueue(self, depth: _Folder, names: Iterable[str], done: Set[str]) -> None:
        listed, contested = set(names), set()
        if "~" in "".join(names):  # one search, since there may be thousands of names
            contested = {known for name in listed if (known := contested_name(name))}
        depth.contested |= contested
        depth.ignored -= contested
        unknown = listed.difference(done) | (depth.contested & listed)
        fresh = [name for name in unknown.difference(depth.queued, depth.ignored) if is_crumb_name(name)]
        depth.queued.update(fresh)
        self._queue += map(depth.place, fresh)
