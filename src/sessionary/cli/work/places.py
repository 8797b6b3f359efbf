"""The folder of a command's work sessions, the session that a word names, and problems while reading."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from sessionary.cli import completing, options, output
from sessionary.cli.changing import done
from sessionary.cli.gitignore_hint import print_afterwards
from sessionary.cli.text import one_line, wrap
from sessionary.disk.fs import OS_FS
from sessionary.errors import Corrupt
from sessionary.layouts.maestro.layout import project_of, root_in
from sessionary.layouts.maestro.names import SESSION, default_root
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.times import naive_zone
from sessionary.layouts.maestro.tree import latest_key
from sessionary.model import Problem
from sessionary.workspace import check_folder, check_store

Command = TypeVar("Command", bound=Callable[..., Any])
DAMAGED = Corrupt.exit_code
_PRINTED = 5  # of each kind: a project may hold hundreds of sessions of the older format
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

    The command that starts the first session needs only the folder.
    """
    if value is not None:
        begins = ctx.command.name == "start" and ctx.parent is not None and ctx.parent.info_name != "subwork"
        place = Path(os.path.expanduser(value))
        if begins:
            check_folder(project_of(root_in(OS_FS, place.absolute())), named_by="--root")
        else:
            check_store(place, "work", named_by="--root")
    print_afterwards(ctx, "work", Path() if value is None else Path(os.path.expanduser(value)))
    return value


_root = click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=_check_root,
    is_eager=True,  # other parameters are resolved in it
    help="The folder of the work sessions, or of their project.  [default: docs/sessions]",
)


def on_store(command: Callable[..., int]) -> Callable[..., int]:
    """The option --root, for a command that is given the store of that folder."""

    @functools.wraps(command)
    def called(root: Path | None, **rest: Any) -> int:
        return command(store=store_at(root), **rest)

    return _root(called)


def _ids(ctx: click.Context) -> list[str]:
    """The ids of the work sessions, newest first."""
    found = sorted(store_at(ctx.params.get("root")).scan().sessions, key=latest_key, reverse=True)
    return [one.session_id for one in found]


complete = completing.ids(_ids)
session = click.argument("session", metavar="ID", shell_complete=complete)


consumer = click.option(
    "--consumer",
    default="work",
    show_default=True,
    metavar="NAME",
    help="Name of the consumer; each consumer gets every message.",
)


class Pair(click.ParamType[tuple[str, str]]):
    """Two texts with a sign between them, such as ``track_id=T-1``, with words for errors."""

    name = "pair"

    def __init__(self, sign: str, what: str, form: str, example: str) -> None:
        self._sign = sign
        self._wrong = f"is not {what}; write {form}, for example {example}"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        first, _, second = value.partition(self._sign)
        if not (first and second):
            self.fail(f"{value!r} {self._wrong}", param, ctx)
        return first, second


def context(words: str) -> Callable[[Command], Command]:
    """The option of the context of a session, with this help."""
    return click.option(
        "--context",
        type=Pair(":", "a context", "KIND:REF", "file:src/app.py"),
        callback=lambda ctx, param, value: value and {"kind": value[0], "ref": value[1]},
        metavar="KIND:REF",
        help=words,
    )


def resolved(store: WorkStore, word: str) -> tuple[str, str]:
    """The id and the folder of the session that a word names."""
    session_id = store.resolve(word)
    return session_id, store.folder(session_id)


def store_at(folder: Path | None) -> WorkStore:
    """The store in this folder; see `root_in`. By default that of the current folder."""
    naive_zone()  # an invalid zone setting is refused even if no time needs it
    if folder is None:
        return WorkStore(default_root())
    return WorkStore(root_in(OS_FS, Path(os.path.expanduser(folder)).absolute()))


def print_problems(problems: Iterable[Problem]) -> int:
    """Print each problem of reading once, on standard error; return the exit code."""
    once = list(dict.fromkeys(problems))
    counts: Counter[str] = Counter()
    for problem in once:
        counts[problem.code] += 1
        if counts[problem.code] <= _PRINTED:
            print_problem(problem)
    for code, number in counts.items():
        if number > _PRINTED:
            output.aside(f"{code}: {number - _PRINTED:,} more")
    if any(map(is_damage, once)):
        return DAMAGED
    return options.PARTLY if any(problem.code in _NOT_SEEN for problem in once) else 0


def is_damage(problem: Problem) -> bool:
    """True if a message or a line of a log is damaged or missing; `check` has the same exit code for it."""
    return problem.code in _DAMAGE and os.path.basename(problem.path) != SESSION


def print_problem(problem: Problem) -> None:
    """One problem as text, with its file and the folder of that."""
    folder, name = os.path.split(problem.path)
    where = os.path.join(os.path.basename(folder), name)
    first, *rest = wrap(one_line(f"{problem.code}: {where}: {problem.message}"), output.width() - 2)
    output.aside(first)
    for line in rest:
        output.aside(f"  {line}")


def changed(session: WorkSession) -> Iterator[str]:
    """The lines for a session whose status was changed."""
    return done(one_line(f"{session.session_id} is {session.status}"))


def no_sessions(store: WorkStore) -> str:
    """Words for a folder without sessions."""
    return f"No work sessions found in {one_line(str(store.root))}; --root names another folder."
