"""The tests of each plug, run in the environment of its framework at the pinned versions."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.plugs import environments


@pytest.mark.timeout(environments.SUITE_SECONDS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.lane(f"plug-{name}")) for name in environments.FRAMEWORKS],
)
def test_the_suite_of_a_framework_passes(name: str) -> None:
    done = environments.run_suite(name)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    assert "skipped" not in done.stdout, done.stdout


@pytest.mark.parametrize("name", environments.FRAMEWORKS)
def test_every_framework_has_its_extra_and_its_pin(name: str) -> None:
    project = (environments.REPO / "pyproject.toml").read_text("utf-8")
    assert re.search(rf"^{name} = \[", project, re.MULTILINE)
    pins = environments.constraints(name).read_text("utf-8")
    assert re.search(rf"^{name}(-slim)?==", pins, re.MULTILINE)
    assert environments.suite(name).exists()


def test_nothing_else_loads_a_framework() -> None:
    code = "import sys, sessionary, sessionary.workspace, sessionary.cli; print('sessionary.plugs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert find_spec("sessionary.plugs.openai_agents") is not None
