"""The arguments and options that several commands on features share."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, output
from sessionary.cli.in_project import warn
from sessionary.layouts.orchestrator.home import DEFAULT_AGENT
from sessionary.layouts.orchestrator.store import FeatureStore

feature = click.argument("feature_id", metavar="ID")
agent = click.option(
    "--agent", default=DEFAULT_AGENT, show_default=True, help="Who does it, for the history."
)
require_ack = click.option(
    "--require-ack",
    envvar="SESSIONARY_REQUIRE_ACK",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Refuse if the agent has not acknowledged this contract (default: $SESSIONARY_REQUIRE_ACK).",
)


def store_in(root: Path, agent: str = DEFAULT_AGENT, require_ack: Path | None = None) -> FeatureStore:
    """The store of a project."""
    return FeatureStore(root, agent=agent, require_ack=require_ack)


def told(store: FeatureStore, text: str, document: dict[str, object], *, json_: bool) -> int:
    """Say what was done, and beside it what there was to say of it."""
    if json_:
        problems = [problem.as_dict() for problem in store.last_report.problems]
        output.value({**document, "problems": problems})
        return 0
    warn(store.last_report.problems)
    output.lines(changing.done(text))
    return 0
