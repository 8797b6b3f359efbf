"""`sync check`: compare the blocks and heads on the remote with the local sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from sessionary.cli import formatting, options, output
from sessionary.cli.changing import print_command, set_in
from sessionary.cli.lazy import command
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import cost_line, cost_object
from sessionary.cli.text import one_line
from sessionary.errors import Corrupt
from sessionary.sync.checking import Checked
from sessionary.sync.report import Report
from sessionary.sync.retry import Cost


@command(
    "check",
    "sessionary sync check",
    "sessionary sync check --repair",
    "sessionary sync check --json | jq '.sessions[] | select(.faults != [])'",
)
@places.local()
@options.flag("--repair", help="Upload missing or damaged blocks and heads again, from the local files.")
@options.as_json("the sessions", "one session")
def check_command(select: Callable[[], places.Here], repair: bool) -> int:
    """Compare the remote copies with the hashes of the uploads.

    All blocks of these sessions are downloaded. Local files are never changed. Without --repair the remote is
    not changed either. With it, a missing block is uploaded again, and a damaged one is replaced, which needs
    the right to delete. A missing or damaged head is uploaded as this machine knows it.

    Data that only another machine has must be repaired there. The first line shows the name of this machine
    in heads. Exit code 13: something is missing or damaged, and was not repaired. Exit code 3: a session was
    not compared.

    This cannot be undone, and need not be: the same data is uploaded again.
    """
    here = select()
    found: list[Checked] = []
    reports: list[Report] = []
    with places.connected(here, "checking") as remote:
        engines = remote.engines()
        device = engines[0].checker.device()
        for engine in engines:
            found += engine.checker.check(remote.heads, repair=repair)
            reports.append(Report(cost=remote.remote.cost))
        cost = remote.report(reports).cost
    if output.is_json():
        output.holding(_document(found, device, cost), "sessions")
    else:
        output.lines(_lines(found, device))
        if not repair and not all(one.is_right for one in found):
            print_command("next", here.command("check", "--repair"))
        output.aside(cost_line(cost))
    if not all(one.is_right for one in found):
        return Corrupt.exit_code
    return options.PARTLY if any(one.error is not None for one in found) else 0


def _lines(found: list[Checked], device: str) -> Iterator[str]:
    yield f"this machine is {device} in heads"
    for one in found:
        yield from _session(one)
    counts = Counter(one.state for one in found)
    blocks = sum(one.blocks for one in found)
    whole = formatting.count(counts["whole"], "session")
    parts = [f"{whole} complete on the remote ({formatting.count(blocks, 'block')} read)"]
    words = {"healed": "healed", "damaged": "damaged", "not_compared": "not compared"}
    parts += [f"{counts[state]:,} {word}" for state, word in words.items() if counts[state]]
    sign = output.paint("✗", "red") if counts["damaged"] else output.paint("✓", "green")
    yield f"{sign} {', '.join(parts)}"


def _session(one: Checked) -> Iterator[str]:
    name = one_line(one.session_id) + (f"  {one_line(one.project)}" if one.project else "")
    if one.faults:
        sign = output.paint("!", "yellow") if one.is_right else output.paint("✗", "red")
        yield f"{sign} {one.state:<12}  {name}"
        for fault in one.faults:
            again = ", uploaded again" if fault.healed else ""
            yield from set_in("    " + one_line(f"{fault.what}{again}: {fault.note}"))
    elif one.note:
        yield f"{output.paint('!', 'yellow')} {'not compared':<12}  {name}"
        yield from set_in("    " + one_line(one.note))
        if one.error is not None and one.error.hint:
            yield from set_in("    " + one_line(one.error.hint))


def _document(found: list[Checked], device: str, cost: Cost) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "device": device,
        "sessions": [_object(one) for one in found],
        "counts": dict(sorted(Counter(one.state for one in found).items())),
        "blocks": sum(one.blocks for one in found),
        "cost": cost_object(cost),
    }


def _object(one: Checked) -> dict[str, Any]:
    return {
        "id": one.session_id,
        "kind": one.kind,
        "project": one.project,
        "state": one.state,
        "blocks": one.blocks,
        "faults": [fault._asdict() for fault in one.faults],
        "note": one.note,
        "error": None if one.error is None else one.error.as_dict(),
    }
