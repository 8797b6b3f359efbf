"""`sessionary demo`: the main jobs, with kills, in a scratch folder."""

from __future__ import annotations

import time
from itertools import chain
from pathlib import Path

import click

from sessionary.cli import output

NOT_AS_PROMISED = 1

_TRY = """\
Now your own sessions:
   sessionary list            all sessions, newest first
   sessionary show ID         read one; the first characters of its id are enough
   sessionary search WORDS    find messages
   sessionary check           find damage
   sessionary repair ID       repair it; --dry-run shows how
   sessionary undo            undo the last change"""


@click.command(
    "demo",
    epilog="""\b
Examples:
  sessionary demo
  sessionary demo --dir /mnt/other-disk
""",
)
@click.option(
    "--dir",
    "parent",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Create the scratch folder in DIR, for example on another disk (default: the system's temporary folder).",
)
@click.option("--keep", is_flag=True, help="Keep the scratch folder for inspection.")
def demo_command(parent: Path | None, keep: bool) -> int:
    """Show saves being killed and sessions recovered, for every kind of session.

    An agent saves a conversation in a scratch folder. Its process is killed again and again, and each time
    every acknowledged save must be there. Then one bit of the file is flipped, and the session is searched,
    forked, rewound, damaged and repaired, with every byte compared. Messages are posted to the mailbox of a
    work session and applied while sender and consumer are killed: none may be lost or applied twice. Last, a
    brainstorm goes back and on, and the state of a feature is destroyed and rebuilt. Exit code 0: all checks
    passed; 1: a check failed. Your own sessions are not touched.
    """
    from sessionary.disk.mounts import weakness
    from sessionary.layouts.maestro.names import ROOT
    from sessionary.testing.brainstorm_demo import went_back_and_on
    from sessionary.testing.demo import demonstrate, scratch_folder
    from sessionary.testing.demo_stage import BrokenPromise
    from sessionary.testing.feature_demo import rebuilt_from_history
    from sessionary.testing.mailbox_demo import demonstrate_mailbox

    began = time.monotonic()
    with scratch_folder(parent, keep=keep) as folder:
        output.line(f"In {folder}:")
        output.line()
        try:
            acts = (
                demonstrate(folder),
                demonstrate_mailbox(folder / ROOT / "demo"),
                went_back_and_on(folder / "project"),
                rebuilt_from_history(folder / "project"),
            )
            for line in chain.from_iterable(acts):
                output.line(line)
        except BrokenPromise as error:
            output.line(f"FAILED: {error}.")
            return NOT_AS_PROMISED
        _conclude(time.monotonic() - began, weakness(folder))
        if keep:
            output.line(f"The scratch folder is kept: {folder}. Try `sessionary list --home` with it.")
    output.line()
    output.line(_TRY)
    return 0


def _conclude(seconds: float, caveat: str | None) -> None:
    output.line(f"All checks passed in {seconds:.1f} s.")
    output.line("A kill is not a power cut: `make test` simulates those (docs/durability.md).")
    if caveat is not None:
        output.line(f"Limits of this run: {caveat}.")
