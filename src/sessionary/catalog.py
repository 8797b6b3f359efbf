"""What earlier lists have learned, kept so that the next one reads only what has changed since.

The catalogue is derived: everything in it can be read anew from the sessions. So nothing here is an error. Where it
is missing, damaged, of another version or cannot be written, a list takes longer, and that is all. It never answers
by itself either: a layout compares the stats of each file before it believes what is remembered (`layouts.base.Known`).

It is one file for each home and layout, read and written whole: ten thousand sessions are read back in about ten
milliseconds, several times quicker than rows come out of a database. A checksum stands before the content, or a
single flipped bit in a title would be believed.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import MsgspecError, msgpack

from sessionary import __version__
from sessionary.disk.atomic import replace
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes
from sessionary.errors import StorageFailed
from sessionary.layouts.base import Known

FORMAT = 3
"""To be raised with the shape of `Known`, and whenever a layout says something else of the same files."""

_HEADER = f"sessionary {__version__} catalogue {FORMAT}\n".encode()
_BODY = len(_HEADER) + 4

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(list[Known]).decode


def cache_folder() -> str | None:
    """Where this person's derived data lies: ``$XDG_CACHE_HOME/sessionary``, else ``~/.cache/sessionary``.

    None where neither says a place: the variable counts only if it is absolute, and not everybody has a home.
    """
    return xdg_folder("XDG_CACHE_HOME", "~/.cache")


def xdg_folder(variable: str, otherwise: str) -> str | None:
    """Our folder in the one that an XDG variable names, or else in `otherwise`."""
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(otherwise)
    return os.path.join(base, "sessionary") if os.path.isabs(base) else None


class Catalog:
    """What is remembered of the sessions of one layout below one home.

    Args:
        home: the home, as it was named: the summaries hold paths that begin so.
        layout: the name of the layout.
        folder: where catalogues lie; None remembers nothing.
        fs: the file system.
    """

    def __init__(self, home: str, layout: str, folder: str | None, fs: Fs = OS_FS) -> None:
        self._fs = fs
        self.path: str | None = None
        if folder is not None:
            place = os.fsencode(f"{os.path.realpath(home)}\0{home}")
            encoding = sys.getfilesystemencoding()
            if (
                encoding != "utf-8"
            ):  # names are other texts then, and those of here cannot all be encoded there
                place += b"\0" + encoding.encode()
            # Two homes of one name would only forget what the other has learned: folders are remembered whole.
            name = f"{zlib.crc32(place):08x}{zlib.crc32(place[::-1]):08x}"
            self.path = os.path.join(folder, f"{layout}-{name}.catalogue")

    @contextmanager
    def entries(self) -> Iterator[dict[str, Known]]:
        """What is known, by folder, to be changed at will; what has changed at the end of the block is stored.

        Two processes may do this at once: the file of the one that ends last stands.

        *Durability*: none, and none is needed; a file that a power cut has spoiled is not believed.
        """
        before = self._load()
        now = dict(before)
        try:
            yield now
        finally:
            self._store(before, now)

    def _load(self) -> dict[str, Known]:
        if self.path is None:
            return {}
        try:
            data = read_bytes(self._fs, self.path)
        except StorageFailed as error:
            _debug("the catalogue cannot be read: %s", error)
            return {}
        if data is None:
            return {}
        body = memoryview(data)[_BODY:]
        if data[:_BODY] != _HEADER + _checksum(body):
            _debug("%s is damaged or of another version; it is not used", self.path)
            return {}
        try:
            return {entry.folder: entry for entry in _decode(body)}
        except MsgspecError as error:
            _debug("%s holds something else: %s", self.path, error)
            return {}

    def _store(self, before: dict[str, Known], now: dict[str, Known]) -> None:
        if self.path is None or now == before:
            return
        body = _encode([now[folder] for folder in sorted(now)])  # so those of one project lie side by side
        try:
            make_dirs(self._fs, os.path.dirname(self.path), durable=False)
            replace(self.path, (_HEADER, _checksum(body), body), fs=self._fs, durable=False)
        except (StorageFailed, OSError) as error:
            _debug("the catalogue cannot be written: %s", error)


def _debug(message: str, *facts: object) -> None:
    import logging  # here, since a list that has nothing to say should not wait for it

    logging.getLogger(__name__).debug(message, *facts)


def _checksum(body: bytes | memoryview) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big")
