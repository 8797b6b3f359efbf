"""What is carried, and what a project is called where paths differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Rules:
    """Which projects and files are carried.

    Attributes:
        include: patterns of project identities (``*``, ``?``, ``[…]``); one of them must fit.
        exclude: patterns of which none may fit.
        logs: carry event logs too. They are large, and nobody resumes from them.
        redact: what is blacked out before it is sent; None for nothing.
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    logs: bool = False
    redact: Redaction | None = None

    def admits(self, project: str | None) -> bool:
        """True if sessions of this project are carried; one without a project is called ``""``."""
        name = project or ""
        fits = any(fnmatchcase(name, pattern) for pattern in self.include)
        return fits and not any(fnmatchcase(name, pattern) for pattern in self.exclude)

    def carries(self, kind: PartKind) -> bool:
        """True if files of this kind are carried; backups and what was set aside never are."""
        return kind is not PartKind.KEPT and (self.logs or kind is not PartKind.LOG)


def rule_of(layout: SyncLayout) -> Callable[[str], Rule]:
    """How each part of a session of this layout is brought together, its bundle included."""
    return lambda name: Rule(Policy.IMMUTABLE) if name == bundles.NAME else layout.rule(name)


class Projects(Protocol):
    """What a project is called on all machines, and which one that is here."""

    def identity(self, ref: SessionRef) -> str | None:
        """The name of a session's project that all machines share; None for a session without one."""
        ...

    def local(self, identity: str | None) -> str | None:
        """The project of that name here.

        Raises:
            NotFound: there is none here; its sessions are held back.
        """
        ...


class SameNames:
    """Projects are called alike on all machines."""

    def identity(self, ref: SessionRef) -> str | None:
        return ref.project

    def local(self, identity: str | None) -> str | None:
        return identity
