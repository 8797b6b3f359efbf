"""HybridSessionStore: writes locally as `SessionStore` does, and notifies background sync.

Writes are local and durable, and need no network; background sync sends them later (`sync.background_sync`). So a
save neither waits for the network nor fails because of it, and a program can start offline. There is no queue in
memory or on disk: the files are compared with what the remote is known to have. Whatever was not sent when a program
ended, even by a crash, is found by the next one that opens the store.

Nothing is pulled automatically. `pull` brings new versions, but leaves sessions alone that are open in this store, or
in any program of this machine that reports it (`layouts.amplifier.presence`): those are only reported.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from sessionary.disk.fs import Fs, expanded
from sessionary.disk.lifetime import ClosedOnExit, reset_in_child
from sessionary.errors import Invalid, StorageFailed
from sessionary.hybrid.results import PullResult, SyncResult
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, path_slug
from sessionary.layouts.amplifier.presence import QUIET
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.write_op import OnConflict, Report
from sessionary.xdg import file_in, state_folder

if TYPE_CHECKING:  # a store without a remote does not load remote code
    from sessionary.hybrid.project import Chosen
    from sessionary.hybrid.sync_worker import SyncWorker
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.sync.cosmos_config import CosmosConfig
    from sessionary.sync.remote import Remote

CLOSING = 2.0
"""Seconds that `close` waits for unsent sessions."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _writes(method: _Method) -> _Method:
    """Wrap a method: report its write afterwards, also after a failure, which may have stored something."""

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


class HybridSessionStore(SessionStore, ClosedOnExit):
    """A `SessionStore` that synchronises its sessions with a remote.

    The user's settings of ``sync init`` about projects and redaction also apply here, and its encryption to the
    remote that it was chosen for.

    Writing, reading and deleting work as in `SessionStore`. Changes are sent two seconds after the last write, or
    when 64 kB have come together, or after 30 seconds. Creating a store neither uses the network nor loads a driver,
    and cannot fail without them. A forked child has its own thread and connection.

    Args:
        base_dir: as of `SessionStore`.
        cosmos_config: the database; None for a local store: its `sync` and `pull` do nothing.
        sync_enabled: False for a local store, whatever else is given.
        state_dir: the folder of the sync state; by default ``$XDG_STATE_HOME/sessionary/sync``, else
            ``~/.local/state/sessionary/sync``. Disposable: without it everything is compared again.
        durability: as of `SessionStore`.
        on_conflict: as of `SessionStore`.
        remote: a factory of another remote, instead of `cosmos_config`: called when the connection is first needed,
            and again in a forked child. Each remote needs its own `state_dir`.
        tenant: the owner of the sessions, the same on all machines of a user. By default the name of the account, or
            ``me`` for shared account names such as root.
        project: the name of this project on all machines. By default, if `base_dir` is in a home
            (``projects/<project>/sessions``), the name of its repository (`sync.identity`), without one the name of
            its folder (`sync.bindings`), or its local name if the folder is missing; elsewhere the path of
            `base_dir`.
        event_logs: synchronise events.jsonl too. An event that this program appends schedules its session, as a save
            does; events of other programs are sent with the next change, or when the store is closed.
        quiet: seconds without a change before a `pull` may change a session that was not reported as closed.

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
        self._worker: SyncWorker | None = None
        self._sizes: dict[str, int] = {}
        if cosmos_config is not None and remote is not None:
            raise Invalid("cosmos_config and remote are both given", hint="a store has one remote")
        if not sync_enabled or (cosmos_config is None and remote is None):
            return
        from sessionary.hybrid.project import Chosen, Place
        from sessionary.hybrid.sync_worker import SyncWorker
        from sessionary.sync import settings as sync_settings
        from sessionary.sync.settings import Settings, bindings_file, usual_tenant

        tenant, chosen = tenant or usual_tenant(os.environ), Chosen.of_user()
        home, named = _home_of(self._root)
        base = _state_dir(state_dir)
        connect, address = _side(cosmos_config, remote, tenant, base, chosen)
        settings = Settings(address, tenant, device="")
        state = sync_settings.state_folder(base, settings, home or self._root, "amplifier")
        bindings, folder = bindings_file(base, settings), _folder_of_project(named)
        called = project or (None if home else named)  # the project of a home is named by its repository
        self._worker = SyncWorker(
            Place(self._root, named, called, folder, home, state, bindings, event_logs, chosen, quiet),
            connect,
        )
        _stores.add(self)
        weakref.finalize(self, self._worker.forgotten).atexit = False

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
        if store._worker is not None:
            store._worker.use(fs, store._now)
        return store

    # -- remote

    async def sync(self) -> SyncResult:
        """Send all local changes now.

        A network failure raises nothing: it is in the result, and unsent changes are sent later automatically.

        Durability: a session that counts as pushed can be pulled everywhere from then on.
        """
        return SyncResult() if self._worker is None else await asyncio.to_thread(self._worker.push)

    async def pull(self) -> PullResult:
        """Fetch all changes from the remote now.

        Sessions that were continued here and elsewhere are both kept: the local version becomes a session of its own,
        with the other as its parent. Open sessions (loaded or written to in this store, and not released) are left
        unchanged, and counted as held back.

        Durability: a session that counts as pulled survives a power cut.

        Raises:
            Unsupported: this installation cannot access the remote; the hint says what to install.
        """
        return PullResult() if self._worker is None else await asyncio.to_thread(self._worker.pull)

    async def resolve(self, session_id: str, keep: str) -> SyncResult:
        """Decide which version of a damaged file is kept, where `sync` or `pull` hold one back.

        `repair` and `restore_backup` settle it too, if they recover everything.

        Args:
            session_id: the session.
            keep: ``mine`` sends the local version as it is; ``theirs`` takes that of the remote, and keeps the local
                one beside it as ``<file>.conflict-<time>``.

        Durability: as `sync`, or as `pull`.

        Raises:
            Invalid: `keep` is neither, or nothing of the session is held back.
        """
        if self._worker is None:
            raise Invalid("this store has no remote, so nothing is held back", session=session_id)
        return await asyncio.to_thread(self._worker.resolve, session_id, keep)

    @property
    def unsent(self) -> list[str]:
        """Return the ids of sessions that are not known to be up to date on the remote, sorted.

        Includes sessions that an earlier program left unsent, and those that the remote refuses. Examines each
        session, about 0.1 ms for an unchanged one, and does not use the network.

        Raises:
            Invalid, NotFound: the settings of `sync init` cannot be read.
            StorageFailed: the sessions cannot be listed.
        """
        return [] if self._worker is None else self._worker.unsent()

    @property
    def last_sync(self) -> SyncResult | None:
        """Result of the last background delivery; None before the first."""
        return None if self._worker is None else self._worker.last

    def release(self, session_id: str) -> None:
        """Report a session as closed here, so that a `pull` may change it."""
        if self._worker is not None:
            self._worker.release(self._folder_of(session_id))

    def close(self, timeout: float = CLOSING) -> None:
        """Send unsent changes, for at most `timeout` seconds, and stop background sync. Never raises.

        Changes that earlier programs left are sent too, as time allows. The next store on the same folder sends the
        rest. The store can still be written to, but sends nothing any more. At the end of the program all open stores
        do the same, in two seconds together.
        """
        if self._worker is not None:
            self._worker.end(timeout)

    # -- methods of SessionStore that also notify background sync

    if not TYPE_CHECKING:  # type checkers see the methods of SessionStore, whose types are the same
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
        if self._worker is not None:
            self._worker.opened(session_id, self._folder_of(session_id))
        return loaded

    # -- notification

    def _written(self, session_id: str) -> None:
        if self._worker is not None:
            self._worker.opened(session_id, self._folder_of(session_id))
            self._touched(session_id)

    def _touched(self, session_id: str) -> None:
        if self._worker is not None:
            self._worker.background.touched(session_id, self._growth(session_id))

    def _growth(self, session_id: str) -> int:
        """Return the approximate growth of a session's files in bytes since the last notification."""
        session = self._pool.get(self._folder_of(session_id), self._fs, self._now)
        size = session.transcript.journal.size
        before, self._sizes[session_id] = self._sizes.get(session_id, size), size
        return abs(size - before)

    def _after_fork(self) -> None:
        if self._worker is not None:
            self._worker.forget_parent()


def _home_of(base_dir: str) -> tuple[str | None, str]:
    """Return the home that contains a store, if any, and the local name of its project."""
    above, last = os.path.split(base_dir)
    projects, project = os.path.split(above)
    home, folder = os.path.split(projects)
    if last == SESSIONS and folder == PROJECTS and project:
        return home, project
    return None, path_slug(base_dir)


def _folder_of_project(named: str) -> str | None:
    """Return the folder of the project, if it is the current directory."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return None  # the current directory was removed
    return here if path_slug(here) == named else None


def _side(
    config: CosmosConfig | None, remote: Callable[[], Remote] | None, tenant: str, base: str, chosen: Chosen
) -> tuple[Callable[[], Remote], str]:
    """Return a function that connects the remote, and the address that identifies its local state."""
    if config is None:
        assert remote is not None
        return remote, ""
    address = config.address

    def connect() -> Remote:
        from sessionary.sync.remotes import protected
        from sessionary.sync.remotes.cosmos import CosmosRemote
        from sessionary.sync.settings import CacheFile, Settings, cache_path

        cache = CacheFile(cache_path(base, Settings(address, tenant, device="")))
        return protected(CosmosRemote(config, tenant=tenant, cache=cache), chosen.identity(config))

    return connect, address


def _state_dir(given: str | os.PathLike[str] | None) -> str:
    if given is not None:
        return os.path.abspath(expanded(given))
    folder = file_in(state_folder(), "sync")
    if folder is None:
        raise Invalid("no folder for the sync state", hint="give state_dir, or set HOME")
    return folder


_stores: weakref.WeakSet[HybridSessionStore] = weakref.WeakSet()


def _at_exit() -> None:
    """Report all sessions as closed at exit; background sync ends by itself."""
    for store in list(_stores):
        if store._worker is not None:
            store._worker.release_all()


atexit.register(_at_exit)
reset_in_child(_stores, HybridSessionStore._after_fork)
