"""Readers look at the disk through `Fs` only: what bypasses it is seen by no double, fault or recorder."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
FREE = {"disk", "cli", "testing"}
NO_SESSIONS = {
    "catalog/store.py": "SQLite opens its file by itself, and the schema is a file of the package",
    "sync/cosmos_config.py": "the settings of another program",
    "viewer/app.py": "the page is files of the package",
    "workspace/prices.py": "the prices are a file of the package",
}

OS = frozenset("open stat lstat fstat listdir scandir walk fwalk read pread readlink".split())
OS_PATH = frozenset(
    "exists lexists isdir isfile islink ismount getsize getmtime getatime getctime samefile".split()
)
PATH = frozenset(
    "read_text read_bytes iterdir glob rglob is_dir is_file is_symlink lstat readlink samefile".split()
)


def reads(source: str) -> Iterator[tuple[int, str]]:
    """The line and the call of everything in `source` that asks the system about files."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_read(node.func):
            yield node.lineno, ast.unparse(node.func)


def _is_read(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    owner = ast.unparse(function.value)
    if owner == "os":
        return function.attr in OS
    if owner in ("os.path", "path"):
        return function.attr in OS_PATH | PATH
    return function.attr in PATH and owner.rpartition(".")[2].lower() not in {"fs", "_fs", "os_fs"}


def test_nothing_above_disk_bypasses_the_file_system_seam() -> None:
    found = {
        f"{place}:{line} {call}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (place := path.relative_to(SOURCE).as_posix()).partition("/")[0] not in FREE
        and place not in NO_SESSIONS
        for line, call in reads(path.read_text("utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "open(p)",
        "os.stat(p)",
        "os.path.isdir(p)",
        "path.read_bytes()",
        "(a / b).glob('*')",
        "self.root.is_dir()",
    ],
)
def test_the_scan_sees(source: str) -> None:
    assert len(list(reads(source))) == 1


@pytest.mark.parametrize(
    "source", ["fs.stat(p)", "self._fs.lstat(p)", "os.path.join(a, b)", "journal.stat()"]
)
def test_the_scan_lets_pass(source: str) -> None:
    assert list(reads(source)) == []
