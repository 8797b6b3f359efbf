"""The parts that all steps of the synchronisation of one layout share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sessionary.disk.fs import Fs
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.blocks import BLOCK
from sessionary.sync.guard import Guard
from sessionary.sync.local_files import Surveyor
from sessionary.sync.remote import Remote
from sessionary.sync.rules import Projects, Rules, rule_of
from sessionary.sync.state import States

InUse = Callable[[SessionRef], str | bool | None]
"""Returns whether a running agent has a session open, or the reason in a sentence."""


@dataclass(frozen=True, slots=True)
class Context:
    """The sessions of one layout, local and on the remote.

    Attributes:
        fs: the file system.
        layout: the local sessions.
        remote: the remote.
        states: the agreed states.
        rules: which files are synchronised.
        projects: shared names of projects.
        in_use: whether a session is open.
        now: the clock.
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
    block: int = BLOCK


class Step:
    """A step of a synchronisation. Without a surveyor it gets its own."""

    def __init__(self, context: Context, surveyor: Surveyor | None = None) -> None:
        self._fs = context.fs
        self._layout = context.layout
        self._remote = context.remote
        self._states = context.states
        self._rules = context.rules
        self._projects = context.projects
        self._in_use = context.in_use
        self._now = context.now
        self._block = context.block
        self._rule = rule_of(context.layout)
        self._surveyor = surveyor or Surveyor(
            context.fs, context.layout, context.rules, context.states.copies
        )
        self._guard = Guard(context.fs, context.layout, context.remote, context.states, context.now)
