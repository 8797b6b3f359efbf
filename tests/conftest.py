"""Fixtures and options of all tests."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from sessionary.disk import journal

pytest_plugins = ["tests.lanes"]

# What a list remembers, and what a user was shown once, belongs to the user who runs the tests; neither they nor
# their children may touch it. The folder goes with this object, at the end of the process.
_cache = tempfile.TemporaryDirectory(prefix="sessionary-tests-cache-")
os.environ["XDG_CACHE_HOME"] = _cache.name
os.environ["XDG_CONFIG_HOME"] = os.path.join(_cache.name, "config")  # what the person here has chosen
_data = os.path.join(_cache.name, "data")
os.environ["XDG_DATA_HOME"] = _data  # names, tags, and the archive
os.environ["XDG_STATE_HOME"] = os.path.join(_cache.name, "state")

os.environ["COLUMNS"] = "80"  # as pytest-xdist sets it for its workers, whatever the terminal here is

# A deadline measures the machine, not the code. CI draws the same examples each time, so that a change is
# judged by what it changed; `make soak` draws new ones, many.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("soak", settings.get_profile("default"), max_examples=5000, stateful_step_count=80)


def _profile() -> str:
    if os.environ.get("SESSIONARY_SOAK"):
        return "soak"
    return "ci" if os.environ.get("CI") else "default"


settings.load_profile(_profile())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Names, tags, imported sessions and failed flushes of one test are not seen by the next."""
    os.environ["XDG_DATA_HOME"] = f"{_data}/{abs(hash(item.nodeid)):x}"
    # Files whose flush failed are known by inode number, and the files of the next test may get the same numbers.
    journal._suspects.clear()
