"""`sessionary brainstorm`: the group; its commands lie in `cli.brainstorm`."""

from __future__ import annotations

import click

from sessionary.cli.lazy import LazyGroup, places_in

_MODULES = {
    "start": "launching",
    "continue": "moving",
    "answer": "moving",
    "back": "moving",
    "update": "moving",
    "status": "reading",
    "technique": "noting",
    "party": "noting",
    "panel": "noting",
    "idea": "noting",
    "save": "moving",
    "finish": "moving",
    "reopen": "moving",
    "list": "reading",
    "show": "reading",
    "validate": "upkeep",
    "cleanup": "upkeep",
    "restore": "upkeep",
    "migrate": "upkeep",
}


@click.command(
    "brainstorm",
    cls=LazyGroup,
    places=places_in("sessionary.cli.brainstorm", _MODULES),
    epilog="""\b
Examples:
  sessionary brainstorm start feature-auth -q "Who signs in?"
  sessionary brainstorm answer feature-auth "developers and admins" --ems 38
  sessionary brainstorm continue feature-auth -q "How long does it live?"
  sessionary brainstorm back feature-auth
  sessionary brainstorm save feature-auth
  sessionary brainstorm list
""",
)
def brainstorm_command() -> None:
    """Record brainstorms of a project: questions, answers, rounds, and the way back.

    They are stored in .project-memory/brainstorm-sessions/ below the folder of the project.
    """
