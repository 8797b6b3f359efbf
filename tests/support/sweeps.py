"""Run an operation once, then look at every state that a power cut during it may leave.

The check of a sweep is an ordinary function of a folder and of what the caller had got by then: it
opens the folder as a program would after the reboot, and raises if a promise is broken. It may also repair
and go on writing.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.testing.wrapper import UNSYNCED
from tests.support.recorder import RecordingFs
from tests.support.survivors import LIMIT, MODELS, Model, Survivor, materialise, survivors

Setup = Callable[[str], object]
Operation = Callable[[RecordingFs], object]
Check = Callable[[str, tuple[Any, ...]], object]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise.

    Attributes:
        place: the model, or the fault.
        trouble: what the check said.
        story: the operations, what became of each, and what is left.
    """

    place: str
    trouble: str
    story: str

    def __str__(self) -> str:
        return f"{self.trouble}\n{self.story}"


@dataclass(slots=True)
class Report:
    """What a sweep found.

    Attributes:
        places: how many states were checked, by model or by effect.
        violations: the broken promises.
    """

    places: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    @property
    def states(self) -> int:
        """How many states were checked."""
        return self.places.total()

    def count(self, place: str) -> None:
        """One more state was checked."""
        self.places[place] += 1

    def describe(self, most: int = 3) -> str:
        """The first violation of each kind, with its story."""
        kinds = {(violation.place, violation.trouble): violation for violation in reversed(self.violations)}
        head = f"{len(self.violations)} violations in {self.states} states"
        return "\n\n".join([head, *(str(violation) for violation in list(kinds.values())[::-1][:most])])


def judge(check: Check, folder: str, acked: tuple[Any, ...]) -> str | None:
    """What a check has to say against a folder, or None."""
    try:
        check(folder, acked)
    except Exception as error:  # noqa: BLE001 - whatever a reader raises after a crash is the finding
        return f"{type(error).__name__}: {error}".strip()
    return None


def record(
    setup: Setup, operation: Operation, work: str | os.PathLike[str], inner: Fs = UNSYNCED
) -> RecordingFs:
    """Run `setup` and then, recorded, `operation` in the new folder `work`."""
    Path(work).mkdir(parents=True)
    setup(os.fspath(work))
    fs = RecordingFs(work, inner)
    operation(fs)
    return fs


def crash_sweep(
    setup: Setup,
    operation: Operation,
    check: Check,
    root: str | os.PathLike[str],
    *,
    models: Sequence[Model] = MODELS,
    seed: int = 0,
    limit: int = LIMIT,
    since: Any = None,
    inner: Fs = UNSYNCED,
) -> Report:
    """Check every state that a power cut during `operation` may leave.

    Args:
        setup: makes the state before, with plain calls, in a fresh empty folder. It is taken to be durable.
        operation: does the work through the `RecordingFs` in its ``root`` and marks what it was promised.
        check: gets a folder with a surviving state and the values marked before the cut; raises if a promise
            is broken. Each state is in a folder of a new name, so nothing of the last one is remembered.
        root: where to make the folders; they are removed again.
        models: which models of a disk to try.
        seed: of the sampling.
        limit: most states per crash point.
        since: only cuts after this value was marked; those before are another sweep's.
        inner: what the recording goes through, for example a `FaultFs`. Flushes are recorded either way; by
            default the disk is not made to wait for them.
    """
    work = Path(root, "work")
    recording = record(setup, operation, work, inner).recording
    report = Report()
    verdicts: dict[tuple[int, int], str | None] = {}
    for model in models:
        for survivor in survivors(recording, model, seed=seed, limit=limit, since=since):
            known = (len(survivor.acked), survivor.key)
            if known not in verdicts:
                verdicts[known] = _verdict(check, survivor, Path(root, f"state-{len(verdicts)}"))
            report.count(model)
            if (trouble := verdicts[known]) is not None:
                report.violations.append(Violation(model, trouble, survivor.describe()))
    shutil.rmtree(work)
    return report


def _verdict(check: Check, survivor: Survivor, folder: Path) -> str | None:
    materialise(survivor, folder)
    trouble = judge(check, str(folder), survivor.acked)
    shutil.rmtree(folder)
    # The folder has a new number each time; without it equal troubles read equal.
    return trouble if trouble is None else trouble.replace(str(folder), "<root>")


def pairs(operations: Mapping[str, Operation]) -> dict[str, Operation]:
    """Every two of `operations` in a row, each with itself too: most bugs need no more than that."""
    return {
        f"{first}, then {second}": _in_a_row(operations[first], operations[second])
        for first in operations
        for second in operations
    }


def _in_a_row(first: Operation, second: Operation) -> Operation:
    def both(fs: RecordingFs) -> None:
        first(fs)
        second(fs)

    return both
