"""Names, tags and stars that users give to sessions of any agent, in one small file.

They are kept by kind and id of the session, and never written into the store of an agent. Their file is
``labels.json`` in the data folder; docs/formats/labels.md has its fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from unicodedata import normalize

from msgspec import Struct, field
from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import Invalid
from sessionary.model import SessionRef, Summary
from sessionary.workspace.user_file import UserFile, Versioned
from sessionary.xdg import data_folder

FILE = "labels.json"


class Label(Struct, omit_defaults=True):
    """Name, tags and star of one session. Keys of other versions would be lost, so `version` guards them.

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


class _File(Versioned):
    sessions: list[Label] = field(default_factory=list)


Known = dict[tuple[str, str], Label]


class Labels:
    """The names, tags and stars of a user.

    Args:
        folder: the folder of their file; by default the data folder.
    """

    def __init__(self, fs: Fs = OS_FS, folder: str | None = None) -> None:
        place = folder or data_folder()
        path = None if place is None else os.path.join(place, FILE)
        self._file = UserFile(path, _File(), "names, tags and stars", fs)

    @property
    def path(self) -> str | None:
        """The file; None if the account has no home."""
        return self._file.path

    def known(self) -> Known:
        """Return all labels by kind and id. Raises Corrupt if the file is damaged, or of a later version."""
        return {(one.kind, one.id): one for one in self._file.read().sessions}

    def of(self, ref: SessionRef) -> Label:
        """Return the label of a session, which may be empty. Raises as `known`."""
        return self.known().get((ref.kind, ref.session_id)) or Label(ref.kind, ref.session_id)

    def change(self, ref: SessionRef, changed: Callable[[Label], Label]) -> Label:
        """Change the label of a session; return the one before.

        Durability: the new label survives a power cut when this returns; if it fails, the old file is unchanged.

        Raises:
            Invalid: there is no place for the file.
            Corrupt: the file is damaged; it is unchanged.
        """
        before = Label(ref.kind, ref.session_id)

        def with_change(file: _File) -> _File:
            nonlocal before
            known = {(one.kind, one.id): one for one in file.sessions}
            before = known.get((before.kind, before.id)) or before
            known[before.kind, before.id] = changed(before)
            kept = (one for one in known.values() if not one.is_empty)
            return _File(sessions=sorted(kept, key=lambda one: (one.kind, one.id)))

        self._file.change(with_change)
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
