"""Detection of file systems that weaken the guarantees of the engine.

Local file systems keep them (docs/durability.md lists the tested ones). On network and host-shared file systems a
flush, lock or append may be weaker than its contract: two hosts do not see each other's locks, an append of one may
land inside an append of the other, a rename may not be atomic. Such a mount is recognised by its type and reported;
nothing is refused.
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
_LOCAL = frozenset({"tmpfs", "ramfs", "overlay"})
"""File systems without every promise that no other host can reach."""
_ONE_CHANGE = frozenset({"xfs", "btrfs", "tmpfs", "ramfs"})
"""File systems where a new name and its inode become durable together, whichever of them is flushed."""
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: mount point, type, and options of the file system itself."""

    point: str
    kind: str
    options: frozenset[str]

    def weakness(self) -> str | None:
        """The reason why the guarantees do not hold on this mount; None if they hold."""
        if self.kind in _WEAK:
            return _WEAK[self.kind]
        if self.kind.startswith("fuse") and self.kind != "fuseblk":
            return f"{self.kind}: flushes, locks and renames depend on the program that serves it"
        if self.kind == "overlay" and "volatile" in self.options:
            return "overlay mounted 'volatile': flushes do nothing, a power cut may lose everything"
        if self.kind in ("tmpfs", "ramfs"):
            return f"{self.kind}: memory only; nothing survives a power cut or an unmount"
        return None


def parse_mountinfo(text: str) -> list[Mount]:
    """Parse a Linux ``/proc/self/mountinfo``; later mounts shadow earlier ones."""
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
    """Return the mount of `path`: the longest mount point above it, the last one mounted there."""
    best: Mount | None = None
    for mount in mounts:
        point = mount.point.rstrip("/")
        inside = path == point or path.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best.point.rstrip("/"))):
            best = mount
    return best


def weakness(path: str | os.PathLike[str]) -> str | None:
    """Return the reason why the guarantees do not hold in `path`; None if they hold or if it is unknown.

    Only known on Linux. tmpfs is weak too: its content does not survive a reboot.
    """
    mount = _mount_under(path)
    return None if mount is None else mount.weakness()


def is_remote(path: str | os.PathLike[str]) -> bool:
    """True if other hosts may change the content of `path`, so that the kernel here does not see every change."""
    mount = _mount_under(path)
    return mount is not None and mount.weakness() is not None and mount.kind not in _LOCAL


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
    """Return whether flushing a folder also makes the link counts of its new files durable; None if unknown.

    A file that was flushed before it was linked has a link count of 0 on disk. With a journal, the name and the count
    are one change. ext4 without a journal writes the count later, and its check after a power cut removes files with
    a count of 0.

    Args:
        device: its device number, since another file system may be mounted there later.
    """
    mount = _mount_under(folder)
    if mount is None:
        return None
    if mount.kind != "ext4":
        return mount.kind in _ONE_CHANGE or None
    options = _options_of_ext4(device)
    return (
        None if options is None else "\ndata=" in options
    )  # the journal mode is shown only if there is a journal


def _options_of_ext4(device: int) -> str | None:
    """Return the options that the kernel lists for the ext4 on a device, one per line."""
    try:
        name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
        with open(f"/proc/fs/ext4/{name}/options", encoding="utf-8", errors="replace") as options:
            return options.read()
    except OSError:
        return None


def problem(path: str, why: str) -> Problem:
    """Return the note about a weak file system, for `check` and the first report of a store."""
    remedy = "keep sessions on a local disk (ext4, xfs, btrfs, APFS, NTFS)"
    return Problem.of_file(
        "weak_file_system", Severity.note, path, f"durability is not guaranteed here: {why}", remedy
    )
