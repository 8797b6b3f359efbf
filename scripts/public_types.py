"""Check with pyright that every name of `sessionary`, and every member of its classes, has a known type."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import sessionary

Symbol = dict[str, Any]


def public() -> set[str]:
    """The full names of what `sessionary` exports: as exported, and where it and its base classes are defined."""
    found = set()
    for name in sessionary.__all__:
        found.add(f"sessionary.{name}")
        value = getattr(sessionary, name)
        for part in inspect.getmro(value) if inspect.isclass(value) else (value,):
            if getattr(part, "__module__", "").startswith("sessionary."):
                found.add(f"{part.__module__}.{part.__qualname__}")
    return found


def symbols() -> list[Symbol]:
    """What pyright reports about each symbol of the package. It finds the package by the python on the PATH."""
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        [scripts / "pyright", "--verifytypes", "sessionary", "--ignoreexternal", "--outputjson"],
        env=os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: list[Symbol] = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    except (json.JSONDecodeError, KeyError):
        raise SystemExit(f"pyright printed no report:\n{done.stdout}{done.stderr}") from None
    return found


def unknown(found: list[Symbol], names: set[str]) -> list[str]:
    """One line for each of `names`, or member of one, whose type pyright does not know for certain."""
    return [
        f"{symbol['name']}: {' '.join(report['message'].split())}"
        for symbol in found
        if not symbol["isTypeKnown"]
        and (symbol["name"] in names or symbol["name"].rpartition(".")[0] in names)
        for report in symbol["diagnostics"] or [{"message": "a member has no known type"}]
    ]


def main() -> int:
    """Print what is unknown; return the exit code, 1 if there is anything."""
    names = public()
    found = symbols()
    lines = unknown(found, names)
    exported = {
        f"sessionary.{name}" for name in sessionary.__all__ if name != "__version__"
    }  # never reported
    missing = exported - {symbol["name"] for symbol in found}
    lines += [f"{name}: pyright does not report it" for name in sorted(missing)]
    print("\n".join(lines) or f"types are known: {len(sessionary.__all__)} public names")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
