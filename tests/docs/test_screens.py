"""docs/screens.md is what the commands print, and fits a terminal of 80 columns."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sessionary.cli.text import cells
from sessionary.disk.mounts import weakness

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    weakness(tempfile.gettempdir()) is not None, reason="`check` reports the file system of temporary files"
)
def test_the_screens_are_what_the_commands_print() -> None:
    command = [sys.executable, "-m", "scripts.gen_screens", "--check"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_screen_fits_and_the_main_commands_are_there() -> None:
    page = (REPO / "docs" / "screens.md").read_text("utf-8")
    screens = re.findall(r"```text\n\$ sessionary (\S+)(.*?)```", page, re.DOTALL)
    assert {name for name, _ in screens} >= {"list", "tree", "show", "search", "check", "stats", "mv"}
    for name, shown in screens:
        # A path is never cut: it is there to be copied.
        wide = [line for line in shown.splitlines() if cells(line) > 80 and not re.fullmatch(r"/\S+", line)]
        assert not wide, f"{name}: {wide}"
