"""`make release` in a copy of what it reads: the notes move into CHANGELOG.md, and the version is set."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
HEADING = {
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
    "format": "Files on disk",
}
pytest.importorskip("towncrier", reason="towncrier is not installed: run `make venv`")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The parts of the repository that a release reads, with the version 0.0.1 and one note of each type."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(REPO / name, tmp_path / name)
    shutil.copytree(REPO / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    package = tmp_path / "src" / "sessionary" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text('"""Docstring."""\n\n__version__ = "0.0.1"\nNAME = __name__\n', "utf-8")
    notes = tmp_path / "changes"
    notes.mkdir()
    shutil.copy(REPO / "changes" / "README.md", notes)
    for kind in HEADING:
        (notes / f"a-{kind}.{kind}.md").write_text(
            f"First {kind}.\nSee [a page](../docs/page.md).\n", "utf-8"
        )
        (notes / f"b-{kind}.{kind}.md").write_text(f"Second {kind}.\n", "utf-8")
    return tmp_path


def release(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.release", *arguments]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def entry(kind: str) -> str:
    return f"### {HEADING[kind]}\n\n- First {kind}.\n  See [a page](docs/page.md).\n- Second {kind}.\n"


def test_a_release_moves_the_notes_and_sets_the_version(copy: Path) -> None:
    head = (copy / "CHANGELOG.md").read_text("utf-8")
    done = release(copy, "0.2.0", "--date", "2026-05-04")
    assert done.returncode == 0, done.stderr
    expected = head + "\n## 0.2.0 (2026-05-04)\n\n" + "\n".join(entry(kind) for kind in HEADING)
    assert (copy / "CHANGELOG.md").read_text("utf-8") == expected
    assert [path.name for path in (copy / "changes").iterdir()] == ["README.md"]
    package = (copy / "src" / "sessionary" / "__init__.py").read_text("utf-8")
    assert package == '"""Docstring."""\n\n__version__ = "0.2.0"\nNAME = __name__\n'


def test_the_next_release_is_above_the_last(copy: Path) -> None:
    assert release(copy, "0.2.0", "--date", "2026-05-04").returncode == 0
    (copy / "changes" / "more.fixed.md").write_text("More.\n", "utf-8")
    assert release(copy, "0.2.1", "--date", "2026-06-04").returncode == 0
    text = (copy / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE) == ["0.2.1", "0.2.0"]
    assert "## 0.2.1 (2026-06-04)\n\n### Fixed\n\n- More.\n\n## 0.2.0 (2026-05-04)\n" in text


def test_a_draft_prints_the_entry_and_changes_nothing(copy: Path) -> None:
    before = contents(copy)
    done = release(copy, "0.2.0", "--date", "2026-05-04", "--draft")
    assert done.returncode == 0, done.stderr
    assert "## 0.2.0 (2026-05-04)\n\n" + entry("added") in done.stdout
    assert contents(copy) == before


@pytest.mark.parametrize(
    ("version", "reason"),
    [("two", "'two' is not a version"), ("0.2", "'0.2' is not a version"), ("0.1.9", "already has an entry")],
)
def test_a_release_that_is_refused_changes_nothing(copy: Path, version: str, reason: str) -> None:
    with (copy / "CHANGELOG.md").open("a", encoding="utf-8") as file:
        file.write("\n## 0.1.9 (2026-01-01)\n")
    before = contents(copy)
    done = release(copy, version)
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr
    assert contents(copy) == before


def test_a_release_without_notes_is_refused(copy: Path) -> None:
    for note in (copy / "changes").glob("*-*.md"):
        note.unlink()
    done = release(copy, "0.2.0")
    assert (done.returncode, done.stderr) == (2, "release: changes/ has no notes\n")


def test_the_notes_here_make_an_entry() -> None:
    done = release(REPO, "99.0.0", "--draft")
    assert done.returncode == 0, done.stderr
    notes = [path for path in (REPO / "changes").iterdir() if path.name != "README.md"]
    assert len(re.findall(r"^- ", done.stdout, re.MULTILINE)) == len(notes)
