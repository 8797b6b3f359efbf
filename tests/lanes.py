"""Lanes: the tests that need something which not every machine has.

A test says what it needs with ``@pytest.mark.lane("disk-full")``. Whether the machine has it is found out by
trying, not by asking for a platform or a user name. A lane that cannot run is skipped **and named in the last
lines of the run with its reason**, because a proof that silently did not happen is worse than none.
``SESSIONARY_REQUIRE_LANES``, a comma-separated list, turns that into an error: the machine that promised a
lane must run it, and a lane of which no test ran at all (a renamed mark, a deleted file) counts as not run.

The outcome travels in ``user_properties``, the one part of a report that also arrives from the workers of
pytest-xdist.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.plugs import environments, harbor
from tests.servers import npm, objects

REQUIRE = "SESSIONARY_REQUIRE_LANES"
SHARED = "SESSIONARY_SHARED"
SOAK = "SESSIONARY_SOAK"
PEERS = "SESSIONARY_PEERS"
GIGABYTES = 3_000_000_000
REPO = Path(__file__).resolve().parent.parent


def shared_folder() -> Path:
    """The folder with the public sample sessions; it may be missing."""
    named = os.environ.get(SHARED)
    return Path(named) if named else REPO.parent / "shared"


@cache
def tiny_disk_prefix() -> tuple[str, ...] | None:
    """The command that gives its child mounts of its own, or None if the machine allows none.

    Mounts made under it vanish with the child: a killed test leaves nothing behind.
    """
    mount = ["sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
    for prefix in (("unshare", "-m"), ("unshare", "-Urm")):
        try:
            done = subprocess.run([*prefix, *mount], capture_output=True, timeout=20, check=False)
        except OSError:
            return None
        if done.returncode == 0:
            return prefix
    return None


def run_on_tiny_disk(code: str, mountpoint: Path, *, size: str = "256k") -> subprocess.CompletedProcess[str]:
    """Run Python code with a real file system mounted on `mountpoint`, small enough to fill.

    `size` is a tmpfs option. The code finds the mount point in ``sys.argv[1]``; no other process sees the
    mount. Only for tests of the lane ``disk-full``.
    """
    prefix = tiny_disk_prefix()
    assert prefix is not None, "ask for the lane first: @pytest.mark.lane('disk-full')"
    mountpoint.mkdir(parents=True, exist_ok=True)
    script = f'mount -t tmpfs -o size={size} none "$1" && exec "$2" -c "$3" "$1"'
    command = [*prefix, "sh", "-c", script, "sh", str(mountpoint), sys.executable, code]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def after_a_power_cut(write: str, read: str, folder: Path, *features: str) -> tuple[str, str]:
    """Run Python code on an ext4 of its own, and other code on what its disk held then; returns what both print.

    Nothing is unmounted before the disk is copied, so what was never flushed is mostly not there; the copy is mended by
    the check of the file system. Both find the mount point in ``sys.argv[1]``. `features` are those of
    ``mkfs.ext4 -O``. Only for tests of the lane ``power-cut``.

    Raises:
        subprocess.CalledProcessError: one of the programs failed.
    """
    options = ["-O", ",".join(features)] if features else []
    mounted = 'mkdir -p there && mount -o loop "$1" there && "$2" -c "$3" "$PWD/there"'
    _run(folder, "mkfs.ext4", "-q", "-F", *options, "disk", "32M")
    written = _run(
        folder, "unshare", "-m", "sh", "-ec", f"{mounted}; cp disk cut", "sh", "disk", sys.executable, write
    )
    _run(folder, "e2fsck", "-f", "-y", "cut", passes=1)  # with 1 it says that something was mended
    found = _run(folder, "unshare", "-m", "sh", "-ec", mounted, "sh", "cut", sys.executable, read)
    return written, found


def _run(folder: Path, *command: str, passes: int = 0) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode > passes:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def _probe_power_cut() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            after_a_power_cut("", "", Path(folder))
        except FileNotFoundError as error:
            return f"there is no {error.filename}"
        except (OSError, subprocess.SubprocessError) as error:
            return f"no file system can be made in a file and mounted: {getattr(error, 'stderr', '') or error}".strip()
    return None


def _probe_samples() -> str | None:
    folder = shared_folder() / "samples"
    return None if folder.is_dir() else f"no sample sessions in {folder} ({SHARED} names another place)"


def _probe_cases() -> str | None:
    folder = shared_folder() / "cases"
    return None if folder.is_dir() else f"no public cases in {folder} ({SHARED} names another place)"


def _probe_disk_full() -> str | None:
    if tiny_disk_prefix() is not None:
        return None
    return "a small file system can be mounted neither as this user nor in a user namespace"


def _probe_sigkill() -> str | None:
    return None if hasattr(signal, "SIGKILL") and os.name == "posix" else "this platform has no SIGKILL"


def _probe_memory() -> str | None:
    return (
        None
        if Path("/proc/self/status").exists()
        else "this platform does not report the memory of a process"
    )


def _probe_gigabyte() -> str | None:
    if not os.environ.get(SOAK):
        return f"takes minutes; `make soak` sets {SOAK}"
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < GIGABYTES:
        return f"{free / 1e9:.1f} GB are free in {tempfile.gettempdir()}, {GIGABYTES / 1e9:.0f} are needed"
    return _probe_memory()


def _probe_original() -> str | None:
    return None if find_spec("amplifier_foundation") else "the package amplifier_foundation is not installed"


def _probe_postgres() -> str | None:
    from tests.servers import postgres

    return _why_not(postgres.server)


def _probe_postgres_of_system() -> str | None:
    from tests.servers import postgres

    return _why_not(postgres.of_system)


def _why_not(server: Callable[[], object]) -> str | None:
    try:
        server()
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
    return None


def _probe_cosmos_npm() -> str | None:
    return npm.missing("@vercel/cosmosdb-server")


def _probe_cosmos_real() -> str | None:
    named = all(os.environ.get(f"SESSIONARY_TEST_COSMOS_{name}") for name in ("ENDPOINT", "DATABASE"))
    return None if named else "SESSIONARY_TEST_COSMOS_ENDPOINT and _DATABASE name no account to test with"


def peers_python() -> str:
    """The interpreter that has the packages of the programs which the lane ``peers`` compares with."""
    return os.environ.get(PEERS) or sys.executable


def _probe_peers() -> str | None:
    packages = ("hypabolic_trajectory", "claude_code_log")
    command = [peers_python(), "-c", "import " + ", ".join(packages)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return None if done.returncode == 0 else f"{PEERS} names no Python with {' and '.join(packages)}"


def chromium() -> str | None:
    """The program of the system's Chromium; None without one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _probe_chromium() -> str | None:
    if find_spec("playwright") is None:
        return "the package playwright is not installed"
    return None if chromium() else "no Chromium in PATH (Debian: apt-get install chromium)"


def _probe_axe() -> str | None:
    return _probe_chromium() or npm.not_installed("axe-core")


def _probe_plug(name: str) -> Callable[[], str | None]:
    return lambda: environments.missing(name)


PROBES: dict[str, Callable[[], str | None]] = {
    "samples": _probe_samples,  # public sample sessions of the original programs
    "cases": _probe_cases,  # public reports of broken sessions, each with what must come out
    "disk-full": _probe_disk_full,  # a real file system small enough to fill
    "power-cut": _probe_power_cut,  # a real ext4 on a disk of its own, copied while it is mounted
    "memory": _probe_memory,  # the peak memory of a process, from /proc
    "gigabyte": _probe_gigabyte,  # files of 1 GB; only `make soak` runs it
    "sigkill": _probe_sigkill,  # real processes, really killed
    "postgres": _probe_postgres,  # a PostgreSQL server that the tests start themselves
    "postgres-of-system": _probe_postgres_of_system,  # another one, of another version, from the system's packages
    "peers": _probe_peers,  # other programs that count the same sessions
    "original": _probe_original,  # the original programs, to compare with
    "s3": objects.moto_missing,  # moto, an S3 from PyPI
    "azurite": objects.azurite_missing,  # Microsoft's Azure Blob from npm
    "s3rver": objects.s3rver_missing,  # an S3 from npm that ignores conditions
    "cosmos-npm": _probe_cosmos_npm,  # a Cosmos DB server that others wrote
    "chromium": _probe_chromium,  # the system's browser, driven by playwright
    "axe": _probe_axe,  # the rules of accessibility, evaluated in that browser
    "cosmos-real": _probe_cosmos_real,  # an account of Azure; what is stored there is left behind
    "harbor": harbor.missing,  # the models of the format ATIF, of the program that it comes from
    **{
        f"plug-{name}": _probe_plug(name) for name in environments.FRAMEWORKS
    },  # a framework in its environment
}

_probe = cache(lambda lane: PROBES[lane]())


def required_lanes() -> list[str]:
    """The lanes that this run must not miss, from the environment."""
    return [name.strip() for name in os.environ.get(REQUIRE, "").split(",") if name.strip()]


def _lane_of(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("lane"):
        yield from mark.args


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and refuse a list of required lanes that names none of ours."""
    config.addinivalue_line("markers", "lane(name): needs what only some machines have; see tests/lanes.py")
    unknown = sorted(set(required_lanes()) - set(PROBES))
    if unknown:
        raise pytest.UsageError(
            f"{REQUIRE} names unknown lanes: {', '.join(unknown)}; known: {', '.join(PROBES)}"
        )
    if not hasattr(config, "workerinput"):  # only the controller sees every report
        config.pluginmanager.register(LaneReport(), "sessionary-lanes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A misspelt lane would never run anywhere: stop at once."""
    for item in items:
        for lane in _lane_of(item):
            if lane not in PROBES:
                raise pytest.UsageError(f"{item.nodeid}: unknown lane {lane!r}; known: {', '.join(PROBES)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose lane this machine cannot run, and say so in its report."""
    for lane in _lane_of(item):
        item.user_properties.append(("lane", lane))
        reason = _probe(lane)
        if reason is not None:
            item.user_properties.append(("lane-not-run", f"{lane}: {reason}"))
            pytest.skip(f"lane {lane}: {reason}")


@pytest.fixture
def shared() -> Path:
    """The folder with the public sample sessions; only for tests of the lane ``samples``."""
    return shared_folder()


class LaneReport:
    """What became of each lane, gathered from the reports and said at the end."""

    def __init__(self) -> None:
        self.ran: dict[str, int] = {}
        self.not_run: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, value in report.user_properties:
            if key == "lane-not-run":
                lane, _, reason = str(value).partition(": ")
                self.not_run[lane] = reason
            elif key == "lane" and report.when == "call" and not report.skipped:
                self.ran[str(value)] = self.ran.get(str(value), 0) + 1

    def missing(self) -> dict[str, str]:
        """The required lanes that did not run, each with its reason."""
        reasons = {lane: self.not_run.get(lane, "no test of it ran") for lane in required_lanes()}
        return {
            lane: reason for lane, reason in reasons.items() if lane in self.not_run or lane not in self.ran
        }

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        collect_only = session.config.option.collectonly
        if (
            not collect_only
            and self.missing()
            and session.exitstatus in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    # The outermost wrapper: after the list of skipped and failed tests, before the closing line.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        yield
        missing = {} if terminalreporter.config.option.collectonly else self.missing()
        if not (self.ran or self.not_run or missing):
            return
        terminalreporter.section("lanes")
        for lane, count in sorted(self.ran.items()):
            terminalreporter.write_line(f"ran lane {lane}: {count} tests")
        for lane, reason in sorted((self.not_run | missing).items()):
            error = f" (required by {REQUIRE}: this run fails)" if lane in missing else ""
            terminalreporter.write_line(f"NOT RUN lane {lane}: {reason}{error}", red=bool(error), yellow=True)
