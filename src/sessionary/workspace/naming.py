"""The short names of sessions.

Ids are long, and users type the beginning. For a sub-session the beginning says nothing: it is the id of its parent,
or sixteen zeros. So each layout states the part of an id that distinguishes its sessions (`Layout.short_key`), and a
beginning of that part is enough.
"""

from __future__ import annotations

import os
import re
from collections import Counter

from sessionary.model import SessionRef

SHORT = 8
# A UUID, with hyphens or without; the span that a sub-agent's session begins with; an id of OpenCode.
_HEX = "[0-9a-fA-F]"
_RANDOM = (
    f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}|{_HEX}{{32}}|{_HEX}{{16}}(?:_.*)?"
    "|ses_[0-9a-zA-Z]{26}"
)


def is_project_path(word: str) -> bool:
    """True for a word that names a project by a path, not by the name of its folder of sessions."""
    return os.sep in word or word.startswith((".", "~"))


def short_ids(keys: dict[SessionRef, str]) -> dict[SessionRef, str]:
    """The short names of sessions, by their `short_key`; see `Sessions.short_ids`."""
    of_all = _beginnings(list(keys.values()))
    of_first = _beginnings([key for ref, key in keys.items() if key == ref.session_id])
    is_random = re.compile(_RANDOM).fullmatch
    return {
        ref: (of_first if key == ref.session_id else of_all)[key] if is_random(key) else key
        for ref, key in keys.items()
    }


def short_names(names: list[str]) -> dict[str, str]:
    """For each name its shortest beginning that no other name begins with; one that is not random stays whole."""
    is_random = re.compile(_RANDOM).fullmatch
    return {name: short if is_random(name) else name for name, short in _beginnings(names).items()}


def short_name(session_id: str, length: int = SHORT) -> str:
    """The beginning of a random id; any other id whole."""
    return session_id[:length] if re.fullmatch(_RANDOM, session_id) else session_id


def cut_ids(names: list[str], room: int) -> list[str]:
    """Names of at most `room` characters; a longer one keeps its beginning and its end, with ``…`` between them.

    Where two would become the same, both stay whole.
    """
    end = room // 3
    cut = [name if len(name) <= room else f"{name[: room - end - 1]}…{name[-end:]}" for name in names]
    count = Counter(cut)
    return [short if count[short] == 1 else name for name, short in zip(names, cut, strict=True)]


def is_short_for(name: str, whole: str) -> bool:
    """True if a name is the beginning of an id, or its beginning and its end, as `cut_ids` makes them.

    ``…`` separates the two, or its replacement where only ASCII can be printed or typed.
    """
    begin, end = (*re.split(r"…|~|\.\.\.", name, maxsplit=1), "")[:2]
    return whole.startswith(begin) and whole.endswith(end) and len(begin) + len(end) <= len(whole)


def _beginnings(names: list[str]) -> dict[str, str]:
    """Beginnings that differ from one another, each about as short as that allows; where names are equal, the whole."""
    short: dict[str, str] = {}
    length, left = SHORT, names
    while left:
        heads = [name[:length] for name in left]
        short.update(zip(left, heads, strict=True))
        if len(set(heads)) == len(heads):
            break
        clashing = {head for head, count in Counter(heads).items() if count > 1}
        left = [name for name, head in zip(left, heads, strict=True) if head in clashing and name != head]
        length += 4
    return short
