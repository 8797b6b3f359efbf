"""Servers that come from npm: installed once into a folder of the clone, started by the tests that need them.

Nothing is installed by a test: a run without a network would hang or fail there for reasons of its own. ``make
servers`` (or ``python -m tests.servers.npm``) fills the folder, `.ci/run` calls it, and a lane whose package is
missing says how to get it. No script of a package is run while it is installed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".servers"
PACKAGES = {
    "@vercel/cosmosdb-server": "1.0.1",  # Cosmos DB, by people who are not Microsoft
    "axe-core": "4.14.1",  # no server: the rules of accessibility, evaluated in the page by the browser tests
    "azurite": "3.37.0",  # Azure Blob, by Microsoft
    "s3rver": "3.7.1",  # an S3 that ignores conditions
}
INSTALL_SECONDS = 600


def folder_of(package: str) -> Path:
    """The folder of a package, made or not: one folder for each version, so that a new pin is a new folder."""
    return CACHE / f"{package.strip('@').replace('/', '-')}-{PACKAGES[package]}"


def script(package: str, path: str) -> Path:
    """A file of an installed package, to be run with node.

    Args:
        package: its name on npm.
        path: the file, relative to the package.
    """
    return folder_of(package) / "node_modules" / package / path


def missing(package: str) -> str | None:
    """Why a server of this package cannot be started; None if it can."""
    return "node is not installed" if shutil.which("node") is None else not_installed(package)


def not_installed(package: str) -> str | None:
    """Why the files of this package are missing; None if they are there."""
    if not (folder_of(package) / "done").exists():
        return f"the npm package {package} {PACKAGES[package]} is not installed: `make servers` does that"
    return None


def install(package: str) -> None:
    """Install a package, unless it is there. Raises what npm fails with."""
    folder = folder_of(package)
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--loglevel=error"]
    command = ["npm", "install", *options, "--prefix", str(folder), f"{package}@{PACKAGES[package]}"]
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
    (folder / "done").touch()


if __name__ == "__main__":
    for name in sys.argv[1:] or PACKAGES:
        install(name)
