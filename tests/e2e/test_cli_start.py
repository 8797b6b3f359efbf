"""How the command line is started, and what it answers where a command does not exist."""

import subprocess
import sys

import pytest

from sessionary.cli import main
from tests.e2e.every_command import commands


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sessionary", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sessionary ")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["lst"], "list"),
        (["restor-backup"], "restore-backup"),
        (["work", "shw"], "show"),
        (["work", "subwork", "strt"], "start"),
        (["feature", "arhcive"], "archive"),
        (["brainstorm", "continu"], "continue"),
        (["sync", "pul"], "pull"),
    ],
    ids=" ".join,
)
def test_a_mistyped_command_is_answered_with_the_one_it_may_mean(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert f"No such command '{words[-1]}'. Did you mean {meant}" in capsys.readouterr().err


def test_a_word_like_no_command_gets_no_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xqqq"]) == 2
    reported = capsys.readouterr().err
    assert "No such command 'xqqq'." in reported
    assert "Did you mean" not in reported


GROUPS = [
    "",
    "work",
    "work subwork",
    "work ledger",
    "brainstorm",
    "feature",
    "archive",
    "sync",
    "sync project",
]


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_describes_each_command_in_a_whole_sentence(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*group.split(), "--help"]) == 0
    listed = capsys.readouterr().out
    assert "..." not in listed.partition("\n  Examples:")[0].partition("COMMAND [ARGS]...")[2]
    names = {name for name, _ in commands()}
    below = {
        one.removeprefix(group).split()[0] for one in names if one.startswith(f"{group} " if group else "")
    }
    assert below
    assert below <= {
        line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line.strip()
    }
