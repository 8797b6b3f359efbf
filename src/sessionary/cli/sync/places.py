"""Which local sessions are synchronised, with which remote, and where the state is stored."""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click

from sessionary.cli import homes, output
from sessionary.cli.param_types import Finite
from sessionary.cli.progress import Progress
from sessionary.cli.text import harmless, shell_line
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
from sessionary.sync.cache_file import CacheFile
from sessionary.sync.cosmos_config import load_cosmos_config_from_settings
from sessionary.sync.engine import QUIET, Engine
from sessionary.sync.gc.removal import Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.identity import Repositories
from sessionary.sync.remote import HeadRecord, OpenRemote, Remote, collectable, heads_by_name
from sessionary.sync.remotes import COSMOS_KEY, cosmos_address, open_remote
from sessionary.sync.report import Report, SyncStatus, joined, of_unknown_kinds
from sessionary.sync.retry import Cost, RetryingRemote
from sessionary.sync.settings import (
    SETTINGS_FILE,
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
from sessionary.workspace import Workspace, check_folder
from sessionary.xdg import xdg_folder

_OF_AGENTS = "amplifier"

settings_option = click.option(
    "--settings",
    "settings_path",
    envvar=SETTINGS_FILE,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings file of `sync init` (default: ~/.config/sessionary/sync.json).",
)
_LOCAL = (
    click.option(
        "--home",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder that holds projects/ (default: $SESSIONARY_HOME, else ~/.amplifier).",
    ),
    click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        metavar="DIR",
        help="A project folder whose own sessions are synchronised too (default: the current one).",
    ),
    settings_option,
)
_QUIET = click.option(
    "--quiet",
    type=Finite(0),
    default=QUIET,
    show_default=True,
    metavar="SECONDS",
    help="Leave sessions alone that changed within this time: an agent may have them open.",
)


def local(*, quiet: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The options that select the local sessions and the remote; the command gets a function that returns `Here`.

    With `quiet`, also the option of that name. The function raises as `here_of`.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(
            home: Path | None, root: Path, settings_path: Path | None, quiet: float = QUIET, **others: Any
        ) -> int:
            return command(select=partial(here_of, home, root, settings_path, quiet), **others)

        for option in reversed((*_LOCAL, _QUIET) if quiet else _LOCAL):
            run = option(run)
        return run

    return decorate


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
        """Open the remote, without network access.

        Args:
            state: the folder for state between commands.

        Raises:
            Invalid, NotFound, Unsupported: as `open_remote` and `read_identity`.
        """
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
    """The settings file.

    Raises:
        Invalid: its folder cannot be determined.
    """
    if path is not None:
        return path
    usual = settings_file(xdg_folder("XDG_CONFIG_HOME", "~/.config"), os.environ)
    if usual is None:
        raise Invalid("no home directory for the settings", hint="use --settings FILE")
    return Path(usual)


def chosen(path: Path | None) -> Chosen:
    """The remote of `sync init`, else the Cosmos DB that programs of the agent use.

    Args:
        path: the settings file given by the user. Without it, a missing file is no error if Cosmos DB is
            configured for programs: in the environment, or in the settings file of the agent.

    Raises:
        NotFound: nothing was set up.
        Corrupt, Invalid: it is damaged.
        StorageFailed: it cannot be read.
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
class Here:
    """The sessions on this machine.

    Attributes:
        home: the home of the agent.
        root: the project folder.
        chosen: the remote.
        state: the folder for state between commands.
        quiet: seconds for which a session must be unchanged before it is modified.
        given: the options that selected this, for commands to copy.
    """

    home: Path
    root: Path
    chosen: Chosen
    state: str
    quiet: float = QUIET
    given: tuple[str, ...] = ()

    def command(self, name: str, *words: str) -> str:
        """A command line of `sessionary sync` to copy, with the same options."""
        return shell_line(["sessionary", "sync", name, *words, *self.given])

    def repair(self, kind: str, session: str) -> str | None:
        """The command that repairs a session of this kind; None if there is none."""
        if kind == _OF_AGENTS:
            return shell_line(["sessionary", "repair", session, *self.given_as("--home")])
        if kind == "feature":
            return shell_line(["sessionary", "feature", "repair", session, *self.given_as("--root")])
        return None

    def given_as(self, *names: str) -> tuple[str, ...]:
        """Those of the given options that have one of these names, with their values."""
        pairs = zip(self.given[::2], self.given[1::2], strict=True)
        return tuple(word for pair in pairs if pair[0] in names for word in pair)

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.chosen.settings

    @property
    def workspace(self) -> Workspace:
        """The sessions of the agent, and those in the project folder."""
        return Workspace(self.home, self.root)

    def layouts(self) -> list[SyncLayout]:
        """One for each kind of session."""
        return list(self.workspace.sync_layouts())

    def why_open(self, layout: SyncLayout, ref: SessionRef) -> str | None:
        """Why a session may be open in a running agent; None if it is not."""
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

    def __init__(self, here: Here, remote: Remote, progress: Progress) -> None:
        self.here = here
        self.remote = RetryingRemote(remote, on_call=progress.advance)
        self._listing = Cost()

    @cached_property
    def heads(self) -> dict[str, HeadRecord]:
        """All heads on the remote, by name.

        Raises:
            RemoteError: they cannot be listed.
        """
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
        return here.workspace.repositories(here.settings.projects, bindings)

    def find(self, word: str, *, keep: bool = True) -> tuple[Engine, SessionRef] | None:
        """The local session that a word names, and its engine; None if there is none.

        Raises:
            AmbiguousId: several sessions match.
        """
        word = self.here.workspace.find(LATEST).session_id if word == LATEST else word
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

    def finish_removal(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """As the function of that name, on this remote."""
        finish_removal(self.here.settings, self.remote, sleep)


@contextmanager
def connected(here: Here, doing: str) -> Iterator[Connection]:
    """The remote for the length of a block, with progress."""
    remote = here.chosen.connect(here.state)
    try:
        with Progress(doing, None) as progress:
            yield Connection(here, remote, progress)
    finally:
        remote.close()


def here_of(home: Path | None, root: Path, settings_path: Path | None, quiet: float = QUIET) -> Here:
    """The sessions selected by the options of a command.

    A named folder must exist. It may hold no sessions yet: a pull may create the first ones.

    Raises:
        Corrupt, Invalid, NotFound, StorageFailed: as `chosen`.
        NotFound: a named folder is missing.
    """
    homes.check_named(home)
    if root != Path():
        check_folder(root, named_by="--root")
    named = (("--home", home), ("--root", None if root == Path() else root), ("--settings", settings_path))
    given = tuple(word for name, path in named if path is not None for word in (name, str(path)))
    return Here(homes.folder(home), root.absolute(), chosen(settings_path), _state(), quiet, given)


def _state() -> str:
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
    return Removed(removed_folder(_state(), settings))


def finish_removal(settings: Settings, remote: Remote, sleep: Callable[[float], None] = time.sleep) -> None:
    """Finish a `sync gc` of this machine that was interrupted; usually this only checks for one file.

    One that is still running is left alone. A failure here does not prevent push and pull: the next command
    tries again.
    """
    blocks, store = removed(settings), collectable(remote)
    if store is None:
        return
    try:
        if blocks.open_run() is not None:
            for error in Remover(store, blocks, sleep=sleep).finish().spoilt:
                output.aside(
                    harmless(f"sessionary: not restored on the remote: {error.message} ({error.path})")
                )
    except (Locked, RemoteError):
        pass
    except StorageFailed as error:
        output.aside(harmless(f"sessionary: an interrupted removal is not finished: {error.message}"))
