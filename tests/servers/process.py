"""A server as a child process: started on a free port of the loopback, awaited, and ended with the test run."""

import atexit
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE = 60.0
ROOT = str(Path(__file__).parents[2])


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(command: Callable[[int, Path], Sequence[str]]) -> int:
    """Start a server and wait until it accepts connections; returns its port.

    Args:
        command: gives the command line for a port and a scratch folder.

    Raises:
        RuntimeError: it ended, or did not listen in time; with what it printed.
    """
    port = free_port()
    scratch = tempfile.TemporaryDirectory(prefix="sessionary-server-")
    log = Path(scratch.name) / "log"
    with open(log, "wb") as out:
        child = subprocess.Popen(
            command(port, Path(scratch.name)),
            cwd=scratch.name,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH")))),
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    atexit.register(_end, child, scratch)
    deadline = time.monotonic() + PATIENCE
    while not _listens(port):
        if child.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server does not listen: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(child: "subprocess.Popen[bytes]", scratch: "tempfile.TemporaryDirectory[str]") -> None:
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    scratch.cleanup()
