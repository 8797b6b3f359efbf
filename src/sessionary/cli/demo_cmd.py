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
   sessionary list            what there is, newest first
   sessionary show ID         read one; the first characters of its id will do
   sessionary search WORDS    find messages
   sessionary check           find what is damaged
   sessionary repair ID       put it right; with --dry-run, see how
   sessionary undo            take the last change back"""


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
    help="Make the scratch folder there, on another disk (default: where the system puts such).",
)
@click.option("--keep", is_flag=True, help="Leave the scratch folder, to look at what the store has written.")
def demo_command(parent: Path | None, keep: bool) -> int:
    """Watch saves being killed and sessions recovered, and every kind of session keep what was promised.

    An agent saves a conversation in a scratch folder. It is killed for real, again and again, and each time all
    that it was promised must be there. Then one bit of the file is flipped, words are looked for, and the session is
    forked, rewound, damaged and repaired, with every byte compared. Messages are left in the mailbox of a work session
    and applied, and both sides are killed: none may be lost or applied twice. Last, a brainstorm goes back and on, and
    the state of a feature is destroyed and rebuilt. Ends with 0 if all was as promised, with 1 if anything was not.
    Your own sessions are not touched.
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
            output.line(f"NOT AS PROMISED: {error}.")
            return NOT_AS_PROMISED
        _conclude(time.monotonic() - began, weakness(folder))
        if keep:
            output.line(f"What was written is left in {folder}: try `sessionary list --home` with it.")
    output.line()
    output.line(_TRY)
    return 0


def _conclude(seconds: float, caveat: str | None) -> None:
    output.line(f"All as promised, in {seconds:.1f} s.")
    output.line("A kill is not a power cut: `make test` goes through those (docs/durability.md).")
    if caveat is not None:
        output.line(f"And mind where this ran: {caveat}.")
