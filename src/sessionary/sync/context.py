"""The parts that all steps of the synchronisation of one layout share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.disk.spooled_file import Spool
from sessionary.errors import NotFound
from sessionary.layouts import ledger_owner
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.diff import Comparison, compare
from sessionary.sync.heads import Head
from sessionary.sync.local_files import LocalPart, Surveyor
from sessionary.sync.remote import Remote
from sessionary.sync.rules import Projects, Rules, rule_of
from sessionary.sync.state import States, SyncedState

InUse = Callable[[SessionRef], str | bool | None]
"""Returns whether a running agent has a session open, or the reason in a sentence."""


@dataclass(frozen=True, slots=True)
class Context:
    """The sessions of one layout, local and on the remote.

    Attributes:
        projects: shared names of projects.
        in_use: whether a session is open.
        block: maximum number of bytes in a block.
    """

    fs: Fs
    layout: SyncLayout
    remote: Remote
    states: States
    rules: Rules
    projects: Projects
    in_use: InUse
    now: Callable[[], datetime]
    block: int
    surveyor: Surveyor


class Step:
    """A step of a synchronisation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._fs = context.fs
        self._layout = context.layout
        self._remote = context.remote
        self._states = context.states
        self._rules = context.rules
        self._projects = context.projects
        self._in_use = context.in_use
        self._now = context.now
        self._block = context.block
        self._surveyor = context.surveyor
        self._links = context.surveyor.links
        self._rule = rule_of(context.layout)

    @cached_property
    def _device(self) -> str:
        """The name of this machine. Use it only while the lock of synchronisation is held."""
        return self._states.device()

    def _compare(
        self,
        ref: SessionRef,
        mine: Mapping[str, LocalPart],
        agreed: SyncedState | None,
        head: Head,
        spool: Spool,
    ) -> tuple[Comparison, Collection[str]]:
        """Compare a session with a head of the remote; also return its files outside the store. Raises as `compare`."""
        closed = self._surveyor.closed(ref, (part.name for part in head.parts))
        found = compare(self._fs, self._remote, mine, agreed, head, self._rules, self._rule, spool, closed)
        return found, closed

    def _concerns(self, head: Head) -> bool:
        """True for a session of this layout, of an admitted project, and of our only project if there is just one."""
        if head.kind != self._layout.name or not self._rules.admits(head.project):
            return False
        only = self._only_project()
        if only is None:
            return True
        try:
            return head.project == self._projects.identity(only)
        except NotFound as error:  # of an unbound folder: its sessions may be any of these
            return head.project in error.details.get("identities", ())

    def _only_project(self) -> SessionRef | None:
        """Return a reference for the project of a layout that has only one."""
        only = self._layout.project()
        return None if only is None else SessionRef(self._layout.name, "", str(self._layout.home), only)

    def _settle_owners(self, ref: SessionRef, owners: Mapping[str, str]) -> None:
        """Write beside each ledger of a session that is here its only consumer. Durability: as `name_owner`."""
        if owners and stat_or_none(self._fs, ref.locator) is not None:
            for name, owner in owners.items():
                ledger = self._layout.path_of(ref, name)
                paths = ledger, ledger_owner.path_beside(ledger)
                if all(self._links.of(ref, path) is None for path in paths):
                    ledger_owner.name_owner(ledger, owner, here=owner == self._device, fs=self._fs)


def parents_first(names: Iterable[str], above: Callable[[str], str]) -> Iterator[str]:
    """Yield these names, each after the one that `above` returns for it, if that is among them."""
    waiting = dict.fromkeys(names)
    while waiting:
        line = [next(iter(waiting))]
        while (name := above(line[-1])) in waiting and name not in line:
            line.append(name)
        for name in reversed(line):
            del waiting[name]
            yield name
