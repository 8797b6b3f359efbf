"""Synchronisation: the remote of the settings, and the local sessions that are compared with it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path

from sessionary.errors import (
    AmbiguousId,
    Invalid,
    Locked,
    NotFound,
    RemoteError,
    SessionaryError,
    StorageFailed,
)
from sessionary.layouts.session_ids import LATEST, ids_named
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.bindings import Bindings, identities_in
from sessionary.sync.cosmos_config import load_cosmos_config_from_settings
from sessionary.sync.engine import QUIET, Engine
from sessionary.sync.gc.leftovers import Leftovers, count_leftovers
from sessionary.sync.gc.removal import Removal, Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.identity import Repositories
from sessionary.sync.remote import HeadRecord, OpenRemote, Remote, heads_by_name
from sessionary.sync.remotes import COSMOS_KEY, cosmos_address, open_remote
from sessionary.sync.report import Report, SyncStatus, joined, of_unknown_kinds
from sessionary.sync.retry import Cost, RetryingRemote
from sessionary.sync.settings import (
    CacheFile,
    Settings,
    bindings_file,
    cache_path,
    load_settings,
    read_identity,
    removed_folder,
    settings_file,
    state_folder,
    usual_tenant,
)
from sessionary.workspace.sessions import Sessions
from sessionary.xdg import xdg_folder

_OF_AGENTS = "amplifier"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A remote, and the settings of what is synchronised with it.

    Attributes:
        settings: the settings.
        secrets: where the remote looks for credentials; None for the environment.
    """

    settings: Settings
    secrets: Mapping[str, str] | None = None

    def connect(self, state: str | None = None) -> OpenRemote:
        """Open the remote, without network access. Raises as `open_remote` and `read_identity`."""
        settings = self.settings
        return open_remote(
            settings.remote,
            settings.tenant,
            options=settings.options,
            identity=None if settings.encrypt is None else read_identity(settings.encrypt),
            environ=self.secrets,
            cache=None if state is None else CacheFile(cache_path(state, settings)),
        )


def settings_at(path: Path | None) -> Path:
    """The settings file. Raises Invalid if its folder cannot be determined."""
    if path is not None:
        return path
    usual = settings_file()
    if usual is None:
        raise Invalid("no home directory for the settings", hint="use --settings FILE")
    return Path(usual)


def chosen(path: Path | None) -> Chosen:
    """The remote of `sync init`, else the Cosmos DB that programs of the agent use.

    Args:
        path: the settings file given by the user. Without it, a missing file is not an error if Cosmos DB is
            configured for programs: in the environment, or in the settings file of the agent.

    Raises:
        NotFound: nothing was set up.
        Corrupt, Invalid: it is damaged.
    """
    try:
        return of_settings(load_settings(settings_at(path)))
    except NotFound:
        config = None if path is not None else load_cosmos_config_from_settings()
        if config is None:
            raise
        settings = Settings(config.address, usual_tenant(os.environ), platform.node() or "unnamed")
        return Chosen(settings, {} if config.key is None else {COSMOS_KEY[0]: config.key})


def of_settings(settings: Settings) -> Chosen:
    """Add the key of the agent's settings file, if it names the same container and the environment has no key."""
    address = cosmos_address(settings.remote)
    if address is not None and not any(os.environ.get(name) for name in COSMOS_KEY):
        with suppress(SessionaryError):  # that file is not the one in use
            config = load_cosmos_config_from_settings()
            if config is not None and config.key is not None and config.address == address:
                return Chosen(settings, {COSMOS_KEY[0]: config.key})
    return Chosen(settings)


@dataclass(frozen=True, slots=True)
class Local:
    """The sessions on this machine.

    Attributes:
        sessions: the sessions of the agent, and those in the project folder.
        chosen: the remote.
        state: the folder for state between commands.
        quiet: seconds for which a session must be unchanged before it is modified.
    """

    sessions: Sessions
    chosen: Chosen
    state: str
    quiet: float = QUIET

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.chosen.settings

    def layouts(self) -> list[SyncLayout]:
        """One for each kind of session."""
        return list(self.sessions.sync_layouts())

    def why_open(self, layout: SyncLayout, ref: SessionRef) -> str | None:
        """The reason why a session may be open in a running agent; None if it is not."""
        from sessionary.layouts.amplifier.presence import why_open

        if layout.name != _OF_AGENTS:
            return None
        return why_open(ref.locator, now=time.time(), quiet=self.quiet)

    def mark_closed(self, ref: SessionRef) -> None:
        """Mark a session as closed although a command wrote to it recently."""
        from sessionary.layouts.amplifier.presence import Presence

        if ref.kind == _OF_AGENTS:
            presence = Presence()
            presence.enter(ref.locator)
            presence.leave(ref.locator)


class Connection:
    """The remote, and the local sessions that are synchronised with it.

    Each kind of session has an engine. All of them use one list of the heads: it may be a moment old, which a
    compare-and-swap detects.

    Attributes:
        remote: the remote; it retries and counts the cost.
    """

    def __init__(self, here: Local, remote: Remote, on_call: Callable[[], None]) -> None:
        self.here = here
        self.remote = RetryingRemote(remote, on_call=on_call)
        self._listing = Cost()

    @cached_property
    def heads(self) -> dict[str, HeadRecord]:
        """All heads on the remote, by name. Raises RemoteError if they cannot be listed."""
        before, self.remote.cost = self.remote.cost, self._listing
        try:
            return heads_by_name(self.remote)
        finally:
            self.remote.cost = before

    def engines(self, *, allow_many_deletions: bool = False, keep: bool = True) -> list[Engine]:
        """One engine for each kind of session. With `keep` false, folders are not bound to projects permanently."""
        here, projects, rules = self.here, self.projects(keep=keep), self.here.settings.rules()
        return [
            Engine(
                layout,
                self.remote,
                state_dir=state_folder(here.state, here.settings, layout.home, layout.name),
                rules=rules,
                projects=projects,
                in_use=partial(here.why_open, layout),
                quiet=0 if layout.name == _OF_AGENTS else here.quiet,
                allow_many_deletions=allow_many_deletions,
            )
            for layout in here.layouts()
        ]

    def projects(self, *, keep: bool = True) -> Repositories:
        """The local projects, and their identities on all machines."""
        here = self.here
        path = bindings_file(here.state, here.settings)
        bindings = Bindings(path, identities=lambda: identities_in(self.heads.values()), keep=keep)
        return here.sessions.repositories(here.settings.projects, bindings)

    def find(self, word: str, *, keep: bool = True) -> tuple[Engine, SessionRef] | None:
        """The local session that a word names, and its engine; None if there is none.

        Raises:
            AmbiguousId: several sessions match.
        """
        word = self.here.sessions.find(LATEST).session_id if word == LATEST else word
        refs = [(engine, ref) for engine in self.engines(keep=keep) for ref in engine.layout.discover()]
        named = set(ids_named(word, [ref.session_id for _, ref in refs]))
        found = [(engine, ref) for engine, ref in refs if ref.session_id in named]
        if len(found) > 1:
            raise AmbiguousId(
                f"{len(found)} sessions match {word}",
                session=word,
                details={"matches": sorted(ref.locator for _, ref in found)},
                hint="give more of the id",
            )
        return found[0] if found else None

    def push(self, engine: Engine) -> Report:
        """Push what changed here, and what the remote has lost."""
        return engine.push(heads=self.heads)

    def pull(self, engine: Engine) -> Report:
        """Pull what changed on the remote; of a diverged session, both versions count as closed."""
        report = engine.pull(self.heads)
        for outcome in report.of(SyncStatus.DIVERGED):
            if engine.layout.name == _OF_AGENTS:
                project = engine.projects.local(outcome.project)
                for session in filter(None, (outcome.session_id, outcome.sibling)):
                    self.here.mark_closed(engine.layout.place(project, session))
        return report

    def report(self, reports: Iterable[Report], *, others: bool = False) -> Report:
        """These reports as one, with the cost of listing the heads.

        With `others`, also the sessions on the remote of kinds that this version does not know.
        """
        found = joined(reports)
        if others:
            known = {layout.name for layout in self.here.layouts()}
            found.outcomes += of_unknown_kinds(self.heads.values(), known, self.here.settings.rules())
        found.cost += self._listing
        return found

    def status(self) -> Report:
        """The state of every session. Changes nothing, neither locally nor on the remote."""
        found = (engine.status(self.heads) for engine in self.engines(keep=False))
        return self.report(found, others=True)


@contextmanager
def connected(here: Local, on_call: Callable[[], None] = lambda: None) -> Iterator[Connection]:
    """The remote for the length of a block; `on_call` is called with each request."""
    remote = here.chosen.connect(here.state)
    try:
        yield Connection(here, remote, on_call)
    finally:
        remote.close()


def state_of_commands() -> str:
    """The folder for state between commands."""
    state = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if state is None:
        raise Invalid("no home directory for the state", hint="set XDG_STATE_HOME")
    return os.path.join(state, "sync")


def removed(settings: Settings) -> Removed:
    """The journal of blocks that `sync gc` removed from the remote.

    Raises:
        Invalid: its folder cannot be determined.
    """
    return Removed(removed_folder(state_of_commands(), settings))


def collect(
    choice: Chosen,
    *,
    older: timedelta | None,
    sleep: Callable[[float], None],
    on_progress: Callable[[int], None],
) -> tuple[Leftovers, Removal | None, Cost]:
    """Count the data on a remote that no session needs, and remove it if a time is given. This cannot be undone.

    Args:
        older: the minimum age of what is removed; None removes nothing.
        sleep: waits so many seconds before the second look at the remote.
        on_progress: called with the number of steps done so far.

    Raises:
        RemoteError: the remote cannot be read.
        Locked, StorageFailed: another removal of this machine is running, or its journal cannot be written.
    """
    inner = choice.connect()
    remote = RetryingRemote(inner)
    try:
        if older is None:
            return count_leftovers(remote, on_progress), None, remote.cost
        blocks = removed(choice.settings)
        done = Remover(remote, blocks, older=older, sleep=sleep, on_progress=on_progress).remove()
        return done.found, done, remote.cost
    finally:
        inner.close()


def finish_removal(settings: Settings, remote: Remote, sleep: Callable[[float], None]) -> list[str]:
    """Finish a `sync gc` of this machine that was interrupted; usually this only checks for one file.

    One that is still running is left alone. Returns what failed, as text: that prevents neither push nor pull, and
    the next command tries again.
    """
    blocks = removed(settings)
    try:
        if blocks.open_run() is None:
            return []
        spoilt = Remover(remote, blocks, sleep=sleep).finish().spoilt
    except (Locked, RemoteError):
        return []
    except StorageFailed as error:
        return [f"an interrupted removal is not finished: {error.message}"]
    return [f"not restored on the remote: {error.message} ({error.path})" for error in spoilt]
