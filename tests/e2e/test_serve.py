"""`sessionary serve` as a process: the link, the file that the browser opens, the sockets."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from sessionary.errors import AlreadyExists, NotFound, StorageFailed, Unsupported
from tests.e2e.driving import COMMAND, wakeups

PATIENCE = 60


@contextmanager
def serving(tmp_path: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The command with a home of its own; it is interrupted at the end."""
    (tmp_path / "home" / "projects").mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}
    command = [*COMMAND, "serve", "--home", str(tmp_path / "home"), *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_no_open_prints_a_link_that_opens_the_page(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-open") as process:
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#token=([\w-]{40,})", line(process))
        assert found is not None
        headers = {"authorization": f"Bearer {found[2]}"}
        assert httpx2.get(f"{found[1]}/api/sessions", headers=headers).json()["total"] == 0
        assert httpx2.get(f"{found[1]}/api/sessions").status_code == 401
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no count of wake-ups")
def test_an_idle_server_sleeps(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-open") as process:
        root, _, token = line(process).partition("#token=")
        headers = {"authorization": f"Bearer {token}"}
        assert httpx2.get(f"{root}api/sessions", headers=headers).json()["total"] == 0
        time.sleep(1)
        before = wakeups(process.pid)
        time.sleep(1.5)
        assert wakeups(process.pid) - before <= 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


def test_each_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    links = []
    for _ in range(2):
        with serving(tmp_path, "--no-open") as process:
            links.append(line(process).partition("#")[2])
    assert links[0] != links[1]


def test_only_this_machine_reaches_the_port(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-open") as process:
        port = int(line(process).split(":")[2].partition("/")[0])
        socket.create_connection(("127.0.0.1", port), 5).close()
        for other in {
            found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        }:
            if not str(other).startswith("127."):
                with pytest.raises(OSError, match="refused"):
                    socket.create_connection((str(other), port), 5)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows the arguments of processes")
def test_the_token_is_in_no_command_line_and_the_file_is_private(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked.tmp && mv {tmp_path}/asked.tmp {tmp_path}/asked\n'
    )
    browser.chmod(0o755)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    with serving(tmp_path, BROWSER=f"{browser} %s", XDG_RUNTIME_DIR=str(runtime)) as process:
        asked = tmp_path / "asked"
        end = time.monotonic() + PATIENCE
        while not asked.exists() and time.monotonic() < end:
            time.sleep(0.02)
        address = asked.read_text().strip()
        file = Path(address.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = re.findall(r"#token=([\w-]{40,})", file.read_text())[0]
        assert token not in address
        assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert token not in Path(f"/proc/{process.pid}/environ").read_text()
    assert list(runtime.iterdir()) == []


def test_a_unix_socket_is_private_and_replaces_one_that_was_left(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with serving(tmp_path, "--socket", str(path)) as process:
        token = line(process).removeprefix("#token=")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with httpx2.Client(
            transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://localhost"
        ) as client:
            headers = {"authorization": f"Bearer {token}"}
            assert client.get("/api/sessions", headers=headers).json()["total"] == 0
            assert client.get("/api/sessions").status_code == 401
        second = subprocess.run(
            [*COMMAND, "serve", "--socket", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (second.returncode, second.stderr.splitlines()[0]) == (
            AlreadyExists.exit_code,
            f"sessionary: {path} exists",
        )
    assert not path.exists()


def test_a_file_is_not_replaced_by_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("x")
    with serving(tmp_path, "--socket", str(path)) as process:
        assert process.wait(PATIENCE) == AlreadyExists.exit_code
    assert path.read_text() == "x"


def test_a_port_in_use_is_reported_or_avoided(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving(tmp_path, "--no-open", "--port", str(port)) as process:
            assert process.wait(PATIENCE) == StorageFailed.exit_code
            assert process.stderr is not None
            assert "leave out --port" in process.stderr.read()


def test_two_servers_run_beside_each_other(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-open") as one, serving(tmp_path, "--no-open") as two:
        assert line(one).partition("#")[0] != line(two).partition("#")[0]


def test_without_the_extra_the_remedy_is_printed(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from sessionary.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == Unsupported.exit_code
    assert "pip install 'sessionary[web]'" in done.stderr


def test_homes_that_are_missing_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "serve", "--home", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NotFound.exit_code
    assert json.dumps(str(tmp_path / "none"))[1:-1] in done.stderr
