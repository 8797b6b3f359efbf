"""How the command line is started, and what it answers where a command does not exist."""

import subprocess
import sys

import pytest

from sessionary.cli import main


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
