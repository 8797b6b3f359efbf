"""Changes of a file that leave its size and its mtime as they were."""

import os
from pathlib import Path


def change_in_place(path: Path, old: bytes, new: bytes) -> None:
    """Overwrite the first `old` in a file, in the same inode, and set the mtime that the file had.

    Repeated until the ctime has moved: two writes within one tick of the clock have one ctime.
    """
    assert len(old) == len(new)
    before = path.stat()
    at = path.read_bytes().index(old)
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(new)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
