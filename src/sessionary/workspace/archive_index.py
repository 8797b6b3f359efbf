"""The index of the archive, which every list reads instead of the heads; and the choice of sessions to archive.

The index is derived: each of its entries is made again from the head of the session if it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_folder, read_bytes
from sessionary.errors import Invalid
from sessionary.model import SessionRef, Summary
from sessionary.xdg import config_folder, data_folder, file_in

INDEX = "index"
_FORMAT = 1

Key = tuple[str, str, str | None]
"""A session in any folder: its kind, its id, and its project."""


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """The sessions to archive, and the folder of the archive.

    Attributes:
        kinds: the kinds of sessions; none stands for those of all other agents.
        projects: only sessions of these projects, by path or name; none stands for all.
        folder: the folder of the archive; None for the usual one.
    """

    kinds: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    folder: str | None = None


class Listed(Struct, frozen=True, array_like=True):
    """A session of an entry: its locator relative to the folder to which it is restored, and its summary, encoded."""

    locator: str
    data: Raw

    def summary(self) -> Summary:
        """The summary, with the locator that it had when it was archived."""
        return _decode(self.data)


class Archived(Struct, frozen=True, array_like=True):
    """An archived session.

    Attributes:
        name: the name of its head.
        kind, session_id, project: as in its `SessionRef`.
        home: the home of the agent in which it was.
        etag: that of its head.
        at: when it was pushed last, in ISO 8601.
        sizes: the bytes of each version, by its number.
        stamp: by which an unchanged session is known; empty if it must be compared.
        sessions: the session, then those of its sub-agents that belong to it; as of the version `best`.
    """

    name: str
    kind: str
    session_id: str
    project: str | None
    home: str
    etag: str
    at: str
    sizes: dict[int, int]
    stamp: bytes
    sessions: list[Listed]

    @property
    def best(self) -> int:
        """The number of the longest version, the newest of equals: a shorter one never takes its place."""
        return max(self.sizes, key=lambda number: (self.sizes[number], number))

    @property
    def size(self) -> int:
        """The bytes of the longest version."""
        return self.sizes[self.best]

    @property
    def place(self) -> str:
        """The name of the folder to which it is restored for reading."""
        return f"{self.name}-{self.etag[:16]}"

    @property
    def key(self) -> Key:
        """By what a session that still exists is known."""
        return self.kind, self.session_id, self.project


def key_of(ref: SessionRef) -> Key:
    """The key of a session."""
    return ref.kind, ref.session_id, ref.project


class _Index(Struct, array_like=True):
    format: int
    entries: list[Archived]


_decode = msgspec.msgpack.Decoder(Summary).decode


def listed(locator: str, summary: Summary) -> Listed:
    """A session of an entry."""
    try:
        data = msgspec.msgpack.encode(summary)
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, a number of 65 bits
        data = msgspec.msgpack.encode(
            replace(summary, title=None, problems=[], usage=[], cwd=None, branch=None)
        )
    return Listed(locator, Raw(data))


def load(folder: str, fs: Fs = OS_FS) -> dict[str, Archived]:
    """The entries of an archive, by the names of their heads; none if the index is missing or cannot be used."""
    data = read_bytes(fs, os.path.join(folder, INDEX))
    try:
        index = msgspec.msgpack.decode(data or b"", type=_Index)
    except msgspec.MsgspecError:
        return {}
    return {one.name: one for one in index.entries} if index.format == _FORMAT else {}


def save(folder: str, entries: Iterable[Archived], fs: Fs = OS_FS) -> None:
    """Replace the index, unless it is the same. Durability: it survives a power cut.

    Raises:
        StorageFailed: it cannot be written; the old one is unchanged.
    """
    path, data = os.path.join(folder, INDEX), msgspec.msgpack.encode(_Index(_FORMAT, list(entries)))
    if read_bytes(fs, path) != data:
        make_folder(fs, folder)
        atomic.replace(path, (data,), fs=fs)


def load_choice(fs: Fs = OS_FS) -> Choice:
    """The stored choice; the defaults without one. Raises Invalid if the file is damaged."""
    path = choice_file()
    data = None if path is None else read_bytes(fs, path)
    if data is None:
        return Choice()
    import json  # accepts paths that are not UTF-8; here, since few users have the file

    try:
        return msgspec.convert(json.loads(data), Choice)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        hint = "correct it, or run `sessionary archive add --replace`"
        raise Invalid(f"{path}: {error}", path=path, hint=hint) from None


def save_choice(choice: Choice, fs: Fs = OS_FS) -> str:
    """Write what was chosen; return the path of the file. Durability: it survives a power cut.

    Raises:
        Invalid: there is no place for it.
        StorageFailed: it cannot be written; the old one is unchanged.
    """
    from sessionary.codec import encode_document  # here, since every list loads this module

    path = choice_file()
    if path is None:
        raise Invalid("no home directory for the settings", hint="set XDG_CONFIG_HOME")
    make_folder(fs, os.path.dirname(path))
    atomic.replace(path, (encode_document(msgspec.to_builtins(choice)), b"\n"), fs=fs)
    return path


def choice_file() -> str | None:
    """The path of the settings; None if there is no place for them."""
    return file_in(config_folder(), "archive.json")


def usual_folder() -> str | None:
    """The usual folder of the archive; None if there is no place for it."""
    return file_in(data_folder(), "archive")
