"""Only `disk` writes: every other room goes through it, or its promises would hold only sometimes.

The scan reads the source, not the run, so a forgotten branch is found too. The demonstrations in `testing`
may write too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sessionary"
MAY_WRITE = {"disk", "testing"}

OS_WRITES = frozenset(
    "open fdopen write writev pwrite pwritev truncate ftruncate fsync fdatasync sync replace rename renames"
    " unlink remove removedirs rmdir link symlink mkdir makedirs mknod mkfifo chmod fchmod chown fchown"
    " lchown utime sendfile copy_file_range posix_fallocate".split()
)
SHUTIL_WRITES = frozenset(
    "rmtree move copy copy2 copyfile copyfileobj copytree copymode copystat chown".split()
)
TEMPFILE_WRITES = frozenset("NamedTemporaryFile TemporaryFile SpooledTemporaryFile mkstemp".split())
MODULES = {"os": OS_WRITES, "shutil": SHUTIL_WRITES, "tempfile": TEMPFILE_WRITES, "posix": OS_WRITES}
PATH_WRITES = frozenset(
    "write_text write_bytes unlink mkdir rmdir touch rename symlink_to hardlink_to chmod lchmod".split()
)
SEAM = {
    "fs",
    "_fs",
    "workspace",
}  # the same verbs on the seam of `disk`, and on `Workspace`, which goes through it


def writes(source: str) -> Iterator[tuple[int, str]]:
    """The line and the words of everything in `source` that may write to a file system."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for name in node.names:
                if name.name in MODULES[node.module]:
                    yield node.lineno, f"from {node.module} import {name.name}"
        elif isinstance(node, ast.Call) and _is_write(node):
            yield node.lineno, ast.unparse(node.func)


def _is_write(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and _opens_to_write(call, mode_at=1)
    if not isinstance(function, ast.Attribute):
        return False
    owner = _last_name(function.value)
    if owner in MODULES:
        return function.attr in MODULES[owner]
    if owner in SEAM:
        return False
    if function.attr == "open":
        return _opens_to_write(call, mode_at=1 if owner in {"io", "codecs", "gzip"} else 0)
    if function.attr == "replace":  # str.replace takes two, Path.replace one, dataclasses.replace keywords
        return len(call.args) == 1 and not call.keywords
    return function.attr in PATH_WRITES


def _opens_to_write(call: ast.Call, *, mode_at: int) -> bool:
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] + call.args[
        mode_at : mode_at + 1
    ]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_nothing_but_disk_writes() -> None:
    scanned = [p for p in sorted(SOURCE.rglob("*.py")) if p.relative_to(SOURCE).parts[0] not in MAY_WRITE]
    assert SOURCE / "__init__.py" in scanned
    found = [
        f"{p.relative_to(SOURCE)}:{line} {what}"
        for p in scanned
        for line, what in writes(p.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "open(p, 'w')",
        "open(p, mode='ab')",
        "open(p, how)",
        "p.open('r+b')",
        "io.open(p, 'x')",
        "os.open(p, flags)",
        "os.replace(a, b)",
        "self.os.unlink(a)",
        "from os import fsync as flush",
        "shutil.rmtree(p)",
        "tempfile.mkstemp()",
        "path.write_text('x')",
        "(a / b).mkdir(parents=True)",
        "a.replace(b)",
    ],
)
def test_the_scan_sees(source: str) -> None:
    assert len(list(writes(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "open(p)",
        "open(p, 'rb')",
        "p.open()",
        "p.open('rb')",
        "os.stat(p)",
        "'a'.replace('b', 'c')",
        "dataclasses.replace(value, x=1)",
        "self._fs.unlink(p)",
        "fs.replace(a)",
        "tempfile.mkdtemp()",
        "sys.stdout.write('x')",
    ],
)
def test_the_scan_lets_pass(source: str) -> None:
    assert list(writes(source)) == []
