"""Names, tags and stars that the user gives to sessions of any agent: one small file of ours.

They are kept by kind and id of the session, and never written into the store of an agent. Their file is
``labels.json`` in the data folder; docs/formats/labels.md has its fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from unicodedata import normalize

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs, make_folder, read_bytes
from sessionary.errors import Corrupt, Invalid
from sessionary.model import SessionRef, Summary
from sessionary.xdg import data_folder

FILE = "labels.json"
VERSION = 1


class Label(Struct, omit_defaults=True):
    """What the user has given to one session; keys of other versions are kept by none, so `version` guards them.

    Attributes:
        kind, id: the session.
        name: its title instead of the agent's; None for that of the agent.
        tags: its tags, sorted.
        starred: True if it is starred.
    """

    kind: str
    id: str
    name: str | None = None
    tags: list[str] = []
    starred: bool = False

    @property
    def is_empty(self) -> bool:
        """True if it says nothing."""
        return self.name is None and not self.tags and not self.starred


class _File(Struct):
    version: int = VERSION
    sessions: list[Label] = []


Known = dict[tuple[str, str], Label]


class Labels:
    """The names, tags and stars of a user.

    Args:
        fs: the file system.
        folder: the folder of their file; by default the data folder.
    """

    def __init__(self, fs: Fs = OS_FS, folder: str | None = None) -> None:
        self._fs = fs
        self._folder = folder or data_folder()

    @property
    def path(self) -> str | None:
        """The file; None if the account has no home."""
        return None if self._folder is None else os.path.join(self._folder, FILE)

    def known(self) -> Known:
        """Return all labels by kind and id.

        Raises:
            Corrupt: the file is damaged, or of a later version.
            StorageFailed: it cannot be read.
        """
        path = self.path
        data = None if path is None else read_bytes(self._fs, path)
        if data is None:
            return {}
        hint = "correct the file of names, tags and stars, or move it away: they are then gone"
        try:
            found = msgspec.json.decode(data, type=_File)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{path} is damaged: {error}", path=path, hint=hint) from None
        if found.version != VERSION:
            raise Corrupt(
                f"{path} has version {found.version}",
                path=path,
                hint="a later version of Sessionary wrote it: use that one",
            )
        return {(one.kind, one.id): one for one in found.sessions}

    def of(self, ref: SessionRef) -> Label:
        """Return the label of a session, which may be empty. Raises as `known`."""
        return self.known().get((ref.kind, ref.session_id)) or Label(ref.kind, ref.session_id)

    def change(self, ref: SessionRef, changed: Callable[[Label], Label]) -> Label:
        """Change the label of a session; return the one before.

        Durability: the new label survives a power cut when this returns; if it fails, the old file is unchanged.

        Raises:
            Invalid: there is no place for the file.
            Corrupt: the file is damaged; it is unchanged.
            Locked, StorageFailed: it cannot be written.
        """
        from sessionary.disk import atomic  # here, since a list only reads
        from sessionary.disk.lock import FileLock

        if self._folder is None or (path := self.path) is None:
            raise Invalid("no home directory for names and tags", hint="set XDG_DATA_HOME")
        make_folder(self._fs, self._folder)
        lock = FileLock(f"{path}.lock", self._fs)
        with lock.held():
            known = self.known()
            key = (ref.kind, ref.session_id)
            before = known.get(key) or Label(*key)
            known[key] = after = changed(before)
            if after != before:
                kept = sorted(
                    (one for one in known.values() if not one.is_empty), key=lambda one: (one.kind, one.id)
                )
                data = msgspec.json.format(msgspec.json.encode(_File(sessions=kept)), indent=1)
                atomic.replace(path, (data, b"\n"), fs=self._fs)
        lock.close()
        return before


def labelled(summaries: Iterable[Summary], known: Known) -> Iterator[Summary]:
    """Yield the summaries with the names, tags and stars of their sessions."""
    if not known:
        yield from summaries
        return
    for one in summaries:
        label = known.get((one.ref.kind, one.ref.session_id))
        yield one if label is None else with_label(one, label)


def with_label(summary: Summary, label: Label) -> Summary:
    """Return a summary with what the user has given to its session."""
    return replace(summary, title=label.name or summary.title, tags=label.tags, starred=label.starred)


def tag_of(word: str) -> str:
    """Return a tag in the form in which it is kept.

    Raises:
        Invalid: it is empty, or has blanks, commas or control characters.
    """
    tag = normalize("NFC", word.strip().removeprefix("#"))
    if not tag or not tag.isprintable() or any(char.isspace() or char == "," for char in tag):
        hint = "write letters, digits and signs without blanks and commas, as in bug-123"
        raise Invalid(f"{word!r} is not a tag", operation="tag", hint=hint)
    return tag
