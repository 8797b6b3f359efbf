"""`sync demo`: two machines on this one."""

from __future__ import annotations

import time

import click

from sessionary.cli import output

NOT_AS_PROMISED = 1


@click.command(
    "demo",
    epilog="""\b
Examples:
  sessionary sync demo
""",
)
@click.option("--keep", is_flag=True, help="Keep the scratch folder for inspection.")
def demo_command(keep: bool) -> int:
    """Show two machines sharing their sessions, with kills, in a scratch folder.

    The machines are two homes; between them is a store in memory. Exit code 0: all checks passed; 1: a check
    failed. Your own sessions and settings are not touched.
    """
    from sessionary.testing.demo import scratch_folder
    from sessionary.testing.demo_stage import BrokenPromise
    from sessionary.testing.sync_demo import demonstrate_sync

    began = time.monotonic()
    with scratch_folder(None, keep=keep) as folder:
        try:
            for line in demonstrate_sync(folder):
                output.line(line)
                output.flush()
        except BrokenPromise as error:
            output.line(f"FAILED: {error}.")
            return NOT_AS_PROMISED
        output.line(f"All checks passed in {time.monotonic() - began:.1f} s.")
        if keep:
            output.line(f"The homes of both machines are kept in {folder}.")
    output.line()
    output.line("Next, your own sessions: `sessionary sync init ADDRESS` (docs/howto/sync.md).")
    return 0
