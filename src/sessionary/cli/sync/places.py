"""Which local sessions are synchronised, by which engines, and where the state is stored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from sessionary.cli import homes, output
from sessionary.cli.param_types import Finite
from sessionary.cli.progress import Progress
from sessionary.cli.sync.chosen import Chosen, chosen
from sessionary.cli.sync.progress_remote import Line
from sessionary.cli.text import harmless, shell_line
from sessionary.errors import Invalid, Locked, RemoteError, StorageFailed
from sessionary.layouts.session_ids import LATEST
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.bindings import Bindings, identities_on
from sessionary.sync.engine import QUIET, Engine
from sessionary.sync.gc.removal import Remover
from sessionary.sync.gc.removed import Removed
from sessionary.sync.identity import Repositories
from sessionary.sync.remote import Remote, collectable, heads_of
from sessionary.sync.report import Outcome, Report, SyncStatus
from sessionary.sync.retry import RetryingRemote
from sessionary.sync.settings import (
    SETTINGS_FILE,
    Settings,
    bindings_file,
    removed_folder,
    state_folder,
)
from sessionary.sync.strangers import strangers
from sessionary.workspace import Workspace, check_folder
from sessionary.xdg import xdg_folder

_OF_AGENTS = "amplifier"

home = click.option(
    "--home",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder that holds projects/ (default: $SESSIONARY_HOME, else ~/.amplifier).",
)
root = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="A project folder whose own sessions are synchronised too (default: the current one).",
)
settings_file = click.option(
    "--settings",
    "settings_path",
    envvar=SETTINGS_FILE,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings file of `sync init` (default: ~/.config/sessionary/sync.json).",
)
quiet = click.option(
    "--quiet",
    type=Finite(0),
    default=QUIET,
    show_default=True,
    metavar="SECONDS",
    help="Leave sessions alone that changed within this time: an agent may have them open.",
)


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

    def command(self, name: str, session: str, *words: str) -> str:
        """A command line of `sessionary sync` to copy, with the same options."""
        return shell_line(["sessionary", "sync", name, session, *words, *self.given])

    def repair(self, kind: str, session: str) -> str | None:
        """The command that repairs a session of this kind; None if there is none."""
        if kind == _OF_AGENTS:
            return shell_line(["sessionary", "repair", session, *self._option("--home")])
        if kind == "feature":
            return shell_line(["sessionary", "feature", "repair", session, *self._option("--root")])
        return None

    def _option(self, name: str) -> tuple[str, ...]:
        at = self.given.index(name) if name in self.given else len(self.given)
        return self.given[at : at + 2]

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.chosen.settings

    def engines(
        self, remote: Remote, *, allow_many_deletions: bool = False, keep: bool = True
    ) -> list[Engine]:
        """One engine for each kind of session. With `keep` false, folders are not bound to projects permanently."""
        projects, rules = self.projects(remote, keep=keep), self.settings.rules()
        return [
            Engine(
                layout,
                remote,
                state_dir=state_folder(self.state, self.settings, layout.home, layout.name),
                rules=rules,
                projects=projects,
                in_use=partial(self.why_open, layout),
                quiet=0 if layout.name == _OF_AGENTS else self.quiet,
                allow_many_deletions=allow_many_deletions,
            )
            for layout in self.layouts()
        ]

    def projects(self, remote: Remote, *, keep: bool = True) -> Repositories:
        """The local projects, and their identities on all machines."""
        bindings = Bindings(
            bindings_file(self.state, self.settings),
            identities=partial(identities_on, RetryingRemote(remote)),
            keep=keep,
        )
        return self._workspace.repositories(self.settings.projects, bindings)

    def layouts(self) -> list[SyncLayout]:
        """The sessions of the agent, and those in the project folder."""
        return list(self._workspace.sync_layouts())

    def latest(self) -> str:
        """The id of the local session that changed last."""
        return self._workspace.find(LATEST).session_id

    @property
    def _workspace(self) -> Workspace:
        return Workspace(self.home, root=self.root)

    def strangers(self, remote: Remote) -> Iterator[tuple[str, Report]]:
        """The sessions on the remote of kinds that this version does not know, and the cost of listing them."""
        counted, known = RetryingRemote(remote), {layout.name for layout in self.layouts()}
        yield from strangers(heads_of(counted), known, self.settings.rules())
        yield "", Report(cost=counted.cost)

    def pull(self, engine: Engine) -> Report:
        """`Engine.pull`; of a diverged session, the versions that the pull itself wrote count as closed."""
        report = engine.pull()
        for outcome in report.of(SyncStatus.DIVERGED):
            self._left_alone(engine, outcome)
        return report

    def why_open(self, layout: SyncLayout, ref: SessionRef) -> str | None:
        """Why a session may be open in a running agent; None if it is not."""
        from sessionary.layouts.amplifier.presence import why_open

        if layout.name != _OF_AGENTS:
            return None
        return why_open(ref.locator, now=time.time(), quiet=self.quiet)

    def _left_alone(self, engine: Engine, outcome: Outcome) -> None:
        """Mark both versions as closed: the recent writes were our own."""
        if engine.layout.name != _OF_AGENTS:
            return
        project = engine.projects.local(outcome.project)
        for session in filter(None, (outcome.session_id, outcome.sibling)):
            self.written(engine.layout.place(project, session))

    def written(self, ref: SessionRef) -> None:
        """Mark a session as closed although a command wrote to it recently."""
        from sessionary.layouts.amplifier.presence import Presence

        if ref.kind == _OF_AGENTS:
            presence = Presence()
            presence.enter(ref.locator)
            presence.leave(ref.locator)


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
    state = _remembered()
    named = (("--home", home), ("--root", None if root == Path() else root), ("--settings", settings_path))
    given = tuple(word for name, path in named if path is not None for word in (name, str(path)))
    return Here(homes.folder(home), root.absolute(), chosen(settings_path), state, quiet, given)


def _remembered() -> str:
    state = xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if state is None:
        raise Invalid("no home directory for the state", hint="set XDG_STATE_HOME")
    return os.path.join(state, "sync")


def removed(settings: Settings) -> Removed:
    """The journal of blocks that `sync gc` removed from the remote.

    Raises:
        Invalid: its folder cannot be determined.
    """
    return Removed(removed_folder(_remembered(), settings))


def finish_removal(settings: Settings, remote: Remote, sleep: Callable[[float], None] = time.sleep) -> None:
    """Finish a `sync gc` of this machine that was interrupted; usually this only checks for one file.

    One that is still running is left alone. A failure here does not prevent push and pull: the next command
    tries again.
    """
    blocks, store = removed(settings), collectable(RetryingRemote(remote))
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


@contextmanager
def connected(here: Here, doing: str) -> Iterator[Line]:
    """The remote for the length of a block, with progress."""
    remote = here.chosen.connect(here.state)
    try:
        with Progress(doing, None) as progress:
            yield Line(remote, progress)
    finally:
        remote.close()
