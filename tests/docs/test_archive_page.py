"""The output in docs/howto/archive.md is real, but for the home of the example."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from sessionary.cli import main
from tests.support import agent_stores
from tests.support.agent_files import write_lines

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "archive.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def spaced(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\b\d+ s\b", "0 s", text)).strip()


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_stores.enter(tmp_path, monkeypatch)
    folder = tmp_path / ".claude" / "projects" / "-home-u-app"
    said = {"type": "user", "timestamp": "2026-03-01T09:00:00Z", "cwd": "/home/u/app"}
    write_lines(
        folder / f"{agent_stores.CLAUDE}.jsonl",
        {**said, "message": {"role": "user", "content": "Fix the build"}},
    )
    examples = [
        part for block in BLOCKS for part in re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)*", block, re.MULTILINE)
    ]
    assert len(examples) == 6
    for example in examples:
        command, _, output = example.partition("\n")
        words = shlex.split(command)[2:]
        if "--folder" in words:
            words[words.index("--folder") + 1] = str(tmp_path / "archive-example")
            output = output.replace("/tmp/archive-example", "~/archive-example")
        if words == ["list"]:
            assert main(["archive", "run"]) == 0
            shutil.rmtree(folder)
            capsys.readouterr()
        assert main(words) == 0, command
        printed = capsys.readouterr()
        cut = re.sub(
            r"Fix[\w ]*…", "Fix the build", printed.out
        )  # as wide as the home of this test leaves room
        assert spaced(cut + printed.err) == spaced(output)
