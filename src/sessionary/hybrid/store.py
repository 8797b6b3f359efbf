"""The store itself: writes here, as `SessionStore` does, and tells the courier.

What it writes, it writes here, durably, and asks no network for it; a courier carries it afterwards (`sync.courier`).
So a save neither waits for a network nor fails because of one, and a program that starts offline works. Nothing waits
in memory or in a queue to be sent: the files are compared with what the other side is known to have. What was not sent
when a program ended, however it ended, is found by the next one that opens the store.

Coming the other way is never done behind anybody's back. `pull` brings what is new there, but leaves alone what is open
in this store, or in any program of this machine that says so (`layouts.amplifier.presence`): that is only announced.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from sessionary.disk.fs import Fs, expanded
from sessionary.errors import Invalid, StorageFailed
from sessionary.hybrid.results import PullResult, SyncResult
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, path_slug
from sessionary.layouts.amplifier.presence import QUIET
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.write_op import OnConflict, Report
from sessionary.xdg import xdg_folder

if TYPE_CHECKING:  # a store that has no other side does not load what speaks to one
    from sessionary.hybrid.chosen import Chosen
    from sessionary.hybrid.sync_worker import Carrier
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.sync.cosmos_config import CosmosConfig
    from sessionary.sync.remote import Remote

CLOSING = 2.0
"""Seconds that `close` waits for what is not sent yet."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _writes(method: _Method) -> _Method:
    """The method, and what it has written told of afterwards; also where the disk refused: something may be there."""

    @wraps(method)
    def call(self: HybridSessionStore, session_id: str, *arguments: Any, **options: Any) -> Any:
        try:
            result = method(self, session_id, *arguments, **options)
        except StorageFailed:
            self._written(session_id)
            raise
        self._written(session_id)
        return result

    return cast("_Method", call)


class HybridSessionStore(SessionStore):
    """A `SessionStore` that also carries its sessions to another side and back.

    What a person has chosen with ``sync init`` about what is left out and what is blacked out holds here too, and its
    encryption for the remote that it was chosen for.

    Writing, reading and deleting are those of `SessionStore`. What was written is sent when nothing was written for two
    seconds, or 64 kB have come together, or 30 seconds are over. Making a store neither asks the network nor loads a
    driver, and cannot fail for want of either. A forked child has a courier and a connection of its own.

    Args:
        base_dir: as of `SessionStore`.
        cosmos_config: which database; None for a store that is local only: its `sync` and `pull` do nothing.
        sync_enabled: False for one that is local only, whatever else is given.
        state_dir: where this machine remembers who it is and what the other side has; by default
            ``$XDG_STATE_HOME/sessionary/sync``, else ``~/.local/state/sessionary/sync``. Disposable: without it
            everything is compared anew.
        durability: as of `SessionStore`.
        on_conflict: as of `SessionStore`.
        remote: any other side in place of a `cosmos_config`: makes the connection when it is first needed, and once
            more in a forked child. Each other side then needs a `state_dir` of its own.
        tenant: whose sessions they are, the same on all machines of a person. By default the name of the account, or
            ``me`` if that is nobody's own.
        project: what this project is called on all machines. By default, where `base_dir` lies in a home
            (``projects/<project>/sessions``), it is called by its repository (`sync.identity`), without one by the name
            of its folder (`sync.bindings`), or by its name there if its folder is not here; elsewhere it is called by
            the path of `base_dir`.
        event_logs: carry events.jsonl too. An event that this program appends makes its session due, as a save does;
            what others append goes with the next change, or when the store is closed.
        quiet: seconds for which a session must have been left alone before a `pull` changes it, where nobody has said
            that it is closed.

    Raises:
        Invalid: both `cosmos_config` and `remote` are given, or there is no place for `state_dir`.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None = None,
        cosmos_config: CosmosConfig | None = None,
        sync_enabled: bool = True,
        *,
        state_dir: str | os.PathLike[str] | None = None,
        durability: str = "full",
        on_conflict: OnConflict = "keep_both",
        remote: Callable[[], Remote] | None = None,
        tenant: str | None = None,
        project: str | None = None,
        event_logs: bool = False,
        quiet: float = QUIET,
    ) -> None:
        super().__init__(base_dir, durability=durability, on_conflict=on_conflict)
        self._carrier: Carrier | None = None
        self._sizes: dict[str, int] = {}
        if cosmos_config is not None and remote is not None:
            raise Invalid("cosmos_config and remote are both given", hint="a store has one other side")
        if not sync_enabled or (cosmos_config is None and remote is None):
            return
        from sessionary.hybrid.chosen import Chosen
        from sessionary.hybrid.project import Place
        from sessionary.hybrid.sync_worker import Carrier
        from sessionary.sync.settings import Settings, bindings_file, state_folder, usual_tenant

        tenant, chosen = tenant or usual_tenant(os.environ), Chosen.of_person()
        home, named = _home_of(self._root)
        base = _state_dir(state_dir)
        connect, address = _side(cosmos_config, remote, tenant, base, chosen)
        settings = Settings(address, tenant, device="")
        state = state_folder(base, settings, home or self._root, "amplifier")
        bindings, folder = bindings_file(base, settings), _folder_of_project(named)
        called = project or (None if home else named)  # what lies in a home is called by its repository
        self._carrier = Carrier(
            Place(self._root, named, called, folder, home, state, bindings, event_logs, chosen, quiet),
            connect,
        )
        self._carrier.look_through()
        self._carrier.listen()
        _stores.add(self)
        weakref.finalize(self, self._carrier.forgotten).atexit = False

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        base_dir: str | os.PathLike[str],
        *,
        now: Callable[[], datetime] | None = None,
        **options: Any,
    ) -> Self:
        store = super().with_fs(fs, base_dir, now=now, **options)
        if store._carrier is not None:
            store._carrier.use(fs, store._now)
        return store

    # -- the other side

    async def sync(self) -> SyncResult:
        """Send what is new here, now.

        A network that fails is no exception: it is told in the result, and what was not sent goes later by itself.

        Durability: a session that counts as pushed can be pulled everywhere from then on.
        """
        return SyncResult() if self._carrier is None else await asyncio.to_thread(self._carrier.push)

    async def pull(self) -> PullResult:
        """Bring here what is new on the other side.

        Sessions that were continued here and elsewhere are both kept: what was here becomes a session of its own, with
        the other as its parent. Sessions that are open (in this store: loaded or written to, and not released) are left
        as they are, and counted as held back.

        Durability: a session that counts as pulled survives a power cut.

        Raises:
            Unsupported: this installation cannot speak to the other side; the hint says what to install.
        """
        return PullResult() if self._carrier is None else await asyncio.to_thread(self._carrier.pull)

    async def resolve(self, session_id: str, keep: str) -> SyncResult:
        """Decide which version of a damaged file stands, where `sync` or `pull` hold one back.

        `repair` and `restore_backup` settle it, too, as far as they bring everything back.

        Args:
            session_id: the session.
            keep: ``mine`` sends the version here as it is; ``theirs`` takes that of the remote, and keeps the one here
                beside it as ``<file>.conflict-<time>``.

        Durability: as `sync`, or as `pull`.

        Raises:
            Invalid: `keep` is neither, or nothing of the session is held back.
        """
        if self._carrier is None:
            raise Invalid("this store has no remote, so nothing is held back", session=session_id)
        return await asyncio.to_thread(self._carrier.resolve, session_id, keep)

    @property
    def unsent(self) -> list[str]:
        """The sessions that are not known to be on the other side as they are here, in the order of their ids.

        Those that an earlier program left unsent are among them, and those that the other side refuses. Looks at each
        session, about 0.1 ms for one that has not changed, and asks nothing of the network.

        Raises:
            Invalid, NotFound: what was chosen with `sync init` cannot be read.
            StorageFailed: the sessions cannot be listed.
        """
        return [] if self._carrier is None else self._carrier.unsent()

    @property
    def last_sync(self) -> SyncResult | None:
        """What the last delivery of the courier did; None before the first."""
        return None if self._carrier is None else self._carrier.last

    def release(self, session_id: str) -> None:
        """Say that a session is not open here any more, so that a `pull` may change it."""
        if self._carrier is not None:
            self._carrier.release(self._folder_of(session_id))

    def close(self, timeout: float = CLOSING) -> None:
        """Send what is not sent yet, for at most so many seconds, and end the courier. Never raises.

        What earlier programs left is sent too, as far as the time allows. What is left is sent by the next store over
        the same folder. This one can still be written to; it only carries nothing any more. The end of the program does
        the same for all stores that are open, in two seconds together.
        """
        if self._carrier is not None:
            self._carrier.end(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what SessionStore does, and the courier told of it

    save = _writes(SessionStore.save)
    append = _writes(SessionStore.append)
    update_metadata = _writes(SessionStore.update_metadata)
    save_config_snapshot = _writes(SessionStore.save_config_snapshot)
    rewind = _writes(SessionStore.rewind)
    repair = _writes(SessionStore.repair)
    restore_backup = _writes(SessionStore.restore_backup)
    restore_conflict = _writes(SessionStore.restore_conflict)

    def fork(self, *arguments: Any, **options: Any) -> ForkResult:
        result = super().fork(*arguments, **options)
        self._touched(result.session_id)
        return result

    def undo(self, session_id: str | None = None) -> str:
        done = super().undo(session_id)
        self._touched(done)
        return done

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        super().delete(session_id, erase=erase)
        self.release(session_id)
        self._touched(session_id)

    def _clean_up(self, session_id: str, *, erase: bool) -> None:
        super()._clean_up(session_id, erase=erase)
        self.release(session_id)  # nothing to send: a clean-up by age is of this device only

    def load_with_report(self, session_id: str) -> tuple[list[dict[str, Any]], dict[str, Any], Report]:
        loaded = super().load_with_report(session_id)
        if self._carrier is not None:
            self._carrier.opened(session_id, self._folder_of(session_id))
        return loaded

    # -- how it is told

    def _written(self, session_id: str) -> None:
        if self._carrier is not None:
            self._carrier.opened(session_id, self._folder_of(session_id))
            self._touched(session_id)

    def _touched(self, session_id: str) -> None:
        if self._carrier is not None:
            self._carrier.courier.touched(session_id, self._growth(session_id))

    def _growth(self, session_id: str) -> int:
        """By how many bytes about a conversation is another than when it was last told of."""
        last = self._last
        if last is None or last.session_id != session_id:
            return 0
        size = last.transcript.journal.size
        before, self._sizes[session_id] = self._sizes.get(session_id, size), size
        return abs(size - before)

    def _after_fork(self) -> None:
        if self._carrier is not None:
            self._carrier.forget_parent()


def _home_of(base_dir: str) -> tuple[str | None, str]:
    """The home in which a store lies, if it lies in one, and what its project is called on this machine."""
    above, last = os.path.split(base_dir)
    projects, project = os.path.split(above)
    home, folder = os.path.split(projects)
    if last == SESSIONS and folder == PROJECTS and project:
        return home, project
    return None, path_slug(base_dir)


def _folder_of_project(named: str) -> str | None:
    """Where the project lies, if it is the one that this program works in."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return None  # it was removed under us
    return here if path_slug(here) == named else None


def _side(
    config: CosmosConfig | None,
    remote: Callable[[], Remote] | None,
    tenant: str,
    base: str,
    chosen: Chosen,
) -> tuple[Callable[[], Remote], str]:
    """How the other side is connected, and its address, by which what is remembered of it is found again."""
    if config is None:
        assert remote is not None
        return remote, ""
    address = config.address

    def connect() -> Remote:
        from sessionary.sync.cache_file import CacheFile
        from sessionary.sync.remotes.cosmos import CosmosRemote
        from sessionary.sync.remotes.plain import PlainRemote
        from sessionary.sync.remotes.sealed import SealedRemote
        from sessionary.sync.settings import Settings, cache_path

        cache = CacheFile(cache_path(base, Settings(address, tenant, device="")))
        inner, identity = CosmosRemote(config, tenant=tenant, cache=cache), chosen.identity(config)
        return PlainRemote(inner) if identity is None else SealedRemote(inner, identity)

    return connect, address


def _state_dir(given: str | os.PathLike[str] | None) -> str:
    if given is not None:
        return os.path.abspath(expanded(given))
    folder = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if folder is None:
        raise Invalid(
            "there is no place to remember what the other side has", hint="give state_dir, or set HOME"
        )
    return os.path.join(folder, "sync")


_stores: weakref.WeakSet[HybridSessionStore] = weakref.WeakSet()


def _at_exit() -> None:
    """Leave in good order; the couriers see to themselves."""
    for store in list(_stores):
        if store._carrier is not None:
            store._carrier.release_all()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store._after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
