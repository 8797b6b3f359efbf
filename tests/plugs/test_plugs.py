"""The tests of each plug, run in the environment of its framework at the pinned versions."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.plugs import environments
from tests.plugs.faults import FAULTS

FRAMEWORKS = [pytest.param(name, marks=pytest.mark.lane(f"plug-{name}")) for name in environments.FRAMEWORKS]


@pytest.mark.timeout(environments.SUITE_SECONDS)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_suite_of_a_framework_passes(name: str) -> None:
    done = environments.run_suite(name)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    assert "skipped" not in done.stdout, done.stdout


@pytest.mark.timeout(environments.SUITE_SECONDS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_planted_fault_is_found(name: str, fault: str) -> None:
    done = environments.run_suite(name, fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^1 failed", done.stdout, re.MULTILINE), done.stdout
    assert "E   " in done.stdout, done.stdout


@pytest.mark.parametrize("name", environments.FRAMEWORKS)
def test_every_framework_has_its_extra_and_its_pin(name: str) -> None:
    project = (environments.REPO / "pyproject.toml").read_text("utf-8")
    assert re.search(rf"^{name} = \[", project, re.MULTILINE)
    pins = environments.constraints(name).read_text("utf-8")
    assert re.search(rf"^{name}(-slim)?==", pins, re.MULTILINE)
    assert environments.suite(name).exists()


OWN_DEMANDS = {
    "OpenAI Agents SDK": ("suite_openai_agents_contracts.py", "make", ["sqlite", "advanced"]),
    "Google ADK": ("suite_google_adk.py", "service", ["database", "sqlite", "memory"]),
    "pydantic-ai": ("suite_pydantic_ai.py", "store", ["memory"]),
}
"""The suites that run over our store and theirs: by the fixture that makes a store, and the names of theirs in it."""


@pytest.mark.parametrize("framework", OWN_DEMANDS)
def test_the_page_counts_the_demands_as_the_suites_do(framework: str) -> None:
    file, fixture, theirs = OWN_DEMANDS[framework]
    tree = ast.parse((environments.HERE / file).read_text("utf-8"))
    demands = [
        one for one in tree.body
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
        and fixture in [argument.arg for argument in one.args.args]
    ]  # fmt: skip
    known = [
        ast.literal_eval(key)[0]
        for one in tree.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "KNOWN"
        for key in one.value.keys  # type: ignore[attr-defined]
    ]
    page = (environments.REPO / "docs" / "frameworks.md").read_text("utf-8")
    row = re.search(rf"^\| {framework} \| (\d+) of our own[^|]*\| (\d+) \| ([^|]*) \|$", page, re.MULTILINE)
    assert row is not None
    passed = list(map(int, re.findall(r"(\d+) \(", row[3])))
    assert (int(row[1]), int(row[2])) == (len(demands), len(demands))
    assert passed == [len(demands) - known.count(store) for store in theirs]


def test_the_page_counts_the_scripts() -> None:
    tree = ast.parse((environments.HERE / "suite_scripts.py").read_text("utf-8"))
    assigned = {
        ast.unparse(one.targets[0] if isinstance(one, ast.Assign) else one.target): one.value
        for one in reversed(tree.body)
        if isinstance(one, ast.Assign | ast.AnnAssign)
    }
    scripts, on_files = (len(assigned[name].elts) for name in ("SCRIPTS", "ON_FILES"))  # type: ignore[union-attr]
    not_offered = ast.literal_eval(assigned["NOT_OFFERED"])  # type: ignore[arg-type]
    page = (environments.REPO / "docs" / "frameworks.md").read_text("utf-8")
    assert f"The same {scripts} scripts" in page
    assert (scripts, on_files) == (30, 2)
    table = page[page.index("| framework | scripts |") :]
    counts = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|", table, re.MULTILINE))
    names = ("OpenAI Agents SDK", "Claude Agent SDK", "LangGraph", "Google ADK", "pydantic-ai")
    extras = ("openai-agents", "claude-agent-sdk", "langgraph", "google-adk", "pydantic-ai")
    assert [int(counts[name]) for name in names] == [
        scripts - len(not_offered.get(extra, ())) for extra in extras
    ]


def test_nothing_else_loads_a_framework() -> None:
    code = "import sys, sessionary, sessionary.workspace, sessionary.cli; print('sessionary.plugs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert find_spec("sessionary.plugs.openai_agents") is not None
