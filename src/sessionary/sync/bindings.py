"""Bindings of folders without a repository to the projects that all machines share.

Such a folder has nothing but its name, and two folders may have the same one. The first folder of a name is
``folder:<name>``; each further one is ``folder:<name>#<8 hex>``. The choice is remembered by path, so it never changes
by itself. Where a remote holds projects of that name already, a folder is bound to one of them automatically only if
there is exactly one folder and exactly one project; otherwise a user binds it, because a wrong guess would mix the
sessions of two projects.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_folder, read_bytes, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import NotFound, RemoteError, SessionaryError
from sessionary.sync.heads import decode
from sessionary.sync.remote import HeadRecord

PREFIX = "folder:"
BELOW = "//"
_SUFFIX = re.compile(r"#[0-9a-f]{8}\Z")


def folder_name(folder: str) -> str:
    """``folder:<name>`` for a folder; bytes of the name that are not UTF-8 are replaced, since heads are UTF-8."""
    return PREFIX + os.fsencode(os.path.basename(folder)).decode("utf-8", "replace")


def without_way(identity: str) -> str:
    """An identity without the path from the top of its project."""
    return identity.partition(BELOW)[0]


def base_of(identity: str) -> str | None:
    """The name that a folder's identity is derived from, ``folder:app`` for ``folder:app#0a1b2c3d//x``; else None."""
    return _SUFFIX.sub("", without_way(identity)) if identity.startswith(PREFIX) else None


def identities_in(records: Iterable[HeadRecord]) -> Iterator[str]:
    """Yield the projects of all sessions of these heads that are not in the trash. Unreadable heads are left out."""
    for record in records:
        try:
            head = decode(record.name, record.data)
        except SessionaryError:
            continue  # a pull reports it
        if head.project is not None and not head.deleted:
            yield head.project


class Bindings:
    """The folders of this machine without a repository, and the projects that they are bound to on one remote.

    Args:
        path: the file that remembers them; None to remember nothing beyond this object.
        identities: the identities of all projects on the remote. Listed once, when the first unbound folder is met.
        keep: False to decide without remembering: for commands that change nothing.
        waits: False for programs without a user: a folder that cannot be bound automatically becomes a project of its
            own.
        machine: the name of this machine; part of the hash behind ``#``, so that machines do not share one by chance.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        identities: Callable[[], Iterable[str]] = tuple,
        keep: bool = True,
        waits: bool = True,
        machine: str | None = None,
        fs: Fs = OS_FS,
    ) -> None:
        self._path = path
        self._ask = identities
        self._keep = keep and path is not None
        self._waits = waits
        self._machine = platform.node() if machine is None else machine
        self._fs = fs
        self._unwritten: dict[str, str] = {}
        self._there: frozenset[str] | RemoteError | None = None

    def known(self) -> dict[str, str]:
        """The identity of each bound folder, by its path. A file that cannot be parsed counts as empty."""
        return {**self._read(), **self._unwritten}

    def there(self) -> frozenset[str]:
        """The identities of folders on the remote.

        Raises:
            RemoteError: the remote could not be asked; not repeated for this object.
        """
        if self._there is None:
            try:
                self._there = frozenset(without_way(one) for one in self._ask() if base_of(one) is not None)
            except RemoteError as error:
                self._there = error
        if isinstance(self._there, RemoteError):
            raise self._there
        return self._there

    def identity(self, base: str, folder: str, alike: Callable[[], Iterable[str]]) -> str:
        """The identity of a folder, which is bound by that if it was not.

        Args:
            base: ``folder:<name>``.
            folder: its real path.
            alike: finds the real paths of all folders here that have this name.

        Durability: a new binding survives a power cut before it is returned.

        Raises:
            NotFound: a user has to decide; ``details["identities"]`` names the possible projects.
            RemoteError: the remote could not be asked which projects it has.
        """
        found = self.known().get(folder)
        if found is not None:
            return found
        there = {one for one in self.there() if base_of(one) == base}
        with self._changing() as known:
            found = known.get(folder) or self._decide(base, folder, set(alike()), known, there)
            _bind(known, folder, found)
        return found

    def own(self, base: str, folder: str) -> str:
        """The identity of a folder on this machine that is not the first of its name."""
        digest = sha256(os.fsencode(self._machine) + b"\0" + os.fsencode(folder)).hexdigest()
        return f"{base}#{digest[:8]}"

    def bind(self, folder: str, identity: str | None, base: str) -> str:
        """Bind a folder as a user decided; None for a new project of its own. Returns the identity.

        Durability: survives a power cut.

        Raises:
            StorageFailed, Locked: as `identity`; nothing has changed.
        """
        with self._changing() as known:
            chosen = identity or self._new(base, folder, set(known.values()) | self.there())
            _bind(known, folder, chosen)
        return chosen

    def _decide(
        self, base: str, folder: str, alike: set[str], known: Mapping[str, str], there: Collection[str]
    ) -> str:
        bound = {
            path: one for path, one in known.items() if base_of(one) == base and not self._moved_away(path)
        }
        folders = {path for path in alike if path not in known} | bound.keys() | {folder}
        taken = set(bound.values())
        free = set(there) - taken
        if not free:
            return self._new(base, folder, taken)
        if len(folders) == 1 and len(free | taken) == 1:
            return free.pop()
        if not self._waits:
            return self.own(base, folder)
        identities = sorted(there)
        raise NotFound(
            f"{folder} is not bound to a project: the remote has {', '.join(identities)}",
            path=folder,
            details={"identities": identities},
            hint="`sessionary sync project bind DIR IDENTITY` binds it; with --new instead of IDENTITY it becomes "
            "a new project",
        )

    def _new(self, base: str, folder: str, taken: Collection[str]) -> str:
        # A folder that is itself called `app#0a1b2c3d` would be taken for a further `app`.
        return base if base not in taken and base_of(base) == base else self.own(base, folder)

    def _moved_away(self, path: str) -> bool:
        """True if a folder is gone from a disk that is there."""
        return (
            stat_or_none(self._fs, path) is None and stat_or_none(self._fs, os.path.dirname(path)) is not None
        )

    @contextmanager
    def _changing(self) -> Iterator[dict[str, str]]:
        """A block with the known bindings, to be changed; they are written at its end."""
        if not self._keep or self._path is None:
            known = self.known()
            yield known
            self._unwritten = known
            return
        make_folder(self._fs, os.path.dirname(self._path))
        with FileLock(self._path + ".lock", self._fs).once(note="sync"):
            before = self._read()
            known = dict(before)
            yield known
            if known != before:
                text = json.dumps(known, indent=1, sort_keys=True)  # paths may be any bytes: escaped
                atomic.replace(self._path, (text.encode("ascii"), b"\n"), fs=self._fs)

    def _read(self) -> dict[str, str]:
        data = None if self._path is None else read_bytes(self._fs, self._path)
        try:
            found = json.loads(data or b"{}")
        except ValueError:
            return {}  # then each folder is decided anew, and in doubt by the user
        pairs = found.items() if isinstance(found, dict) else ()
        return {path: one for path, one in pairs if isinstance(one, str) and base_of(one) is not None}


def _bind(known: dict[str, str], folder: str, identity: str) -> None:
    for path in [path for path, one in known.items() if one == identity]:
        del known[path]
    known[folder] = identity
