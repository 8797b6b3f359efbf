"""The numbers of the last list: `list` prints a number before each row, and `show 3` opens that session.

Each terminal has the numbers of its own last list; in one without a list, those of the last list of the user count.
They are kept in the state folder of the user, and written only if they changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sessionary.cli import formatting
from sessionary.disk.fs import OS_FS, make_dirs, read_bytes
from sessionary.errors import NotFound, StorageFailed
from sessionary.model import SessionRef
from sessionary.xdg import file_in, state_folder

MOST = 1000
"""Number of rows of a list that are kept."""
TERMINALS = 16
"""Number of terminals whose last lists are kept."""
_NUMBER = re.compile(r"[1-9][0-9]{0,3}")


class _List(Struct, array_like=True):
    terminal: int
    rows: list[SessionRef]


def is_number(word: str) -> bool:
    """True for a word that may be the number of a row."""
    return _NUMBER.fullmatch(word) is not None


def remember(rows: Sequence[SessionRef]) -> int:
    """Keep the rows of a list; return how many may be numbered: none if the state folder cannot be written."""
    path, known, me = _path(), _known(), _terminal()
    kept = [*(one for one in known if one.terminal != me)][-(TERMINALS - 1) :]
    mine = list(rows[:MOST])
    if path is None:
        return 0
    if known and known[-1] == _List(me, mine):
        return len(mine)
    from sessionary.disk.atomic import replace  # here, since an equal list writes nothing

    try:
        make_dirs(OS_FS, os.path.dirname(path), durable=False)
        replace(path, [msgspec.json.encode([*kept, _List(me, mine)])], durable=False)
    except (StorageFailed, OSError, UnicodeEncodeError):
        return 0  # a number would mean a row of an older list
    return len(mine)


def session(word: str) -> SessionRef:
    """Return the session of a number in the last list of this terminal, or else of the user.

    Raises:
        NotFound: there was no list, or it has no such number.
    """
    known = _known()
    rows = next((one.rows for one in known if one.terminal == _terminal()), known[-1].rows if known else None)
    if rows is None:
        why = f"no session {word}: no list was printed yet"
        raise NotFound(why, session=word, hint="run `sessionary list` first, or give an id")
    if not rows[int(word) - 1 :]:
        why = f"no session {word}: the last list has {formatting.count(len(rows), 'session')}"
        raise NotFound(why, session=word, hint="run `sessionary list` again, or give more of an id")
    return rows[int(word) - 1]


def _known() -> list[_List]:
    path = _path()
    try:
        data = None if path is None else read_bytes(OS_FS, path)
        return [] if data is None else msgspec.json.decode(data, type=list[_List])
    except (StorageFailed, msgspec.MsgspecError):
        return []  # it can be made again


def _path() -> str | None:
    return file_in(state_folder(), "last-lists.json")


def _terminal() -> int:
    """The number of the terminal session, which the commands of one shell have in common."""
    return os.getsid(0) if hasattr(os, "getsid") else os.getppid()
