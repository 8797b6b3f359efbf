"""Does the file system under a folder keep what the engine promises?

Local file systems do (docs/durability.md says which were proven).  On network and host-shared ones a flush, a lock
or an append may mean less than it says: two hosts do not see each other's locks, an append of one may land inside
another's, a rename may not be atomic.  Such a mount is recognised by its type, and said; nothing is refused.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache

from sessionary.model import Problem, Severity

_WEAK = {
    "nfs": "NFS: locks and appends of several hosts do not exclude each other",
    "nfs4": "NFS: locks and appends of several hosts do not exclude each other",
    "cifs": "SMB: locks and appends of several hosts do not exclude each other",
    "smb3": "SMB: locks and appends of several hosts do not exclude each other",
    "smbfs": "SMB: locks and appends of several hosts do not exclude each other",
    "virtiofs": "virtiofs: host and guest do not share locks, and flushes end at the host's cache",
    "9p": "9p: host and guest do not share locks, and flushes end at the host's cache",
    "vboxsf": "a VirtualBox share: host and guest do not share locks",
    "afs": "AFS: a file is stored on close, and the last close wins",
}
_ONE_CHANGE = frozenset({"xfs", "btrfs", "tmpfs", "ramfs"})
"""Here a new name and what it leads to become durable together, whatever of them is flushed."""
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system: where, of which type, with which options of the file system itself."""

    point: str
    kind: str
    options: frozenset[str]

    def weakness(self) -> str | None:
        """Why the promises do not hold here; None if they do."""
        if self.kind in _WEAK:
            return _WEAK[self.kind]
        if self.kind.startswith("fuse") and self.kind != "fuseblk":
            return f"{self.kind}: whether flushes, locks and renames hold is up to the program behind it"
        if self.kind == "overlay" and "volatile" in self.options:
            return "overlay mounted 'volatile': flushes do nothing, a power cut may lose everything"
        if self.kind in ("tmpfs", "ramfs"):
            return f"{self.kind}: memory only; nothing survives a power cut or an unmount"
        return None


def parse_mountinfo(text: str) -> list[Mount]:
    """The mounts of a Linux ``/proc/self/mountinfo``, later ones over earlier ones."""
    mounts = []
    for row in text.splitlines():
        left, _, right = row.partition(" - ")
        words, tail = left.split(), right.split()
        if len(words) < 6 or not tail:
            continue
        point = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), words[4])
        options = frozenset(",".join([words[5], *tail[2:3]]).split(","))
        mounts.append(Mount(point, tail[0], options))
    return mounts


def mount_of(path: str, mounts: list[Mount]) -> Mount | None:
    """The mount that `path` lies on: the longest mount point above it, the last one mounted there."""
    best: Mount | None = None
    for mount in mounts:
        point = mount.point.rstrip("/")
        inside = path == point or path.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best.point.rstrip("/"))):
            best = mount
    return best


def weakness(path: str | os.PathLike[str]) -> str | None:
    """Why the promises of the engine do not hold in `path`; None where they do, or where it cannot be told.

    Only Linux tells (and tmpfs counts: what is there does not outlive the machine).
    """
    mount = _mount_under(path)
    return None if mount is None else mount.weakness()


def _mount_under(path: str | os.PathLike[str]) -> Mount | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
            return mount_of(os.path.realpath(path), parse_mountinfo(table.read()))
    except OSError:
        return None


@lru_cache(maxsize=1024)
def flushes_links(folder: str, device: int) -> bool | None:
    """Whether the flush of a folder makes durable also that the files which got their names in it have one.

    A file that was made without a name has none on the disk either, and who flushed it before it was named has flushed
    that, too. In a journal the name and the count of the names are one change. ext4 without a journal writes the count
    when it likes, and after a power cut its check takes a file without names away. None where it cannot be told.

    Args:
        folder: where the file is made.
        device: the number of its file system, since another one may be mounted there later.
    """
    mount = _mount_under(folder)
    if mount is None:
        return None
    if mount.kind != "ext4":
        return mount.kind in _ONE_CHANGE or None
    options = _options_of_ext4(device)
    return None if options is None else "\ndata=" in options  # how data go with the journal, if there is one


def _options_of_ext4(device: int) -> str | None:
    """What the kernel says of the ext4 on a device, a line for each option."""
    try:
        name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
        with open(f"/proc/fs/ext4/{name}/options", encoding="utf-8", errors="replace") as options:
            return options.read()
    except OSError:
        return None


def problem(path: str, why: str) -> Problem:
    """The note that `check` and the first report of a store give of a weak file system."""
    remedy = "keep sessions on a local disk (ext4, xfs, btrfs, APFS, NTFS)"
    return Problem(
        "weak_file_system", Severity.note, path, None, None, f"the promises do not hold here: {why}", remedy
    )
