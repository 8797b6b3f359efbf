"""The ends of hash chains that `check --chain --remember` stores outside of the sessions, by path.

Their file is ``chain-heads.json`` in the state folder. Keep a copy of it on another machine: a user who can change both
it and the sessions can hide a change.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_there, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, Invalid
from sessionary.layouts.abilities import ChainHead, ChecksChain
from sessionary.layouts.changing import Trashed, Trashes
from sessionary.layouts.records.chain import session_gone
from sessionary.model import Problem
from sessionary.xdg import file_in, state_folder

FILE = "chain-heads.json"


def known_heads(fs: Fs) -> dict[str, ChainHead]:
    """All remembered heads.

    Raises:
        Corrupt: the file is damaged.
        StorageFailed: it cannot be read.
    """
    path = file_in(state_folder(), FILE)
    data = None if path is None else read_bytes(fs, path)
    try:
        return {} if data is None else msgspec.json.decode(data, type=dict[str, ChainHead])
    except msgspec.MsgspecError as error:
        hint = "restore it from a copy; without it the end of a chain cannot be checked"
        raise Corrupt(f"{path} is damaged: {error}", path=path, hint=hint) from None


def remember_head(fs: Fs, session: str, head: ChainHead) -> None:
    """Keep the head of a session instead of the one before.

    Durability: when this returns, it survives a power cut; until then the old one does.

    Raises:
        Corrupt, Locked, StorageFailed: the file cannot be read or written.
    """
    _change(fs, {session: head})


def forget_heads(fs: Fs, sessions: Iterable[str]) -> None:
    """Keep no head of these sessions. Durability and errors are those of `remember_head`."""
    _change(fs, dict.fromkeys(sessions))


def _change(fs: Fs, changed: dict[str, ChainHead | None]) -> None:
    path = _path()
    make_folder(fs, os.path.dirname(path))
    with FileLock(f"{path}.lock", fs).once():
        known = known_heads(fs)
        kept = {key: head for key, head in {**known, **changed}.items() if head is not None}
        if kept != known:
            data = msgspec.json.encode(kept, order="sorted")
            atomic.replace(path, (msgspec.json.format(data, indent=1), b"\n"), fs=fs)


def in_trash(layouts: Iterable[Trashes], path: str, head: ChainHead) -> Trashed | None:
    """The session of a path that ends in a remembered head, if it is in the trash."""
    for layout in layouts:
        if isinstance(layout, ChecksChain):
            for one in layout.trashed([]):
                if os.path.realpath(one.ref.locator) == path and not layout.check_chain(one.stored, head)[0]:
                    return one
    return None


def gone_sessions(homes: Iterable[str], layouts: Iterable[Trashes], fs: Fs) -> Iterator[Problem]:
    """A problem for each remembered session below these homes that is neither there nor in the trash."""
    below = tuple(os.path.realpath(home) + os.sep for home in homes)
    for path, head in known_heads(fs).items():
        gone = path.startswith(below) and not is_there(fs, path)
        if gone and in_trash(layouts, path, head) is None:
            yield session_gone(path)


def _path() -> str:
    path = file_in(state_folder(), FILE)
    if path is None:
        raise Invalid("no home directory for the state", hint="set XDG_STATE_HOME")
    return path
