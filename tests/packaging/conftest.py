"""Built wheels and bare environments to install them in, all without a network."""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


def pip(*arguments: str | Path) -> str:
    """Run the pip of this environment, offline, and return what it printed."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
    return kept | {"PIP_CONFIG_FILE": os.devnull}


@pytest.fixture(scope="session")
def our_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our own distribution, built with the hatchling that is installed here."""
    folder = tmp_path_factory.mktemp("ours")
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", folder, REPO)
    (wheel,) = folder.glob("sessionary-*.whl")
    return wheel


@pytest.fixture(scope="session")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, str]], Path]:
    """A maker of the smallest legal wheel of a name and some files."""

    def build(name: str, files: dict[str, str]) -> Path:
        info = f"{name}-9.0.dist-info"
        content = dict(files)
        content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.0\n"
        content[f"{info}/WHEEL"] = (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        record = "".join(
            f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in content.items()
        )
        content[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
        wheel = tmp_path_factory.mktemp("theirs") / f"{name}-9.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in content.items():
                archive.writestr(path, text)
        return wheel

    return build


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class Environment:
    """A virtual environment in which nothing is installed, not even pip."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        scripts = Path(sysconfig.get_path("scripts", "venv", vars={"base": str(folder)}))
        self.python = next(scripts.glob("python*"))

    def install(self, wheel: Path) -> None:
        pip("--python", self.python, "install", "--no-index", "--no-deps", "--no-compile", wheel)

    def uninstall(self, name: str) -> None:
        pip("--python", self.python, "uninstall", "--yes", name)

    def run(self, code: str, *, borrow: bool = False) -> str:
        """What `code` prints, stripped.

        With `borrow` it finds our dependencies where they are installed for these tests; it then also sees
        the records of everything installed there, our own included, so questions about records are asked
        without.
        """
        environment = _environment() | {"PYTHONDONTWRITEBYTECODE": "1"}
        if borrow:
            environment["PYTHONPATH"] = sysconfig.get_path("purelib")
        command = [str(self.python), "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


@pytest.fixture
def bare(tmp_path: Path) -> Environment:
    """An environment of the test's own."""
    return Environment(tmp_path / "environment")
