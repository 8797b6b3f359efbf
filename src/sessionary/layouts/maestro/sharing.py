"""Messages from other accounts: sessions that they may write to, and messages that the consumer may read.

By default all files are private to the account that made them. A producer under another account can post only
if the folders of the messages allow it, and its files must be readable by the consumer. So sharing a session
opens its folders, and a message in a folder writable by others is as readable as that folder, whatever the
umask of its sender.
"""

from __future__ import annotations

import os
import stat

from sessionary.disk.fs import FILE_MODE, O_DIRECTORY, READ, Fs, storage_failed
from sessionary.errors import Invalid
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION, depth_of

_OTHERS_WRITE, _OTHERS_READ = 0o022, 0o044
_CLASSES = (0o070, 0o007)


def check_mode(mode: int) -> int:
    """Refuse a mode of folders that allows no posting, or none that is durable.

    Raises:
        Invalid: the owner has no access, or an account may write but not read or enter.
    """
    halves = [mode & bits for bits in _CLASSES]
    closed = any(half & _OTHERS_WRITE and half != bits for half, bits in zip(halves, _CLASSES, strict=True))
    if mode & 0o700 != 0o700 or closed or mode & ~0o7777:
        raise Invalid(
            f"{mode:o} is not a usable mode for message folders",
            hint="2770 allows the group to post, 1777 all accounts; write access needs read and execute access too",
        )
    return mode


def share(fs: Fs, folder: str, mode: int) -> list[str]:
    """Allow others to post to the session in a folder; return the folders above it that still block them.

    The folders of the messages get `mode`; the folder of the session and its document become readable for
    those accounts.

    Durability: none; after a power cut the modes may be the old ones.

    Raises:
        Invalid: as `check_mode`.
    """
    check_mode(mode)
    box = f"{folder}/{BREADCRUMBS}"
    try:
        depths = [f"{box}/{name}" for name in fs.listdir(box) if depth_of(name) is not None]
        _change(fs, f"{folder}/{SESSION}", FILE_MODE | mode & _OTHERS_READ, READ)
        _change(fs, folder, mode & 0o777 & ~_OTHERS_WRITE, READ | O_DIRECTORY)
        for path in (box, *depths):
            _change(fs, path, mode, READ | O_DIRECTORY)
    except OSError as error:
        raise storage_failed(error, "change the mode of", error.filename or folder) from error
    return _closed_above(fs, folder, 0o001 if mode & 0o007 else 0o011)


def message_mode(mode: int) -> int:
    """The mode of a new message in a folder of this mode: private, unless others may write to the folder."""
    return FILE_MODE | mode & 0o066 if mode & _OTHERS_WRITE else FILE_MODE


def inherit(fs: Fs, folder: str) -> None:
    """Give a new folder of messages the mode of its parent, if others may write there. Raises OSError."""
    mode = stat.S_IMODE(fs.stat(os.path.dirname(folder)).st_mode)
    if mode & _OTHERS_WRITE:
        _change(fs, folder, mode, READ | O_DIRECTORY)


def _change(fs: Fs, path: str, mode: int, how: int) -> None:
    fd = fs.open(path, how)
    try:
        fs.chmod(fd, mode)
    finally:
        fs.close(fd)


def _closed_above(fs: Fs, folder: str, enter: int) -> list[str]:
    closed: list[str] = []
    above = os.path.dirname(folder)
    while above != os.path.dirname(above):
        if not fs.stat(above).st_mode & enter:
            closed.append(above)
        above = os.path.dirname(above)
    return closed[::-1]
