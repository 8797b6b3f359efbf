"""Another user of the machine gets nothing from `sessionary serve` and `sessionary mcp`: no file, socket or data."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.test_mcp import serving as serving_mcp
from tests.e2e.test_serve import PATIENCE, line, serving

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)

# Becomes another user after the interpreter has started, which that user may not be able to read.
_AS_OTHER = """
import json, os, socket, sys
os.setgid(65534); os.setuid(65534)
found = {}
for path in sys.argv[1:]:
    try:
        if path.endswith(".sock"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
        else:
            open(path).close()
        found[path] = "open"
    except OSError as error:
        found[path] = type(error).__name__
print(json.dumps(found))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone may enter: what protects a file in it is the file itself."""
    folder = Path(tempfile.mkdtemp(prefix="sessionary-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_other(*paths: Path) -> list[str]:
    """What another user gets of each path."""
    command = [sys.executable, "-c", _AS_OTHER, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return list(json.loads(done.stdout).values())


def test_a_file_that_all_may_read_is_read(open_folder: Path) -> None:
    (open_folder / "plain").write_text("x")
    assert as_other(open_folder / "plain") == ["open"]


def test_the_redirect_file_is_closed(tmp_path: Path, open_folder: Path) -> None:
    with serving(tmp_path, BROWSER="true %s", XDG_RUNTIME_DIR=str(open_folder)):
        end = time.monotonic() + PATIENCE
        while not list(open_folder.iterdir()) and time.monotonic() < end:
            time.sleep(0.02)
        (file,) = open_folder.iterdir()
        assert as_other(file) == ["PermissionError"]


def test_the_unix_socket_is_closed(tmp_path: Path, open_folder: Path) -> None:
    path = open_folder / "s.sock"
    with serving(tmp_path, "--socket", str(path)) as process:
        line(process)
        assert as_other(path) == ["PermissionError"]


def test_the_port_answers_without_the_token_that_it_is_missing(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-open") as process:
        root = line(process).partition("#")[0]
        page = httpx2.get(root)
        assert (page.status_code, "token=" in page.text) == (200, False)
        for name in ("about", "sessions", "overview", "search?q=x", "session/0/charts", "session/0/diff/0"):
            refused = httpx2.get(f"{root}api/{name}")
            assert (refused.status_code, refused.json()["error"]) == (401, "Refused")


def test_the_token_file_of_the_mcp_server_is_closed(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_folder / "home"
    (home / "projects").mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(open_folder))
    with serving_mcp(home) as (_, token, _process):
        folder = token.parent
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        folder.chmod(0o755)
        assert as_other(token) == ["PermissionError"]
