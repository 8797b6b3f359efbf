"""docs/limits.md has the values of the constants in the code."""

import re
from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([\d,]+) (\w+) \| .+ \| `([\w.]+)` \|$", PAGE, re.MULTILINE)
UNITS = {"ms": 0.001, "s": 1, "h": 3600, "days": 86_400, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def value_of(constant: str) -> float:
    """The value in the code, in seconds, bytes or pieces."""
    parts = constant.split(".")
    last_module = max(at for at in range(1, len(parts)) if _is_module("sessionary." + ".".join(parts[:at])))
    found = resolve_name(f"sessionary.{'.'.join(parts[:last_module])}:{'.'.join(parts[last_module:])}")
    if isinstance(found, timedelta):
        return found.total_seconds()
    if isinstance(found, str):
        return float(found.removesuffix("s"))
    scale = {"_NS": 1e9, "_MS": 1e3}
    return float(found) / scale.get(constant[-3:], 1)


def _is_module(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_every_row_is_read() -> None:
    assert len(ROWS) == PAGE.count("\n| ") - PAGE.count("\n| value |") > 40


@pytest.mark.parametrize(("number", "unit", "constant"), ROWS, ids=[row[2] for row in ROWS])
def test_a_value_is_that_of_the_code(number: str, unit: str, constant: str) -> None:
    assert float(number.replace(",", "")) * UNITS.get(unit, 1) == pytest.approx(value_of(constant))
