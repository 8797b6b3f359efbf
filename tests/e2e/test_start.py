"""What a plain list, and a session that is shown, do not wait for."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CODE = """
import sys
from sessionary.cli import main
code = main([*sys.argv[2:], "--home", sys.argv[1]])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""
HEAVY = {
    "asyncio", "logging", "markdown_it", "pygments", "rich", "secrets", "socket", "subprocess", "traceback",
    "yaml",
}  # fmt: skip
NOT_FOR_A_LIST = {
    f"sessionary.{name}" for name in ("disk.transaction", "disk.journal", "disk.lock", "disk.mounts", "search")
} | {
    f"sessionary.layouts.amplifier.{name}"
    for name in (
        "events", "forks", "project_rename", "repairing", "session", "store", "transactions", "trash", "write_op",
    )
}  # fmt: skip

READERS = {
    "stringzilla",
    "sessionary.codec",
    "sessionary.transcript.fold",
    "sessionary.transcript.messages",
} | {f"sessionary.layouts.amplifier.{name}" for name in ("checking", "header", "reading", "recovery")}


@pytest.mark.parametrize("name", sorted(n for n in NOT_FOR_A_LIST | READERS if n.startswith("sessionary.")))
def test_each_module_named_here_exists(name: str) -> None:
    assert find_spec(name) is not None


def test_a_list_that_reads_no_session_loads_no_reader(tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    _, loaded = _run(tmp_path, "list")
    assert not loaded & {*READERS, "shutil"}  # which measures a terminal


def test_a_plain_list_loads_only_what_it_needs(tmp_path: Path) -> None:
    _make_session(tmp_path)
    printed, loaded = _run(tmp_path, "list")
    assert "one" in printed
    assert not loaded & HEAVY
    assert not loaded & NOT_FOR_A_LIST


@pytest.mark.parametrize("options", [[], ["--turns=-1"], ["--tail=1"]])
def test_a_session_is_shown_without_the_rules_of_redaction(tmp_path: Path, options: list[str]) -> None:
    _make_session(tmp_path)
    printed, loaded = _run(tmp_path, "show", "one", *options)
    assert "Hi" in printed
    assert "sessionary.workspace.choosing" in loaded
    assert not loaded & {"sessionary.redaction", "sessionary.transcript.redacted"}


def _make_session(home: Path) -> None:
    folder = home / "projects" / "-p" / "sessions" / "one"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text('{"role": "user", "content": "Hi"}\n')
    (folder / "metadata.json").write_text(json.dumps({"session_id": "one"}))


def _run(home: Path, *words: str) -> tuple[str, set[str]]:
    """What a command prints, and the modules that it loads."""
    called = [sys.executable, "-c", CODE, str(home), *words]
    done = subprocess.run(called, capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def test_a_store_does_not_wait_for_forks_and_repairs() -> None:
    code = "import sys; from sessionary import SessionStore; SessionStore('x'); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sessionary.layouts.amplifier.store" in loaded
    assert not loaded & {"click", "rich", "yaml", "asyncio", "sessionary.layouts.amplifier.forks"}
