"""`sync demo`: two machines on this one."""

from __future__ import annotations

import click

from sessionary.cli import output
from sessionary.cli.demo_cmd import NOT_AS_PROMISED, show
from sessionary.cli.lazy import command


@command(
    "demo",
    "sessionary sync demo",
)
@click.option("--keep", is_flag=True, help="Keep the scratch folder for inspection.")
def demo_command(keep: bool) -> int:
    """Show two machines sharing their sessions, with kills, in a scratch folder.

    The machines are two homes; between them is a store in memory. Exit code 0: all checks passed; 1: a check
    failed. Your own sessions and settings are not touched.
    """
    from sessionary.testing.demo import scratch_folder
    from sessionary.testing.sync_demo import demonstrate_sync

    with scratch_folder(None, keep=keep) as folder:
        if not show(demonstrate_sync(folder)):
            return NOT_AS_PROMISED
        if keep:
            output.line(f"The homes of both machines are kept in {folder}.")
    output.line()
    output.line("Next, your own sessions: `sessionary sync init ADDRESS` (docs/howto/sync.md).")
    return 0
