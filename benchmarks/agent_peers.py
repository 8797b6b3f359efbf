"""The first reading of all sessions of Claude Code and Codex, beside three other programs that list them.

Each runs as it is installed from its package, with a home of its own that nothing was read from. A run ends after
`LIMIT` seconds, which is shown as ``>``. claude-code-log reads Claude Code alone, and writes pages.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.agent_stores import CLAUDE_CODE, write_stores
from benchmarks.agents import SESSIONS, SIZE
from benchmarks.harness import Benchmark, Limit, Measurement, Row, Work, by_turns, compared, settle
from sessionary.layouts.fingerprints import MTIME_GRACE

LIMIT = 300.0
"""Seconds."""
VERSIONS = {"fast-resume": "2.14.0", "agentsview": "0.46.1", "claude-code-log": "1.7.0"}
_STATE = (".agentsview", ".cache", ".config", ".local", "pages")


def _peers(place: Path) -> list[Measurement]:
    truth = write_stores(place / "home", SESSIONS, SIZE)
    user, programs = place / "user", _installed(place)
    for agent, folder in ((".claude", "projects"), (".codex", "sessions")):
        (user / agent).mkdir(parents=True)
        (place / "home" / folder).rename(user / agent / folder)
    settle()
    time.sleep(MTIME_GRACE)
    ours = [str(Path(sys.executable).with_name("sessionary")), "sql", "SELECT count(*) FROM sessions"]
    claude = [*ours, "--home", str(user / ".claude")]
    resume, view = [f"{programs}/fr", "--stats"], [f"{programs}/agentsview", "sync"]
    log = [f"{programs}/claude-code-log", "--all-projects", "--no-individual-sessions"]
    log += ["--output", str(user / "pages")]
    works = [_first(user, command) for command in (ours, claude, resume, view, log)]
    both, one, *theirs = by_turns(works, 1)
    subprocess.run([f"{programs}/agentsview", "daemon", "stop"], env=_environment(user), check=False)
    words = (
        f"{truth.sessions.total():,} files; it counts no tokens",
        "it counts tokens",
        f"{truth.sessions[CLAUDE_CODE]:,} files of Claude Code; it counts tokens",
    )
    return [
        compared(mine, seconds, names=f"> {LIMIT:.0f} s; {what}" if seconds[0] >= LIMIT else what)
        for mine, seconds, what in zip((both, both, one), theirs, words, strict=True)
    ]


def _installed(place: Path) -> Path:
    """The folder with the programs, in an environment of their own."""
    subprocess.run([sys.executable, "-m", "venv", str(place / "peers")], check=True)
    programs = place / "peers" / "bin"
    wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
    subprocess.run([str(programs / "pip"), "install", "--quiet", *wanted], check=True)
    return programs


def _first(user: Path, command: list[str]) -> Work:
    """Seconds of a process that finds nothing of an earlier one; `LIMIT` if it takes longer."""

    def once() -> float:
        for name in _STATE:
            shutil.rmtree(user / name, ignore_errors=True)
        start = time.perf_counter()
        try:
            subprocess.run(command, env=_environment(user), capture_output=True, check=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return LIMIT
        return time.perf_counter() - start

    return once


def _environment(user: Path) -> dict[str, str]:
    return {"HOME": str(user), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


_WORK = f"first catalogue of {SESSIONS:,} sessions of Claude Code and Codex (1 GB), a new process"
BENCHMARKS = (
    Benchmark(
        "agents-peers",
        (
            Row(_WORK, f"fast-resume {VERSIONS['fast-resume']}", Limit(2)),
            Row("the same", f"agentsview {VERSIONS['agentsview']}", Limit(1)),
            Row("the same, of Claude Code alone", f"claude-code-log {VERSIONS['claude-code-log']}", Limit(1)),
        ),
        _peers,
        apart=True,  # installs other programs, which take many minutes
    ),
)
