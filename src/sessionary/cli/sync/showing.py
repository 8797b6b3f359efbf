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
@click.option("--keep", is_flag=True, help="Leave the scratch folder, to look at what lies in it.")
def demo_command(keep: bool) -> int:
    """Watch two machines share their sessions, with kills, in a scratch folder.

    The machines are two homes; between them is a store in the memory of the process. Ends with 0 if all was as
    promised, with 1 if anything was not. Your own sessions, and what you have set up, are not touched.
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
            output.line(f"NOT AS PROMISED: {error}.")
            return NOT_AS_PROMISED
        output.line(f"All as promised, in {time.monotonic() - began:.1f} s.")
        if keep:
            output.line(f"The machines are left in {folder}.")
    output.line()
    output.line("Now your own: `sessionary sync init ADDRESS` (docs/howto/sync.md).")
    return 0
