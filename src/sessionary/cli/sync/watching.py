"""`sync watch`: synchronise sessions as they change, until interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from sessionary.cli import collect_garbage, options, output
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import cost_line, document, lines
from sessionary.cli.text import harmless
from sessionary.sync.report import Report
from sessionary.workspace.sync_watch import Stop, Watch


@command("watch", "sessionary sync watch", "sessionary sync watch --interval 300 --settle 10")
@places.local(quiet=True)
@options.seconds("--interval", default=60.0, least=1, help="How often to look for changes on the remote.")
@options.seconds(
    "--settle", default=3.0, least=0.1, help="Push once local files have not changed for this long."
)
@options.json_flag("--json", "--jsonl", "json_", help="Print JSON Lines: one push or pull per line.")
def watch_command(select: Callable[[], places.Here], interval: float, settle: float) -> int:
    """Push and pull changes as they happen, until Ctrl-C.

    If the remote does not answer, the command retries after the next interval. Nothing is queued in memory, so
    nothing is lost if the command is killed. On an interrupt or SIGTERM it finishes the current session and ends
    with exit code 0.

    This cannot be undone; see `sync push` and `sync pull`.
    """
    collect_garbage()
    here = select()
    remote = here.chosen.connect(here.state)
    try:
        with Stop() as stop, _ending(stop):
            watch = Watch(
                here, remote, partial(_print, here), _print_failure, partial(Progress, "carrying", None)
            )
            watch.run(stop, interval, settle)
    finally:
        remote.close()
    return 0


@contextmanager
def _ending(stop: Stop) -> Iterator[None]:
    """A block in which a first request to end is deferred; a second one ends at once."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def handler(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.default_int_handler(number, frame)
        stop.set()

    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


def _print_failure(text: str) -> None:
    output.aside(harmless(f"sessionary: {text}"))


def _print(here: places.Here, report: Report) -> None:
    if output.is_json():
        output.values([document(report, here)])
        output.flush()
        return
    output.lines(lines(report, here))
    output.flush()
    output.aside(cost_line(report.cost))
