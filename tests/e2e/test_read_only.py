"""No reading command changes anything in the store of an agent, or opens credentials: over the stores of all agents.

The commands run in a process with an audit hook that notes each file that is opened or changed. What SQLite does by
itself shows in bytes, names and times, which are compared before and after.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.lanes import shared_folder
from tests.support import agent_stores
from tests.support.agent_stores import CREDENTIALS, IDS, VARIABLES

AUDIT = """
import json, os, sys
opened, writes = set(), set()
root = os.path.realpath(sys.argv[1])
def note(event, arguments):
    if event in ("open", "sqlite3.connect"):
        path = arguments[0]
        if isinstance(path, int) or path is None:
            return
        path = os.fsdecode(path).removeprefix("file:").partition("?")[0]
        opened.add(os.path.basename(path))
        flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
        wanted = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if wanted and os.path.realpath(path).startswith(root + os.sep):
            writes.add(path)
    elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate",
                   "os.utime", "os.chmod", "os.chown"):
        for path in arguments:
            if isinstance(path, str) and os.path.realpath(path).startswith(root + os.sep):
                writes.add(f"{event} {path}")
sys.addaudithook(note)
from sessionary.cli import main
sys.stdout = open(os.devnull, "w")
codes = {" ".join(words): main(words) for words in json.loads(sys.argv[2])}
print(json.dumps({"codes": codes, "opened": sorted(opened), "writes": sorted(writes)}), file=sys.__stdout__)
"""

READING = (
    ("list",),
    ("list", "--all", "--json"),
    ("list", "--health", "damaged"),
    ("search", "Fix"),
    ("search", "Fix", "--json"),
    ("stats",),
    ("stats", "--json"),
    ("tree",),
    ("check",),
    ("check", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("sql", "SELECT count(*) FROM sessions"),
    ("archive", "run"),
    ("archive", "list"),
    ("archive", "verify"),
)


def of_session(session: str) -> Iterator[tuple[str, ...]]:
    """The reading commands that name a session."""
    yield from (("show", session), ("show", session, "--json"), ("show", session, "--branches"))
    yield from (("open", session), ("open", session, "--json"), ("check", session), ("events", session))
    yield from (
        ("export", session),
        ("export", session, "--format", "html", "--redact"),
        ("diff", session, session),
    )


def state(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Every name below a folder, with its times, mode, size and bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        data = (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        )
        found[str(path.relative_to(folder))] = (stat.st_mtime_ns, stat.st_mode, stat.st_size, data)
    return found


def run_all(
    home: Path, work: Path, commands: list[tuple[str, ...]]
) -> tuple[dict[str, int], set[str], list[str]]:
    """Run commands over the stores in a home directory; our own folders are outside of it.

    Returns:
        The exit codes, the names of all files that were opened, and what was opened to be written below the home.
    """
    environ = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environ |= {"HOME": str(home), "SESSIONARY_NO_HINT": "1"}
    environ |= {f"XDG_{one}_HOME": str(work / one.lower()) for one in ("CACHE", "STATE")}
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(home), json.dumps(commands)],
        cwd=work,
        env=environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    found = json.loads(done.stdout)
    return found["codes"], set(found["opened"]), found["writes"]


def choose(home: Path, tmp_path: Path) -> None:
    """Choose a folder for the archive that is outside of the home."""
    run_all(home, tmp_path / "work", [("archive", "add", "--folder", str(tmp_path / "archive"))])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    agent_stores.make(tmp_path / "home")
    chats = "# aider chat started at 2026-03-01 09:00:00\n\n#### Fix aider\n\nDone.\n"
    (tmp_path / "home" / ".aider.chat.history.md").write_text(chats)
    choose(tmp_path / "home", tmp_path)
    return tmp_path / "home"


def commands() -> list[tuple[str, ...]]:
    """All reading commands."""
    sessions = [command for some in IDS.values() for session in some for command in of_session(session)]
    return [*READING, *sessions, *READING]


def test_reading_commands_change_nothing_and_open_no_credentials(home: Path, tmp_path: Path) -> None:
    before = state(home)
    codes, opened, writes = run_all(home, tmp_path / "work", commands())
    assert state(home) == before
    assert writes == []
    assert not opened & set(CREDENTIALS)
    seen = {
        f"{agent_stores.CLAUDE}.jsonl",
        "opencode.db",
        "store.db",
        "state.vscdb",
        ".aider.chat.history.md",
    }
    assert seen <= opened, "the audit sees what is opened"
    assert {"list", "search Fix", "archive run", "archive verify", "stats", "doctor"} <= {
        words for words, code in codes.items() if code == 0
    }
    assert set(codes.values()) <= {0, 13, 18}, "all are carried out, or refuse a kind"


def test_a_live_database_stays_as_it_is(home: Path, tmp_path: Path) -> None:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        agent_stores.add_row(connection, 2)
        before = state(home)
        assert {
            f"{one}{end}" for one in (str(path.relative_to(home)),) for end in ("", "-wal", "-shm")
        } <= before.keys()
        codes, opened, _ = run_all(home, tmp_path / "work", commands())
        assert state(home) == before
        assert not opened & set(CREDENTIALS)
        assert codes["archive run"] == 0


def test_a_killed_writer_of_a_database_leaves_what_is_read_and_not_changed(
    home: Path, tmp_path: Path
) -> None:
    source = home / ".local" / "share" / "opencode"
    with closing(sqlite3.connect(source / "opencode.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        agent_stores.add_row(connection, 2)
        shutil.copytree(source, tmp_path / "copy")
    shutil.rmtree(source)
    shutil.copytree(tmp_path / "copy", source)
    (source / "opencode.db-shm").unlink()
    before = state(home)
    codes, _, _ = run_all(home, tmp_path / "work", commands())
    assert state(home) == before
    assert codes["archive run"] == 0
    found = run_all(home, tmp_path / "work", [("search", "opencode 2"), ("archive", "verify")])[0]
    assert set(found.values()) == {0}


SAMPLES = {
    "claude": ".claude",
    "codex": ".codex",
    "copilot": ".copilot",
    "gemini": ".gemini",
    "opencode": ".local/share/opencode",
    "pi": ".pi/agent",
    "qwen": ".qwen",
}


@pytest.mark.lane("samples")
def test_public_samples_stay_as_they_are(tmp_path: Path) -> None:
    home, found = tmp_path / "home", 0
    for sample in sorted((shared_folder() / "samples").iterdir()):
        for begin, folder in SAMPLES.items():
            if sample.is_dir() and sample.name.startswith(begin):
                shutil.copytree(sample, home / folder, dirs_exist_ok=True, symlinks=True)
                found += 1
    if not found:
        pytest.skip("no samples of agents")
    agent_stores.age(home)
    choose(home, tmp_path)
    before = state(home)
    codes, opened, writes = run_all(home, tmp_path / "work", list(READING))
    assert state(home) == before
    assert writes == []
    assert not opened & set(CREDENTIALS)
    assert codes["archive run"] == 0
