"""The way out of every state of a work session, on the command line."""

import json
import shlex
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.layouts.maestro import WorkStore, create_breadcrumb
from tests.e2e.driving import Result, Run

ROOT = Path("docs", "sessions")


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Result:
        code = main(list(arguments))
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def session() -> str:
    return WorkStore(ROOT).create("work_task").session_id


def lose(name: str) -> None:
    """A message in a folder that is no session."""
    crumb = create_breadcrumb("lost", "", [], [], None, 0, "m", {})
    folder = ROOT / name / "breadcrumbs" / "0"
    folder.mkdir(parents=True)
    (folder / f"{crumb.timestamp}.json").write_text(json.dumps(vars(crumb)))


# breadcrumbs of no session


def test_check_tells_of_breadcrumbs_of_no_session_and_its_command_brings_them_in(
    run: Run, session: str
) -> None:
    lose("late night")
    code, out, _ = run("check", "--home", ".")
    assert code == 13
    assert "lost_breadcrumbs" in out
    assert "nothing is damaged" not in out
    problems = run("check", "--home", ".", "--json").json["problems"]
    (problem,) = [each for each in problems if each["code"] == "lost_breadcrumbs"]
    assert problem["session"] is None
    command = problem["repair"].split("`")[1].replace("ID", session)
    code, out, _ = run(*shlex.split(command)[1:])
    assert (code, out) == (0, f"✓ 1 breadcrumb moved into {session}\n")
    assert run("check", "--home", ".").code == 0
    assert [each["prompt"] for each in run("work", "breadcrumbs", session, "--json").json] == ["lost"]


def test_moving_as_json_and_what_it_refuses(run: Run, session: str) -> None:
    lose("late")
    moved = run("work", "breadcrumb", "move", "late", "latest", "--json").json
    assert moved["session_id"] == session
    assert [Path(path).parent for path in moved["paths"]] == [
        Path.cwd() / ROOT / session / "breadcrumbs" / "0"
    ]
    code, _, err = run("work", "breadcrumb", "move", "late", session)
    assert code == 10
    assert "sessionary check" in err
