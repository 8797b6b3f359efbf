"""Work sessions with those below them, and their breadcrumbs in one order."""

from __future__ import annotations

from collections.abc import Iterable

from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, sort_key
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.tree import forest
from sessionary.mailbox.consumers import ledger_problems
from sessionary.model import Problem

Owned = list[tuple[Breadcrumb, WorkSession]]
"""Breadcrumbs, each with its session."""


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
