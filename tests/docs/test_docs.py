"""Links resolve, generated documents are up to date, commands and errors are documented, examples run."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessionary.cli import main

REPO = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", "node_modules"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUNNABLE = ["README.md", "docs/quickstart.md"]


def documents() -> Iterator[Path]:
    for folder, below, files in os.walk(REPO):
        below[:] = [
            name for name in below if name not in NOT_OURS and (name == ".ci" or not name.startswith("."))
        ]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def links(text: str) -> list[str]:
    """The targets of all links in `text`, code left out."""
    prose = re.sub(r"`[^`\n]*`", "``", FENCE.sub("", text))
    return [first or second for first, second in LINK.findall(prose)]


def anchors(text: str) -> set[str]:
    """What a link to a heading of `text` may be called: lower case, no punctuation, hyphens for blanks."""
    headings = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> list[str]:
    """The links of `document` to files or headings that are not there."""
    broken = []
    for link in links(document.read_text("utf-8")):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue  # elsewhere: not ours to prove
        name, _, anchor = link.partition("#")
        target = (document.parent / name) if name else document
        missing = not target.exists() or not target.resolve().is_relative_to(REPO)
        if missing or (
            anchor and target.suffix == ".md" and anchor not in anchors(target.read_text("utf-8"))
        ):
            broken.append(link)
    return broken


def test_every_link_leads_somewhere() -> None:
    found = list(documents())
    assert REPO / "README.md" in found
    assert {str(path.relative_to(REPO)): broken for path in found if (broken := broken_links(path))} == {}


def test_a_broken_link_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "REPO", tmp_path)
    (tmp_path / "there.md").write_text("# A Heading, here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#a-heading-here) [c](https://example.org/x) `[code](gone.md)`\n"
        "[d](gone.md) [e](there.md#gone) ![f](gone.png) [g](../outside.md)\n```\n[h](gone.md)\n```\n"
    )
    assert broken_links(page) == ["gone.md", "there.md#gone", "gone.png", "../outside.md"]


@pytest.mark.parametrize("script", ["gen_cli_docs", "gen_errors_docs", "gen_picture"])
def test_generated_documents_are_up_to_date(script: str) -> None:
    command = [sys.executable, "-m", f"scripts.{script}", "--check"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_is_documented() -> None:
    from scripts.gen_cli_docs import commands
    from sessionary.cli.app import cli

    names = [name for name, _ in commands(cli)]
    assert {"sessionary", "sessionary list", "sessionary show", "sessionary check", "sessionary demo"} <= set(
        names
    )
    page = (REPO / "docs" / "cli.md").read_text("utf-8")
    assert [name for name in names if f"\n## {name}\n" not in page] == []


def test_every_error_is_documented_with_its_exit_code() -> None:
    from scripts.gen_errors_docs import error_classes

    page = (REPO / "docs" / "errors.md").read_text("utf-8")
    for error in error_classes():
        section = page.partition(f"\n## {error.__name__}\n")[2].partition("\n## ")[0]
        assert f"Exit code of the command line: {error.exit_code}." in section, error.__name__


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_examples_run(name: str, tmp_path: Path) -> None:
    blocks = PYTHON.findall((REPO / name).read_text("utf-8"))
    assert blocks, f"{name} has no Python example"
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "SESSIONARY_"))}
    environment |= {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", RUNNABLE)
def test_what_is_installed_is_installed_into_an_environment(name: str) -> None:
    """Debian refuses to install beside its own packages (PEP 668): each line makes an environment, or is within one."""
    text = (REPO / name).read_text("utf-8")
    lines = [line for block in SHELL.findall(text) for line in block.splitlines() if "install" in line]
    assert lines
    for line in lines:
        assert re.match(r"(pipx|uv tool) install |~/\.venvs/sessionary/bin/pip install ", line), line
    assert re.search(r"\bmaestro\b", text.partition(lines[0])[0][-200:] + lines[0])


def test_the_output_in_the_readme_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the README after its Python example print what it shows, but for times."""
    readme = (REPO / "README.md").read_text("utf-8")
    (shown,) = re.findall(r"^```console\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sessionary.cli.homes.HOME", tmp_path / ".amplifier")
    for block in PYTHON.findall(readme):
        exec(block, {})
    capsys.readouterr()
    printed = ""
    for line in re.findall(r"^\$ (sessionary .+)$", shown, re.MULTILINE):
        assert main(shlex.split(line)[1:]) == 0
        printed += f"$ {line}\n" + capsys.readouterr().out
    assert _timeless(printed) == _timeless(shown)


def _timeless(text: str) -> str:
    """`text` without times, and with single blanks: output to a pipe is not as wide as a terminal."""
    return re.sub(r" +", " ", re.sub(r"[A-Z][a-z]{2} \d+ \d\d:\d\d|\b\d+ s\b", "TIME", text))


def test_the_commands_of_the_quickstart_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    blocks = SHELL.findall((REPO / "docs" / "quickstart.md").read_text("utf-8"))
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("sessionary ")]
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line, comments=True)
        assert main(words[1:]) == 0, line
