"""Rules of what is synchronised, and shared names of projects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import SessionRef
from sessionary.redaction import Redaction
from sessionary.sync import bundles
from sessionary.sync.heads import HISTORY


@dataclass(frozen=True, slots=True)
class Rules:
    """Projects and files to synchronise.

    Attributes:
        include: patterns of project identities (``*``, ``?``, ``[…]``); one of them must match.
        exclude: patterns of which none may match.
        logs: include event logs. They are large, and not needed to resume a session.
        redact: redaction before sending; None for none.
        exact: send all bytes, as an archive does: also those behind the last newline of a journal, and damaged files.
        history: how many earlier generations a head lists.
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    logs: bool = False
    redact: Redaction | None = None
    exact: bool = False
    history: int = HISTORY

    def admits(self, project: str | None) -> bool:
        """True if sessions of this project are synchronised; sessions without a project have ``""``."""
        name = project or ""
        fits = any(fnmatchcase(name, pattern) for pattern in self.include)
        return fits and not any(fnmatchcase(name, pattern) for pattern in self.exclude)

    def carries(self, kind: PartKind) -> bool:
        """True if files of this kind are synchronised; backups and quarantined files never are."""
        return kind is not PartKind.KEPT and (self.logs or kind is not PartKind.LOG)


def rule_of(layout: SyncLayout) -> Callable[[str], Rule]:
    """Return the rule of each part of a session of this layout, including its bundle."""
    return lambda name: Rule(Policy.IMMUTABLE) if name == bundles.NAME else layout.rule(name)


class Projects(Protocol):
    """Mapping between shared and local names of projects."""

    def identity(self, ref: SessionRef) -> str | None:
        """Return the shared name of a session's project; None for a session without one."""
        ...

    def local(self, identity: str | None) -> str | None:
        """Return the local project of a shared name.

        Raises:
            NotFound: there is none here; its sessions are held back.
        """
        ...


class SameNames:
    """Projects have the same names on all machines."""

    def identity(self, ref: SessionRef) -> str | None:
        return ref.project

    def local(self, identity: str | None) -> str | None:
        return identity
