"""Prepare a release: move the notes of changes/ into CHANGELOG.md and set the version of the package."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
CHANGELOG = REPO / "CHANGELOG.md"
PACKAGE = REPO / "src" / "sessionary" / "__init__.py"
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_ASSIGNMENT = re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE)


def refusal(version: str) -> str:
    """The reason why `version` cannot be released; empty if it can."""
    if not _VERSION.fullmatch(version):
        return f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1"
    if f"\n## {version} " in CHANGELOG.read_text("utf-8"):
        return f"CHANGELOG.md already has an entry for {version}"
    if not any(path.name != "README.md" for path in (REPO / "changes").glob("*.md")):
        return "changes/ has no notes"
    return ""


def towncrier(*options: str) -> int:
    """Run towncrier with the configuration in pyproject.toml; return its exit code."""
    command = [sys.executable, "-m", "towncrier", "build", "--config", str(REPO / "pyproject.toml"), *options]
    return subprocess.run(command, cwd=REPO, check=False).returncode


def set_version(version: str) -> None:
    """Write `version` into the package, from where the build reads it."""
    text, count = _ASSIGNMENT.subn(f'__version__ = "{version}"', PACKAGE.read_text("utf-8"))
    if count != 1:
        raise SystemExit(f"{PACKAGE} must assign __version__ once, and does {count} times")
    PACKAGE.write_text(text, "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code: 0 if the release is prepared, 2 if it was refused."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--date", help="YYYY-MM-DD (default: today)")
    parser.add_argument("--draft", action="store_true", help="print the entry and change nothing")
    given = parser.parse_args(arguments)
    if reason := refusal(given.version):
        print(f"release: {reason}", file=sys.stderr)
        return 2
    options = ["--version", given.version, *(["--date", given.date] if given.date else [])]
    code = towncrier(*options, "--draft" if given.draft else "--yes")
    if code == 0 and not given.draft:
        set_version(given.version)
    return code


if __name__ == "__main__":
    sys.exit(main())
