"""The trajectory models of Harbor, which judge what is exported as ATIF.

The package `harbor` needs a newer Python and much more; its models load alone, beside pydantic. Nothing is installed
by a test: `make plugs` puts them into ``.plugs/harbor-<version>``.
"""

import importlib
import subprocess
import sys
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

VERSION = "0.26.0"
FOLDER = Path(__file__).resolve().parents[2] / ".plugs" / f"harbor-{VERSION}"
_MODELS = "harbor/models/trajectories/"
_SECONDS = 300


def missing() -> str | None:
    """Why the models cannot be used; None if they can."""
    if not (FOLDER / "done").exists():
        return "the models of harbor are not there: `make plugs` puts them there"
    return None if find_spec("pydantic") else "the package pydantic is not installed"


def install() -> None:
    """Download the wheel, and unpack the models alone. Raises what pip fails with."""
    if (FOLDER / "done").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "download",
        f"harbor=={VERSION}",
    ]
    options = ["--no-deps", "--python-version", "3.12", "--only-binary=:all:", "--dest", str(FOLDER)]
    subprocess.run([*pip, *options], check=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    (wheel,) = FOLDER.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(FOLDER, [name for name in archive.namelist() if name.startswith(_MODELS)])
    wheel.unlink()
    (FOLDER / "done").touch()


@cache
def _trajectory() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("harbor.models.trajectories").Trajectory
    finally:
        sys.path.remove(str(FOLDER))


def validate(text: str) -> None:
    """Raise what is wrong with a trajectory. Only for tests of the lane ``harbor``."""
    _trajectory().model_validate_json(text)
