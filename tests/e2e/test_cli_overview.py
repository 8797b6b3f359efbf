"""`sessionary` without a command: an overview on a terminal, the help elsewhere."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.driving import COMMAND


def talk(home: Path, name: str, age: timedelta, *records: str) -> None:
    time = (datetime.now(UTC) - age).isoformat()
    record = {
        "type": "user",
        "uuid": f"u-{name}",
        "parentUuid": None,
        "timestamp": time,
        "message": {"role": "user", "content": f"Do {name}"},
    }
    path = home / ".claude" / "projects" / "-w" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([json.dumps(record), *records, ""]))


def on_a_terminal(home: Path) -> tuple[int, str]:
    import pty

    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    leader, follower = pty.openpty()
    environment = {**kept, "HOME": str(home), "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    with subprocess.Popen(COMMAND, stdout=follower, stderr=follower, env=environment, cwd=home) as process:
        os.close(follower)
        printed = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # Linux ends a pseudo terminal with EIO
                break
            if not chunk:
                break
            printed += chunk
    os.close(leader)
    return process.returncode, printed.decode().replace("\r\n", "\n")


@pytest.mark.skipif(os.name != "posix", reason="no pseudo terminals")
def test_the_newest_sessions_the_damaged_ones_and_those_that_will_be_deleted(tmp_path: Path) -> None:
    for number in range(7):
        talk(tmp_path, f"task-{number}", timedelta(hours=number + 1))
    talk(tmp_path, "broken", timedelta(days=2), "{torn")
    talk(tmp_path, "old", timedelta(days=28))
    code, printed = on_a_terminal(tmp_path)
    assert code == 0
    lines = printed.splitlines()
    assert lines[0] == "9 sessions"
    assert [line.split()[0] for line in lines[3:8]] == [f"task-{number}" for number in range(5)]
    assert "1 damaged: broken" in lines
    assert "1 deleted soon by their agents: old" in lines
    assert lines[-1] == "sessionary show task-0 · sessionary search WORDS · sessionary check"
    assert max(map(len, lines)) <= 80
    for command in re.findall(r"sessionary (show \S+|check)", lines[-1]):
        done = subprocess.run(
            [*COMMAND, *command.split()],
            env={**os.environ, "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 13), command


@pytest.mark.skipif(os.name != "posix", reason="no pseudo terminals")
def test_without_sessions_it_says_where_to_look(tmp_path: Path) -> None:
    code, printed = on_a_terminal(tmp_path)
    assert code == 0
    assert "`sessionary doctor`" in printed


def test_elsewhere_it_is_the_help(tmp_path: Path) -> None:
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}, check=False
    )
    assert done.returncode == 2
    assert "Find and read:" in done.stdout + done.stderr
