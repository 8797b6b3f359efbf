"""`python -m benchmarks.frameworks [name ...]`: a turn through each framework's store, beside its own durable store.

Each runs in the environment of its framework, which `make plugs` makes. Prints a table; docs/frameworks.md has that of
the last run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.plugs import environments

PEERS = {
    "openai-agents": "SQLiteSession",
    "google-adk": "DatabaseSessionService",
    "langgraph": "SqliteSaver",
    "claude-agent-sdk": "append + fdatasync",
    "pydantic-ai": "append + fdatasync",
}
HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> int:
    """Print one row for each framework and size; 1 if an environment is missing."""
    print(
        "| framework | stored before | compared with | theirs : ours | ours | theirs |\n|---|---|---|---|---|---|"
    )
    status = 0
    for name in names or PEERS:
        if reason := environments.missing(name):
            print(f"NOT RUN: {reason}", file=sys.stderr)
            status = 1
            continue
        scratch = HERE.parent / ".bench"
        scratch.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            python = str(environments.folder_of(name) / "bin" / "python")
            command = [python, "-m", "benchmarks.framework_turns", name, folder]
            done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
        for row in json.loads(done.stdout.splitlines()[-1]):
            print(
                f"| {name} | {row['size']:,} messages | {PEERS[name]} | {row['ratio']:.2f}x"
                f" | {row['ours']:.2f} ms | {row['theirs']:.2f} ms |",
                flush=True,
            )
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
