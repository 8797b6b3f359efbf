"""One environment for each agent framework: their packages exclude one another.

Nothing is installed by a test. `make plugs` (or ``python -m tests.plugs.environments``) fills ``.plugs/`` of the clone,
`.ci/run` calls it, and a lane whose environment is missing says how to get it. The exact versions of an environment
are in `constraints/`; a changed file there is a new environment.
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.plugs import harbor

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
CACHE = REPO / ".plugs"
TOOLS = ("pytest", "pytest-timeout")
FRAMEWORKS = ("openai-agents", "claude-agent-sdk", "langgraph", "google-adk", "pydantic-ai")
"""The extras, each with its ``suite_<name>.py`` and its constraints."""
PEERS = {
    "openai-agents": ("agent-memory-integrity",),
    "langgraph": ("langgraph-checkpoint-conformance", "langgraph-checkpoint-sqlite"),
    "google-adk": ("aiosqlite", "sqlalchemy[asyncio]"),
}
"""What the tests of a framework need beside its extra."""
INSTALL_SECONDS = 900
SUITE_SECONDS = 600


def constraints(name: str) -> Path:
    """The file with the versions of an environment."""
    return HERE / "constraints" / f"{name}.txt"


def suite(name: str) -> Path:
    """The tests of a framework, which run in its environment."""
    return HERE / f"suite_{name.replace('-', '_')}.py"


def suites(name: str) -> list[Path]:
    """All tests that run in an environment: those of the framework, and those that are the same for each."""
    own = sorted(HERE.glob(f"{suite(name).stem}*.py"))
    return [HERE / "suite_scripts.py", *own, HERE / "suite_end_to_end.py"]


def folder_of(name: str) -> Path:
    """The folder of an environment, made or not."""
    made_of = constraints(name).read_bytes() + repr(PEERS.get(name)).encode()
    return CACHE / f"{name}-{sha256(made_of).hexdigest()[:12]}"


def missing(name: str) -> str | None:
    """Why the tests of a framework cannot run; None if they can."""
    done = folder_of(name) / "done"
    return None if done.exists() else f"{name} is not installed: `make plugs` does that"


def install(name: str) -> None:
    """Make an environment, unless it is there. Raises what venv and pip fail with."""
    folder = folder_of(name)
    if (folder / "done").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    options = ["-c", str(constraints(name)), *TOOLS, *PEERS.get(name, ()), "-e", f"{REPO}[{name}]"]
    subprocess.run([*pip, *options], check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
    (folder / "done").touch()


def run_suite(name: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the tests of a framework in its environment; with a planted fault, those in one process of our store."""
    python = str(folder_of(name) / "bin" / "python")
    options = ["-q", "-c", str(HERE / "suites.ini"), "--noconftest", "-p", "no:cacheprovider"]
    env = {**os.environ, "SESSIONARY_FRAMEWORK": name, "PYTHONPATH": str(REPO)}
    if fault is not None:
        options += ["-x", "-p", "tests.plugs.faults", "-k", "not theirs and not kill and not page"]
        env["SESSIONARY_FAULT"] = fault
    command = [python, "-m", "pytest", *options, *map(str, suites(name))]
    return subprocess.run(
        command, cwd=REPO, env=env, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or FRAMEWORKS:
        install(name)
    harbor.install()
