"""The files of an archived session: read from the archive, verified, and written to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, is_there, make_dirs, storage_errors
from sessionary.disk.line_reader import LineFile
from sessionary.disk.spooled_file import Spool
from sessionary.errors import AlreadyExists, Corrupt, NotFound
from sessionary.layouts.archiving import FILES, ROWS, is_safe
from sessionary.sync import archive, bundles, heads
from sessionary.sync.folder_remote import FolderRemote
from sessionary.sync.heads import Head

Pieces = Callable[[], Iterator[bytes]]


def head_of(folder: str, name: str, fs: Fs = OS_FS) -> Head:
    """The head of an archived session.

    Raises:
        NotFound: the archive does not have it.
        RemoteError, Corrupt, Unsupported: it cannot be read.
    """
    record = FolderRemote(folder, fs).read_head(name)
    if record is None:
        raise NotFound(f"the archive {folder} no longer has this session", path=folder)
    return heads.decode(name, record.data)


def written(
    folder: str, head: Head, number: int, target: str, fs: Fs = OS_FS, *, main: str = "", lasting: bool = True
) -> list[str]:
    """Write the files of a version of a session below a folder, each under its name there; return their paths.

    Of a session in a database, the document of its rows, and a database that is made of them. A file that exists is
    left as it is if it begins with the archived bytes and is not that of the session itself, `main`.

    Durability: each file is whole or missing. With `lasting`, they survive a power cut when this returns.

    Raises:
        AlreadyExists: one of the files exists; nothing was written.
        NotFound: there is no version of this number.
        RemoteError, Corrupt: a file cannot be read back, or has a name that leads out of the folder.
    """
    with Spool(fs=fs) as spool:
        files = _files(folder, head, number, spool, fs)
        paths = {name: os.path.join(target, *name.split("/")) for name in files}
        for name, path in list(paths.items()):
            if is_there(fs, path):
                if name != main and _begins_with(fs, path, files[name]()):
                    del paths[name]
                    continue
                raise AlreadyExists(
                    f"{path} already exists",
                    path=path,
                    session=head.session,
                    hint="restore into an empty folder: --to DIR",
                )
        for name, path in reversed(paths.items()):  # those of sub-agents before that of the session
            _create(path, files[name](), fs, lasting)
    return sorted(paths.values())


def _begins_with(fs: Fs, path: str, pieces: Iterator[bytes]) -> bool:
    at = 0
    with LineFile(path, fs) as file:
        for piece in pieces:
            if file.read(at, len(piece)) != piece:
                return False
            at += len(piece)
    return True


def _create(path: str, data: Iterator[bytes], fs: Fs, lasting: bool) -> None:
    with storage_errors("make", os.path.dirname(path)):
        make_dirs(fs, os.path.dirname(path), durable=lasting)
    atomic.create_streamed(path, data, fs=fs, durable=lasting)


def _files(folder: str, head: Head, number: int, spool: Spool, fs: Fs) -> dict[str, Pieces]:
    """For each file of a version, a function that yields its bytes."""
    from sessionary.layouts.agents import sql_rows

    remote, files = FolderRemote(folder, fs), dict[str, Pieces]()
    for name, tip in archive.version_of(head, number).files.items():

        def pieces(name: str = name, tip: tuple[int, str] = tip) -> Iterator[bytes]:
            return archive.contents(remote, head, name, tip, spool)

        if name == FILES:
            files |= {one.name: partial(iter, (one.data,)) for one in bundles.unpack_items(pieces())}
        elif name == ROWS:
            lines = b"".join(pieces()).rstrip(b"\n").split(b"\n")
            place = sql_rows.place_of(lines[0])

            def made(lines: list[bytes] = lines) -> Iterator[bytes]:
                yield sql_rows.database_of(lines)

            files |= {f"{place}.{ROWS}": pieces, place: made}
        else:
            files.setdefault(name, pieces)
    for name in files:
        if not is_safe(name):
            raise Corrupt(
                f"the archive names a file {name!r}, which leads out of the folder", session=head.session
            )
    return files
