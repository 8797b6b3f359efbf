"""An `Fs` whose n-th call of a kind fails, and the sweep that tries every n.

SQLite's way of testing: run an operation, let the first call fail, look at what is left; then the second;
and so on until the operation gets through untouched. There is then no error branch that was never taken.

What can happen to a call:

an errno
    The call raises OSError and does nothing. After a failed fsync or fdatasync the bytes stay readable, and
    the next flush reports success although it stored nothing, as Linux does it: a caller that retries is
    deceived. Put a `RecordingFs` around a `FaultFs` to see in `survivors` what such a file is worth.
``short`` (write)
    The write stores the first half and says so; the next write raises ENOSPC.
``torn`` (write)
    The process is killed in the middle of the write: the first half is stored, then as ``kill``.
``kill``
    The process dies before the call: it raises `Killed`, and so does every later call, so that no clean-up
    of the dying code has any effect. `bury` then closes the descriptors, as the kernel does, which frees
    the locks.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sessionary.disk.fs import FILE_MODE, OS_FS, Fs
from sessionary.errors import SessionaryError
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.support.sweeps import Check, Report, Setup, Violation, judge

Call = Literal[
    "open",
    "write",
    "truncate",
    "fsync",
    "fdatasync",
    "rename",
    "link",
    "link_fd",
    "unlink",
    "mkdir",
    "rmdir",
    "clone",
    "utime",
    "close",
    "any",
]
CALLS: tuple[Call, ...] = (
    "open",
    "write",
    "truncate",
    "fsync",
    "fdatasync",
    "rename",
    "link",
    "link_fd",
    "unlink",
    "mkdir",
)
Effect = int | Literal["short", "torn", "kill"]
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)

_CHANGES = frozenset(get_args(Call)) - {"close", "any"}


class Killed(BaseException):
    """The process is dead. Not an Exception: no handler for errors may survive a kill."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at the n-th call of a kind.

    Attributes:
        call: the kind of call; ``any`` counts all but close.
        n: which of them, from 1.
        effect: an errno, ``short``, ``torn`` or ``kill``.
        lasting: whether all later calls of the kind fail as well (a disk that stays full). For an errno only.
    """

    call: Call
    n: int
    effect: Effect
    lasting: bool = False

    def __post_init__(self) -> None:
        if self.effect in ("short", "torn") and self.call != "write":
            raise ValueError(f"only a write can be {self.effect}, not {self.call}")

    def __str__(self) -> str:
        what = (
            errno.errorcode.get(self.effect, str(self.effect))
            if isinstance(self.effect, int)
            else self.effect
        )
        return f"{what} at {self.call} {self.n}{' and after' if self.lasting else ''}"


class FaultFs(WrappedFs):
    """Does every call through `inner`, except those that `plan` makes fail.

    Attributes:
        counts: how often each kind of call was made; ``any`` all that a fault can strike but close.
        log: the same calls as ``any``, in order, in words.
        fired: the faults of the plan that came about.
        dead: whether the process has been killed.
        descriptors: the open ones, and the paths they were opened by.
    """

    def __init__(self, inner: Fs = OS_FS, plan: Fault | Iterable[Fault] = ()) -> None:
        super().__init__(inner)
        self.plan = (plan,) if isinstance(plan, Fault) else tuple(plan)
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        self.fired: list[Fault] = []
        self.dead = False
        self.descriptors: dict[int, str] = {}
        self._acked: list[Any] = []
        self._buried = False
        self._full = False  # a short write has been made: the next write fails

    @property
    def acked(self) -> tuple[Any, ...]:
        """The values marked so far."""
        return tuple(self._acked)

    def mark(self, value: Any) -> None:
        """Remember that the caller got `value` here."""
        if not self.dead:
            self._acked.append(value)

    def bury(self) -> None:
        """Close the descriptors that are still open, as the kernel does for a dead process."""
        self.dead = self._buried = True
        for fd in list(self.descriptors):
            self.inner.close(fd)
        self.descriptors.clear()

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self.dead:
            if self._buried and name == "close":
                return None  # a left-over object is collected; its descriptor is closed already
            raise Killed(f"{name} after the kill")
        self._note(name, arguments)
        if self._full and name == "write":
            self._full = False
            raise _no_space()
        for fault in self.plan:
            if self._strikes(fault, name):
                self.fired.append(fault)
                return self._strike(fault, name, arguments)
        return super().call(name, *arguments, **options)

    def _note(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.counts[name] += 1
        if name in _CHANGES:
            self.counts["any"] += 1
            words = [
                self.descriptors.get(word, word) if isinstance(word, int) else word for word in arguments
            ]
            self.log.append(" ".join([name, *(word for word in words if isinstance(word, str))]))

    def _strikes(self, fault: Fault, name: str) -> bool:
        if fault.call != name and not (fault.call == "any" and name in _CHANGES):
            return False
        count = self.counts[fault.call]
        return count == fault.n or (fault.lasting and count > fault.n)

    def _strike(self, fault: Fault, name: str, arguments: tuple[Any, ...]) -> Any:
        if isinstance(fault.effect, int):
            if name == "close":  # Linux frees the descriptor and then reports that an earlier write failed
                self.inner.close(arguments[0])
                self.descriptors.pop(arguments[0], None)
            path = arguments[0] if isinstance(arguments[0], str) else None
            raise OSError(fault.effect, os.strerror(fault.effect), path)
        written = 0 if fault.effect == "kill" else self._write_half(*arguments)
        if fault.effect == "short":
            if not written:
                raise _no_space()
            self._full = True
            return written
        self.dead = True
        raise Killed(str(fault))

    def _write_half(self, fd: int, data: bytes | memoryview) -> int:
        half = len(data) // 2
        return self.inner.write(fd, data[:half]) if half else 0

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        fd = super().open(path, flags, mode)
        self.descriptors[fd] = path
        return fd

    def close(self, fd: int) -> None:
        super().close(fd)
        self.descriptors.pop(fd, None)


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def count_calls(workload: Callable[[FaultFs], object], inner: Fs = OS_FS) -> Counter[str]:
    """How often `workload` makes each kind of call when nothing fails."""
    fs = FaultFs(inner)
    workload(fs)
    return fs.counts


Workload = Callable[[FaultFs, str], object]


def sweep(
    setup: Setup,
    workload: Workload,
    check: Check,
    root: str | os.PathLike[str],
    *,
    calls: Sequence[Call] = CALLS,
    effects: Sequence[Effect] = EFFECTS,
    lasting: bool = False,
) -> Report:
    """Let each call of `workload` fail in each way, one per run, and check what every run leaves.

    Flushes that do not fail are not waited for: no run survives a power cut, or needs to.

    Args:
        setup: makes the state before, in a fresh empty folder.
        workload: does the work through the `FaultFs` in that folder and marks what it was promised. It may
            raise OSError or a SessionaryError; anything else that a fault makes it raise is a violation.
        check: looks at the folder with the plain file system; raises if a promise is broken.
        root: where to make the folders; they are removed again.
        calls: kinds of calls to try.
        effects: what happens to them; ``short`` and ``torn`` are tried on writes only.
        lasting: errnos stay for all later calls of the kind.
    """
    report = Report()
    for call in calls:
        for effect in effects:
            if effect in ("short", "torn") and call != "write":
                continue
            n = 1
            while _run(
                Fault(call, n, effect, lasting and isinstance(effect, int)),
                setup,
                workload,
                check,
                root,
                report,
            ):
                n += 1
    return report


def _run(
    fault: Fault, setup: Setup, workload: Workload, check: Check, root: str | os.PathLike[str], report: Report
) -> bool:
    """One run. False if the fault did not come about: the work makes fewer such calls."""
    folder = Path(root, f"fault-{report.states}")
    folder.mkdir()
    setup(str(folder))
    fs = FaultFs(UNSYNCED, fault)
    trouble: str | None = None
    try:
        workload(fs, str(folder))
    except (Killed, OSError, SessionaryError):
        pass
    except Exception as error:  # noqa: BLE001 - a bug in an error path; it is reported, not hidden
        trouble = f"the workload raised {error!r}"
    fired = bool(fs.fired)
    fs.bury()
    trouble = trouble or judge(check, str(folder), fs.acked)
    report.count(str(fault.effect))
    if trouble is not None:
        story = "\n".join([f"{fault}:", *(f"  {line}" for line in fs.log)])
        report.violations.append(Violation(str(fault), trouble, story))
    shutil.rmtree(folder)
    return fired
