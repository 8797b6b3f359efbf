"""Each command line that a document shows names a command that exists, and only options that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sessionary.cli.app import cli

REPO = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in [*REPO.glob("*.md"), *(REPO / "docs").rglob("*.md")]
    if not path.read_text("utf-8").startswith("<!-- Written by")
)
INLINE = re.compile(r"`sessionary ((?:[a-z]|-)[^`]*)`")
FENCED = re.compile(r"^(?:\$ )?(?:\w+=\$\()?sessionary (.+?)\)?$", re.MULTILINE)
FENCES = re.compile(r"^```(?:sh|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def command_lines(text: str) -> Iterator[str]:
    """What follows `sessionary` in the prose and in the examples of a page, without filters and comments."""
    lines = INLINE.findall(FENCES.sub("", text))
    for block in FENCES.findall(text):
        lines += FENCED.findall(block.replace("\\\n", " "))
    for line in lines:
        if "<" in line:  # a formula of a format
            continue
        yield re.split(r" \\?\| | # |;", line)[0].rstrip(" .…,")


def faults(line: str) -> Iterator[str]:
    """What is wrong with one command line."""
    try:
        words = shlex.split(line.replace("…", ""), comments=True)
    except ValueError:
        return
    context, command = click.Context(cli, help_option_names=["-h", "--help"]), click.Command("")
    group: click.Command = cli
    while isinstance(group, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
        if words[0].startswith("-"):
            break
        found = group.get_command(context, words[0])
        if found is None:
            yield f"no command {words[0]}: {line}"
            return
        group, words = found, words[1:]
    command = group
    known = {
        name
        for parameter in command.get_params(context)
        for name in parameter.opts + parameter.secondary_opts
    }
    for word in words:
        name = word.partition("=")[0]
        if re.fullmatch(r"--[a-z-]+", name) and name not in known:
            yield f"no option {name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    lines = list(command_lines(page.read_text("utf-8")))
    assert [fault for line in lines for fault in faults(line)] == []


def test_the_pages_show_many_commands() -> None:
    assert sum(len(list(command_lines(page.read_text("utf-8")))) for page in PAGES) > 150


@pytest.mark.parametrize("line", ["lost 3f0c", "list --colour", "work begin", "sync gc --everything"])
def test_a_wrong_command_is_noticed(line: str) -> None:
    assert list(faults(line))
