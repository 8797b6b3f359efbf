"""The hooks of pre-commit and the workflow of the forge run commands that exist."""

import re
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[2]
HOOKS = REPO / ".pre-commit-config.yaml"
WORKFLOW = REPO / ".github" / "workflows" / "ci.yml"


def hooks() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(HOOKS.read_text("utf-8"))
    return [hook for repo in loaded["repos"] if repo["repo"] == "local" for hook in repo["hooks"]]


def jobs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    return found


def make_targets() -> set[str]:
    makefile = (REPO / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_every_hook_runs_a_tool_of_the_virtual_environment() -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    assert len(hooks()) >= 6
    for hook in hooks():
        program, *arguments = hook["entry"].split()
        assert program.startswith(".venv/bin/"), hook["id"]
        assert (scripts / program.removeprefix(".venv/bin/")).exists(), hook["id"]
        if arguments[:1] == ["-m"]:
            assert find_spec(arguments[1]) is not None, hook["id"]
        for argument in arguments:
            assert not argument.startswith("tests/") or (REPO / argument).exists(), hook["id"]


def test_the_patterns_of_the_hooks_match_files_of_the_repository() -> None:
    names = [
        "changes/README.md",
        "docs/cli.md",
        "docs/errors.md",
        "pyproject.toml",
        "src/sessionary/errors.py",
        "tests/house/test_automation.py",
    ]
    assert all((REPO / name).exists() for name in names)
    for hook in hooks():
        if "files" in hook:
            assert any(re.search(hook["files"], name) for name in names), hook["id"]


def test_the_workflow_runs_make_targets_that_exist() -> None:
    lines = [step["run"] for job in jobs().values() for step in job["steps"] if "run" in step]
    assert {"make static", "make types", "make test", "make demo", "make coverage"} <= set(lines)
    for line in lines:
        assert re.fullmatch(r"make [a-z]+", line)
        assert line.removeprefix("make ") in make_targets(), line


def test_the_workflow_covers_three_systems_and_every_supported_version() -> None:
    matrix = jobs()["test"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    classifiers = re.findall(r"Python :: (3\.\d+)", (REPO / "pyproject.toml").read_text("utf-8"))
    assert matrix["python"][: len(classifiers)] == classifiers
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in matrix["python"]
