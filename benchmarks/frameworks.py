"""`python -m benchmarks.frameworks [name ...]`: the stores of agent frameworks, beside the frameworks' own ones.

Each framework runs in its environment, which `make plugs` makes. Prints three tables: turns, resumed sessions, and
eight processes; docs/frameworks.md has those of the last run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.plugs import environments

PEERS = {
    "openai-agents": "SQLiteSession",
    "google-adk": "DatabaseSessionService",
    "langgraph": "SqliteSaver",
    "claude-agent-sdk": "append + fdatasync",
    "pydantic-ai": "append + fdatasync",
}
HERE = Path(__file__).resolve().parent


def measured(name: str, module: str) -> Any:
    """What a module prints in the environment of a framework."""
    scratch = HERE.parent / ".bench"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        python = str(environments.folder_of(name) / "bin" / "python")
        command = [python, "-m", f"benchmarks.{module}", name, folder]
        done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def times(row: dict[str, float], *names: str) -> str:
    """Cells with the ratio, and the median times in milliseconds."""
    cells = [f"{row[name]:.2f} ms" if name in row else "" for name in names]
    return " | ".join([f"{row['ratio']:.2f}x", *cells])


def main(names: list[str]) -> int:
    """Print the rows of each framework; 1 if an environment is missing."""
    status = 0
    resumed: list[str] = []
    together: list[str] = []
    print("| framework | stored before | compared with | theirs : ours | ours | theirs | in memory |")
    print("|---|---|---|---|---|---|---|")
    for name in names or PEERS:
        if reason := environments.missing(name):
            print(f"NOT RUN: {reason}", file=sys.stderr)
            status = 1
            continue
        for row in measured(name, "framework_turns"):
            cells = times(row["turn"], "ours", "theirs", "alone")
            print(f"| {name} | {row['size']:,} messages | {PEERS[name]} | {cells} |", flush=True)
            if "resume" in row:
                resume = row["resume"]
                resume["ratio"] = 1 / resume["ratio"]
                resumed.append(f"| {name} | {times(resume, 'ours', 'theirs')} |")
        row = measured(name, "framework_processes")
        peer = f"{row['ratio']:.2f}x | {row['theirs']:.0f}/s" if "ratio" in row else "|"
        together.append(f"| {name} | {row['ours']:.0f}/s | {peer} | {row['lost']} |")
    print("\n| framework | resume : decode | resume | decode |\n|---|---|---|---|", *resumed, sep="\n")
    print(
        "\n| framework | ours | ours : theirs | theirs | lost of one session |\n|---|---|---|---|---|", end=""
    )
    print("", *together, sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
