"""The short names of sessions.

Ids are long, and users type the beginning. For a sub-session the beginning says nothing: it is the id of its parent,
or sixteen zeros. So each layout states the part of an id that distinguishes its sessions (`Layout.short_key`), and a
beginning of that part is enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from sessionary.model import SessionRef

SHORT = 8
# A UUID, with hyphens or without; the span that a sub-agent's session begins with.
_RANDOM = r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{16}(_.*)?"
_NO_HEX = dict.fromkeys(map(ord, "0123456789abcdefABCDEF"))


def short_ids(refs: Sequence[SessionRef], keys: list[str]) -> list[str]:
    """The short name of each session, which `find` knows among these; see `Sessions.short_ids`.

    Args:
        refs: the sessions.
        keys: the `short_key` of each.
    """
    ids = [ref.session_id for ref in refs]
    if keys == ids:  # no session of a sub-agent among them
        heads = [name[:SHORT] for name in ids]
        if len(set(heads)) == len(heads):
            return heads if _are_uuids(ids) else list(map(_shown, ids, heads))
    of_all = _beginnings(keys)
    of_first = _beginnings([name for name, key in zip(ids, keys, strict=True) if key == name])
    return [
        _shown(key, (of_first if key == name else of_all)[key]) for name, key in zip(ids, keys, strict=True)
    ]


def short_name(session_id: str, length: int = SHORT) -> str:
    """The beginning of a random id; any other id whole."""
    return _shown(session_id, session_id[:length])


def _are_uuids(ids: list[str]) -> bool:
    """True if all are; fast, since a list has ten thousand."""
    plain = "".join(ids)
    marks = all(len(name) == 36 and name[8:24:5] == "----" for name in ids)
    return marks and len(plain.translate(_NO_HEX)) == 4 * len(ids)


def _shown(key: str, short: str) -> str:
    """The short name of a random id, any other id whole."""
    return short if re.fullmatch(_RANDOM, key) else key


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
