"""Work sessions with those below them, and their breadcrumbs in one order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, sort_key
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.tree import forest
from sessionary.mailbox import Status
from sessionary.mailbox.consumers import ledger_problems, statuses_of
from sessionary.model import Problem

Owned = list[tuple[Breadcrumb, WorkSession]]
"""Breadcrumbs, each with its session."""


@dataclass(frozen=True, slots=True)
class Details:
    """A work session, and what is recorded about it.

    Attributes:
        crumbs: its breadcrumbs, oldest first.
        children: the sessions that it started, oldest first.
        consumers: the state of each consumer of its mailbox; not exported.
    """

    session: WorkSession
    folder: str
    crumbs: list[Breadcrumb]
    children: list[WorkSession]
    consumers: list[Status]
    problems: list[Problem]


def details_of(store: WorkStore, word: str) -> Details:
    """The session that a word names, and what is recorded about it; raises as `WorkStore.find`."""
    session = store.find(word)
    name = session.session_id
    found, scan, folder = store.breadcrumbs(name), store.scan(), store.folder(name)
    unseen = [problem for problem in scan.problems if problem.code == "unreadable_folder"]
    statuses = statuses_of(folder)
    delivery = [problem for status in statuses for problem in status.problems]
    problems = list(dict.fromkeys([*found.problems, *unseen, *delivery]))
    return Details(session, folder, found.breadcrumbs, scan.children(name), statuses, problems)


def family_of(store: WorkStore, top: WorkSession, *, below: bool) -> tuple[list[WorkSession], list[Problem]]:
    """A session, with `below` its descendants, each after its parent; and problems of reading."""
    if not below:
        return [top], []
    scan = store.scan()
    for tree in forest(scan.sessions):
        for node, _ in tree.walk():
            if node.session.session_id == top.session_id:
                return [each.session for each, _ in node.walk()], scan.problems
    return [top], scan.problems


def crumbs_of(
    store: WorkStore, sessions: Iterable[WorkSession], *, depth: int | None = None
) -> tuple[Owned, list[Problem]]:
    """The breadcrumbs of several sessions in one order, each with its session; and problems of reading.

    That includes the logs of their consumers, which hold the acknowledgments.
    """
    found: Owned = []
    problems: list[Problem] = []
    for each in sessions:
        look = store.breadcrumbs(each.session_id, depth=depth)
        found += [(crumb, each) for crumb in look.breadcrumbs]
        problems += look.problems
        problems += ledger_problems(store.folder(each.session_id))
    found.sort(key=lambda pair: sort_key(pair[0]))
    return found, problems
