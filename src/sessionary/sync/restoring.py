"""Earlier versions of a session: listing those that the remote still has, and restoring one.

A head states where its journals ended before each rewind, and the earlier versions of a document that is a
conversation. Each such entry of its history is a generation. `sync gc` removes old ones, and a head keeps only a few.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import read_bytes, stat_or_none
from sessionary.disk.spooled_file import Spool
from sessionary.errors import Invalid, Locked, NotFound, RemoteError
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.blocks import block_id, id_range, part_key
from sessionary.sync.context import Context, Step
from sessionary.sync.download import MISSING, Theirs, fetch_version
from sessionary.sync.heads import Head, PartHead, Past, decode, head_name, kind_of
from sessionary.sync.install import refuse_strangers
from sessionary.sync.remote import stats_of

KEPT = "before"
"""The version that a restore replaced is kept as ``<file>.before-<time>``."""

_KEPT_NAME = re.compile(rf"(.+)\.{KEPT}-[^/]+", re.DOTALL)


class Generation(NamedTuple):
    """A version of a session, or a run of removed ones.

    Attributes:
        first: its number, or the first of the run.
        last: the same number, or the last of the run.
        at: time of its replacement; for the current version, of its push. By the clock of that device.
        files: number of blocks of each file on the remote, by name; empty if it was removed.
        present: it is the current version.
    """

    first: int
    last: int
    at: str
    files: dict[str, int]
    present: bool = False

    @property
    def is_gone(self) -> bool:
        """True if it was removed from the remote."""
        return not self.files and not self.present


class Restored(NamedTuple):
    """A file that was restored.

    Attributes:
        name: its path relative to the session's folder.
        path: its path.
        kept: path of the version that it replaced; None without one.
        size: its size in bytes.
    """

    name: str
    path: str
    kept: str | None
    size: int


class Earlier(Step):
    """Earlier versions of the sessions of one layout.

    Args:
        patience: seconds to wait for another synchronisation of this machine.
    """

    def __init__(self, context: Context, patience: float) -> None:
        super().__init__(context)
        self._patience = patience

    def generations(self, ref: SessionRef) -> list[Generation]:
        """Return the versions of a session, the newest first. Changes nothing.

        The last block of each earlier version is looked up: a store that was emptied has only its name.

        Raises:
            NotFound: the session was never pushed, or its project is unknown here.
            RemoteError, Corrupt, Unsupported: the head cannot be read.
        """
        head = self._head(ref)
        lost = [past.gen for past in head.history if not self._is_there(head, past)]
        history = tuple(past for past in head.history if past.gen not in lost)
        return generations(self._layout, msgspec.structs.replace(head, history=history))

    def _is_there(self, head: Head, past: Past) -> bool:
        for name, (number, chain) in past.tips.items():
            key = part_key(name)
            if number > 0:
                found = stats_of(self._remote, head.space, *id_range(key, number - 1, number))
                if block_id(key, number - 1, chain) not in (block.id for block in found):
                    return False
        return True

    def restore(self, ref: SessionRef, generation: int) -> list[Restored]:
        """Replace a session's journals, or its document, by an earlier version.

        The current version of each file is kept beside it. The next push sends the restored one as a new generation.

        Durability: each file is in its old or its new state, and the current one gets its second name before it is
        replaced.

        Raises:
            NotFound: the remote does not have this generation; or the session does not exist here.
            Locked: an agent has the session open, or another process holds it.
            Invalid: it is the current version, or that of a ledger.
            RemoteError, Corrupt: the remote cannot be read, and nothing was changed.
            StorageFailed: a file cannot be written; some files may be restored, and each current version is kept.
        """
        with self._alone(ref), self._states.spool() as spool:
            files = self._versions(self._head(ref), generation, spool)
            with self._layout.lock(ref):
                return [self._replace(ref, name, theirs.all(None)) for name, theirs in sorted(files.items())]

    def restore_kept(self, ref: SessionRef, kept: str) -> list[Restored]:
        """Restore a version that an earlier restore kept; the current one is kept in the same way.

        Durability: as `restore`.

        Raises:
            NotFound: the file does not exist.
            Locked, StorageFailed: as `restore`.
        """
        fs, layout = self._fs, self._layout
        match = _KEPT_NAME.fullmatch(os.path.basename(kept))
        name = None if match is None else _part_named(layout, ref, match[1])
        folder = os.path.dirname(layout.path_of(ref, name or ""))
        path = os.path.join(folder, os.path.basename(kept))
        if name is None or stat_or_none(fs, path) is None:
            raise NotFound(
                f"{ref.session_id} has no earlier version in {kept}",
                session=ref.session_id,
                hint=f"name a file `….{KEPT}-<time>` beside the restored file",
            )
        self._links.refuse_file(ref, path)
        with self._alone(ref), layout.lock(ref):
            return [self._replace(ref, name, (read_bytes(fs, path) or b"",))]

    @contextmanager
    def _alone(self, ref: SessionRef) -> Iterator[None]:
        """Exclude other synchronisations of this machine, agents in the session, and links out of the store."""
        self._links.refuse(ref)
        with self._states.lock().once(self._patience, note="sync"):
            if why := self._in_use(ref):
                raise Locked(
                    f"{ref.session_id} is not changed: {why if isinstance(why, str) else 'it is open'}",
                    operation="restore",
                    path=ref.locator,
                    session=ref.session_id,
                    hint="end the agent that uses it; if there is none, wait a moment, or use --quiet 0",
                )
            yield

    def _head(self, ref: SessionRef) -> Head:
        layout = self._layout
        name = head_name(layout.name, self._projects.identity(ref), ref.session_id)
        record = self._remote.read_head(name)
        if record is None:
            raise NotFound(
                f"{ref.session_id} was never pushed, so the remote has no earlier version of it",
                session=ref.session_id,
                hint="`sessionary sync push` sends it",
            )
        head = decode(name, record.data)
        refuse_strangers(layout, head)
        return head

    def _versions(self, head: Head, generation: int, spool: Spool) -> dict[str, Theirs]:
        """Return the files of a generation, fetched and verified. Raises as `restore`."""
        past = next((past for past in head.history if past.gen == generation), None)
        if past is None:
            raise _no_generation(head, generation)
        for name in past.tips:
            _refuse(self._layout, head, name)
        fetched = {}
        for name, (n, chain) in past.tips.items():
            try:
                fetched[name] = fetch_version(self._remote, head.space, name, n, chain, spool)
            except RemoteError as error:
                if MISSING not in error.details:
                    raise
                raise _gone(head, generation) from error
            for _ in fetched[name].rest(None):
                pass
        return fetched

    def _replace(self, ref: SessionRef, name: str, data: Iterable[bytes]) -> Restored:
        fs, path = self._fs, self._layout.path_of(ref, name)
        self._links.refuse_file(ref, path)
        there = stat_or_none(fs, path) is not None
        kept = atomic.quarantine(path, KEPT, fs=fs, now=self._now()) if there else None
        atomic.replace(path, data, fs=fs)
        return Restored(name, path, kept, fs.stat(path).st_size)


def generations(layout: SyncLayout, head: Head) -> list[Generation]:
    """Return the generations of a head, the newest first; a run of removed ones is one entry."""
    files = {part.name: part.n for part in head.parts if _is_versioned(layout, part)}
    found = [Generation(head.gen, head.gen, head.at, files, present=True)]
    for past in sorted(head.history, key=lambda past: past.gen, reverse=True):
        if past.gen >= found[-1].first:
            continue  # no client writes such a head
        if past.gen + 1 < found[-1].first:
            found.append(Generation(past.gen + 1, found[-1].first - 1, "", {}))
        found.append(Generation(past.gen, past.gen, past.at, {name: n for name, (n, _) in past.tips.items()}))
    if found[-1].first > 0:
        found.append(Generation(0, found[-1].first - 1, "", {}))
    return found


def _part_named(layout: SyncLayout, ref: SessionRef, base: str) -> str | None:
    """Return the part of a session that has this file name."""
    only = layout.single_file(ref.session_id)
    if only is not None:
        return only if base == os.path.basename(layout.path_of(ref, only)) else None
    return base if layout.part_kind(base) is not None else None


def _is_versioned(layout: SyncLayout, part: PartHead) -> bool:
    kind = kind_of(part)
    if kind in (PartKind.JOURNAL, PartKind.LOG):
        return layout.rule(part.name).policy is not Policy.LEDGER
    return kind is PartKind.DOCUMENT and layout.rule(part.name).policy is Policy.FORK


def _refuse(layout: SyncLayout, head: Head, name: str) -> None:
    if layout.part_kind(name) is None:
        raise Invalid(f"the history of {head.session} names {name!r}, which such a session cannot have")
    if layout.rule(name).policy is Policy.LEDGER:
        raise Invalid(
            f"{name} is a ledger: an earlier one would let its consumer apply messages again",
            session=head.session,
            hint="`sessionary work ledger` has the commands for ledgers",
        )


def _no_generation(head: Head, generation: int) -> Invalid | NotFound:
    if generation == head.gen:
        return Invalid(
            f"generation {generation} of {head.session} is the current one",
            session=head.session,
            hint="`sessionary sync pull` brings it here",
        )
    if 0 <= generation < head.gen:
        return _gone(head, generation)
    return NotFound(
        f"{head.session} has no generation {generation}: the current one is {head.gen}",
        session=head.session,
        hint=f"`sessionary sync history {head.session}` lists them",
    )


def _gone(head: Head, generation: int) -> NotFound:
    return NotFound(
        f"generation {generation} of {head.session} was removed from the remote",
        session=head.session,
        hint=f"`sessionary sync history {head.session}` lists those that can be restored",
    )
