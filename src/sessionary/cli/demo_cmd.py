"""`sessionary demo`: saves with kills in a scratch folder; and `sync demo`: two machines on this one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.lazy import command

NOT_AS_PROMISED = 1

_TRY = """\
Now your own sessions:
   sessionary list            all sessions, newest first
   sessionary show ID         read one; the first characters of its id are enough
   sessionary search WORDS    find messages
   sessionary check           find damage
   sessionary repair ID       repair it; --dry-run shows how
   sessionary undo            undo the last change"""


@command("demo", "sessionary demo", "sessionary demo --dir /mnt/other-disk")
@click.option(
    "--dir",
    "parent",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Create the scratch folder in DIR, for example on another disk (default: the system's temporary folder).",
)
@options.flag("--keep", help="Keep the scratch folder for inspection.")
def demo_command(parent: Path | None, keep: bool) -> int:
    """Kill saves, recover them, and sync two machines.

    An agent saves a conversation in a scratch folder. Its process is killed again and again, and each time
    every acknowledged save must be there. Then one bit of the file is flipped, and the session is recovered.
    Last, two machines share their sessions through a folder, with kills, conflicts and damage, and
    every line must be on both. Exit code 0: all checks passed; 1: a check failed. Your own sessions are not
    touched.
    """
    from sessionary.disk.mounts import weakness
    from sessionary.testing.demo import demonstrate, scratch_folder
    from sessionary.testing.sync_demo import demonstrate_sync

    def acts(folder: Path) -> Iterator[str]:
        yield f"In {folder}:"
        yield ""
        yield from demonstrate(folder)
        yield "4. Two machines share their sessions."
        yield ""
        yield from (f"   {line}" for line in demonstrate_sync(folder / "machines"))
        yield ""

    with scratch_folder(parent, keep=keep) as folder:
        if not show(acts(folder)):
            return NOT_AS_PROMISED
        output.line("A kill is not a power cut: `make test` simulates those (docs/durability.md).")
        if (caveat := weakness(folder)) is not None:
            output.line(f"Limits of this run: {caveat}.")
        if keep:
            output.line(f"The scratch folder is kept: {folder}. Try `sessionary list --home` with it.")
    output.line()
    output.line(_TRY)
    return 0


def show(lines: Iterator[str]) -> bool:
    """Print the lines of a demo as they come; False if a check failed."""
    from sessionary.testing.demo import BrokenPromise

    began = time.monotonic()
    try:
        for line in lines:
            output.line(line)
            output.flush()
    except BrokenPromise as error:
        output.line(f"FAILED: {error}.")
        return False
    output.line(f"All checks passed in {time.monotonic() - began:.1f} s.")
    return True


@command("demo", "sessionary sync demo")
@options.flag("--keep", help="Keep the scratch folder for inspection.")
def sync_demo_command(keep: bool) -> int:
    """Show two machines that share sessions, with kills.

    The machines are two homes; between them is a folder as the store. Exit code 0: all checks passed; 1: a check
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
