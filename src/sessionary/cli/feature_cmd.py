"""`sessionary feature`: the group; its commands lie in `cli.feature`."""

from __future__ import annotations

import click

from sessionary.cli.lazy import LazyGroup, places_in

_MODULES = {
    "create": "working",
    "plan": "planning",
    "task": "planning",
    "update": "working",
    "log": "working",
    "history": "reading",
    "status": "reading",
    "list": "reading",
    "pause": "lifecycle",
    "resume": "lifecycle",
    "complete": "lifecycle",
    "archive": "lifecycle",
    "unarchive": "lifecycle",
    "ack": "contract",
    "validate": "mending",
    "repair": "mending",
    "migrate": "mending",
}


@click.command(
    "feature",
    cls=LazyGroup,
    places=places_in("sessionary.cli.feature", _MODULES),
    epilog="""\b
Examples:
  sessionary feature create "Sign in" --description "Log in with OAuth"
  sessionary feature plan sign-in-2025-01-09 --from plan.yaml
  sessionary feature update sign-in-2025-01-09 --task T1 --model opus
  sessionary feature log sign-in-2025-01-09 "make test" --duration 5200
  sessionary feature status sign-in-2025-01-09
  sessionary feature repair sign-in-2025-01-09
""",
)
def feature_command() -> None:
    """Manage features of a project: plan, state and history.

    They follow the contract of the orchestrator and are stored in .ai-session/ below the folder of the project.
    """
