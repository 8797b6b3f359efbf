"""Generated documents: write them to docs/, or check that docs/ is up to date."""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def publish(name: str, text: str, arguments: Sequence[str]) -> int:
    """Write `text` to docs/`name`; with ``--check`` only compare, and print what differs.

    Returns:
        The exit code: 0 if docs/`name` now holds `text`, 1 if it does not.
    """
    if list(arguments) not in ([], ["--check"]):
        print("usage: [--check]", file=sys.stderr)
        return 2
    target = REPO / "docs" / name
    found = target.read_text("utf-8") if target.exists() else ""
    if found == text:
        return 0
    if arguments:
        difference = difflib.unified_diff(
            found.splitlines(), text.splitlines(), f"docs/{name}", "the code", lineterm=""
        )
        print("\n".join(difference))
        print(f"\ndocs/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return 0
