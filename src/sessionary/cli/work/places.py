"""Where the work sessions of a command lie, which one a word means, and what could not be read on the way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from sessionary.cli import completing, output
from sessionary.cli.gitignore_hint import tell_afterwards
from sessionary.cli.text import one_line, wrap
from sessionary.disk.fs import OS_FS
from sessionary.errors import Corrupt
from sessionary.layouts.maestro.layout import project_of, root_in
from sessionary.layouts.maestro.names import SESSION, default_root
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession, sort_key
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import naive_zone
from sessionary.layouts.maestro.tree import Node, forest, latest_key
from sessionary.model import Problem
from sessionary.workspace import check_folder, check_store

PARTLY = 3
DAMAGED = Corrupt.exit_code
_TOLD = 5  # of each kind: a project may hold hundreds of sessions of the older kind
_DAMAGE = frozenset(
    {
        "bad_breadcrumb",
        "no_breadcrumb",
        "no_file",
        "too_large",
        "unreadable_file",
        "bad_ledger_line",
        "ledger_went_back",
        "unreadable_ledger",
    }
)
_NOT_SEEN = frozenset({"unreadable_file", "unreadable_folder"})


def _check_root(ctx: click.Context, _: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a folder that was named and holds no work sessions.

    The command that begins the first one needs only the folder.
    """
    if value is not None:
        begins = ctx.command.name == "start" and ctx.parent is not None and ctx.parent.info_name != "subwork"
        place = Path(os.path.expanduser(value))
        if begins:
            check_folder(project_of(root_in(OS_FS, place.absolute())), named_by="--root")
        else:
            check_store(place, "work", named_by="--root")
    tell_afterwards(ctx, "work", Path() if value is None else Path(os.path.expanduser(value)))
    return value


root = click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=_check_root,
    is_eager=True,  # what other parameters name is looked for in it
    help="The folder of the work sessions, or of their project.  [default: docs/sessions]",
)
as_json = click.option("--json", "json_", is_flag=True, help="Print it as one JSON document.")


def _ids(ctx: click.Context) -> list[str]:
    """The ids of the work sessions, the newest first."""
    found = sorted(store_at(ctx.params.get("root")).scan().sessions, key=latest_key, reverse=True)
    return [one.session_id for one in found]


complete = completing.ids(_ids)
session = click.argument("session", metavar="ID", shell_complete=complete)


def store_at(folder: Path | None) -> WorkStore:
    """The store that this folder means; see `root_in`. By default that of the current one."""
    naive_zone()  # a setting that names no zone is refused whether a time needs it or not
    if folder is None:
        return WorkStore(default_root())
    return WorkStore(root_in(OS_FS, Path(os.path.expanduser(folder)).absolute()))


def tell(problems: Iterable[Problem]) -> int:
    """Say on standard error what could not be read, each thing once; the exit code that this asks for."""
    once = list(dict.fromkeys(problems))
    counts: Counter[str] = Counter()
    for problem in once:
        counts[problem.code] += 1
        if counts[problem.code] <= _TOLD:
            say(problem)
    for code, number in counts.items():
        if number > _TOLD:
            output.aside(f"{code}: {number - _TOLD:,} more")
    if any(map(is_damage, once)):
        return DAMAGED
    return PARTLY if any(problem.code in _NOT_SEEN for problem in once) else 0


def is_damage(problem: Problem) -> bool:
    """True if a message or a line of a log cannot be read, or is gone; `check` ends with the same code for it."""
    return problem.code in _DAMAGE and os.path.basename(problem.path) != SESSION


def say(problem: Problem) -> None:
    """One problem for a person, with its file and the folder of that."""
    folder, name = os.path.split(problem.path)
    where = os.path.join(os.path.basename(folder), name)
    first, *rest = wrap(one_line(f"{problem.code}: {where}: {problem.message}"), output.width() - 2)
    output.aside(first)
    for line in rest:
        output.aside(f"  {line}")


def done(text: str) -> None:
    """Say what was done."""
    output.line(f"{output.paint('✓', 'green')} {one_line(text)}")


def none_there(store: WorkStore) -> None:
    """Say that there are no sessions at all."""
    output.aside(f"No work sessions found in {one_line(str(store.root))}; --root names another place.")


def family_of(store: WorkStore, top: WorkSession) -> tuple[list[WorkSession], list[Problem]]:
    """A session with all below it, by their parent ids, each behind its parent; and what could not be read."""
    scan = store.scan()
    for tree in forest(scan.sessions):
        for node, _ in tree.walk():
            if node.session.session_id == top.session_id:
                return [each.session for each, _ in node.walk()], scan.problems
    return [top], scan.problems


def crumbs_of(
    store: WorkStore, sessions: Iterable[WorkSession], *, depth: int | None = None
) -> tuple[list[tuple[Breadcrumb, WorkSession]], list[Problem]]:
    """The breadcrumbs of several sessions in one order, each with its session; and what could not be read.

    That includes the logs of their consumers: what acknowledges a breadcrumb is read with it.
    """
    from sessionary.mailbox.consumers import ledger_problems  # here, as lists of sessions need no mailbox

    found: list[tuple[Breadcrumb, WorkSession]] = []
    problems: list[Problem] = []
    for each in sessions:
        look = store.breadcrumbs(each.session_id, depth=depth)
        found += [(crumb, each) for crumb in look.breadcrumbs]
        problems += look.problems
        problems += ledger_problems(store.folder(each.session_id))
    found.sort(key=lambda pair: sort_key(pair[0]))
    return found, problems


def chosen(
    store: WorkStore, session: WorkSession, *, include_children: bool, depth: int | None = None
) -> tuple[list[tuple[Breadcrumb, WorkSession]], list[Problem]]:
    """The breadcrumbs of a session, and if they are asked for those of all sessions below it."""
    sessions, problems = family_of(store, session) if include_children else ([session], [])
    found, more = crumbs_of(store, sessions, depth=depth)
    return found, problems + more


def node_flag(node: Node) -> str:
    """What is odd about where a session stands, in words; empty if nothing is."""
    if node.flag == "orphan":
        return f"parent {one_line(node.session.parent or '')[:8]} is gone"
    return "comes from itself" if node.flag == "cycle" else ""
