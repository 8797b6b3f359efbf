"""`sessionary sync`: the group; its commands lie in `cli.sync`."""

from __future__ import annotations

import click

from sessionary.cli.lazy import LazyGroup, places_in

_MODULES = {
    "init": "init",
    "push": "push_pull",
    "pull": "push_pull",
    "status": "push_pull",
    "watch": "watching",
    "resolve": "resolving",
    "history": "earlier",
    "restore": "earlier",
    "project": "projects",
    "check": "checking",
    "gc": "gc",
    "demo": "showing",
}


@click.command(
    "sync",
    cls=LazyGroup,
    places=places_in("sessionary.cli.sync", _MODULES),
    epilog="""\b
Examples:
  sessionary sync demo                            two machines on this one
  sessionary sync init postgresql://db.example.org/sessions
  sessionary sync push
  sessionary sync status
  sessionary sync watch
""",
)
def sync_command() -> None:
    """Share sessions between machines, through a database or an object store.

    Sessions stay ordinary files; a remote holds copies. If two machines continue one session, both versions are kept.
    """
