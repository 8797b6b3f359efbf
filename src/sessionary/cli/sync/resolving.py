"""`sync resolve`: sessions that were continued on two machines, and files about which only a person can decide."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from sessionary.cli import output, phrases
from sessionary.cli.changing import done
from sessionary.cli.sync import places
from sessionary.cli.sync.telling import tell, together
from sessionary.cli.text import one_line
from sessionary.errors import AmbiguousId, NotFound, SessionaryError
from sessionary.layouts.base import Recipient
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine

_KEEP = ("mine", "theirs")


class Pair(NamedTuple):
    """A session that two machines continued: the version that has its id, and the one that gave way."""

    original: SessionRef
    sibling: SessionRef


@click.command(
    "resolve",
    epilog="""\b
Examples:
  sessionary sync resolve
  sessionary sync resolve 3f0c81d2 --keep theirs
""",
)
@click.argument("session", required=False, metavar="[ID]")
@places.home
@places.root
@places.settings_file
@click.option("--keep", type=click.Choice(_KEEP), help="Which version stays; the other goes to the trash.")
@places.as_json
def resolve_command(
    session: str | None,
    home: Path | None,
    root: Path,
    settings_path: Path | None,
    keep: str | None,
    json_: bool,
) -> int:
    """List sessions that two machines continued, or decide which version stays.

    ID names either of the two. `theirs` is the one that has the session's own id: it was on the remote first. `mine` is
    the sibling: it gave way on the machine that came second. The other one goes to the trash, from where `sessionary
    undo` brings it back, and the next push tells the other machines. Nothing has to be decided: both are whole, and you
    can go on with either. Of a file about which nobody but a person may decide (the list of active features), `mine` is
    what is here.
    """
    if (session is None) != (keep is None):
        raise click.UsageError("name a session and say --keep, or neither to see what there is")
    here = places.here_of(home, root, settings_path)
    pairs = list(_pairs(here.layouts()[0]))
    if session is None or keep is None:
        return _list(pairs, json_)
    pair = _named(pairs, session)
    if pair is None:
        return _decide(here, session, keep, json_)
    loser, winner = (pair.original, pair.sibling) if keep == "mine" else (pair.sibling, pair.original)
    layout = here.layouts()[0]
    with layout.held(loser):
        layout.discard(loser, datetime.now(UTC))
    if json_:
        output.value({"kept": winner.session_id, "trashed": loser.session_id})
    else:
        output.lines(
            done(f"{one_line(winner.session_id)} stays, {one_line(loser.session_id)} is in the trash")
        )
        output.aside(f"undo: sessionary undo {one_line(loser.session_id)}")
        output.aside("next: sessionary sync push")
    return 0


def _pairs(layout: Recipient) -> Iterator[Pair]:
    """Siblings have ids that are derived (UUID version 5), and say which session they come from."""
    refs = {(ref.project, ref.session_id): ref for ref in layout.discover()}
    for (project, name), ref in sorted(refs.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        if not _is_derived(name):
            continue
        try:
            parent = layout.summary(ref).parent
        except SessionaryError:
            continue
        if parent is not None and (original := refs.get((project, parent))) is not None:
            yield Pair(original, ref)


def _is_derived(name: str) -> bool:
    try:
        return uuid.UUID(name).version == 5
    except ValueError:
        return False


def _named(pairs: list[Pair], word: str) -> Pair | None:
    found = [pair for pair in pairs if any(ref.session_id.startswith(word) for ref in pair)]
    if len(found) > 1:
        raise AmbiguousId(
            f"{word} names several pairs",
            details={"matches": [pair.sibling.session_id for pair in found]},
            hint="name the sibling",
        )
    return found[0] if found else None


def _decide(here: places.Here, word: str, keep: str, json_: bool) -> int:
    """A file that is held back until a person decides, in one of the other layouts."""
    with places.connected(here, "deciding") as line:
        engine, ref = _held_back(here.engines(line), word)
        result = together(line, [(engine.layout.name, engine.resolve(ref, keep))])
    return tell(result, here.settings, json_=json_, all_=True)


def _held_back(engines: list[Engine], word: str) -> tuple[Engine, SessionRef]:
    for engine in engines:
        for ref in engine.layout.discover():
            if ref.session_id == word:
                return engine, ref
    raise NotFound(
        f"no session {word} was continued on two machines",
        session=word,
        hint="`sessionary sync resolve` lists those that were",
    )


def _list(pairs: list[Pair], json_: bool) -> int:
    if json_:
        output.value([
            {
                "id": pair.original.session_id,
                "sibling": pair.sibling.session_id,
                "project": pair.original.project,
                "path": pair.original.folder,
                "sibling_path": pair.sibling.folder,
            }
            for pair in pairs
        ])  # fmt: skip
        return 0
    for pair in pairs:
        output.line(f"{one_line(pair.original.session_id)}  theirs")
        output.line(f"  {one_line(pair.sibling.session_id)}  mine: it gave way")
    output.aside(f"{phrases.count(len(pairs), 'session')} continued on two machines")
    return 0
