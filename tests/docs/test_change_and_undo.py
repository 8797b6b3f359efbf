"""The output in docs/howto/change-and-undo.md is real, but for times, sizes and the home of the example."""

import re
import shlex
from pathlib import Path

import pytest

from sessionary import EventsLog, SessionStore
from sessionary.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "change-and-undo.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
EXAMPLES = [part for block in BLOCKS for part in re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)*", block, re.MULTILINE)]
VERBS = ("rewind", "undo", "fork", "trash")
PROMPTS = ("Why is the build slow?", "Who emptied it?", "Switch that off.", "And delete the logs, too.")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Four turns of four messages, and an event log with two events for each."""
    home, shop = tmp_path / "home", tmp_path / "shop"
    shop.mkdir()
    store = SessionStore(home / "projects" / "-shop" / "sessions")
    session = "3f0c81d2-7a64-4b0e-9c55-1d2b7e90a1f3"
    with EventsLog(store.base_dir / session) as log:
        for turn, prompt in enumerate(PROMPTS):
            call = {"id": f"c{turn}", "tool": "bash", "arguments": {"command": "ls"}}
            store.append(
                session,
                [
                    {"role": "user", "content": prompt},
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"], "name": "bash", "content": "build"},
                    {"role": "assistant", "content": "Done."},
                ],
                {"name": "The slow build", "working_dir": str(shop)},
            )
            for event in ("prompt:submit", "llm:response"):
                log.append({"event": event, "span_id": f"s{turn}", "data": {"prompt": prompt}})
    return home


def shape(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[A-Z][a-z]{2} \d+ \d\d:\d\d", "TIME", text)).strip()


def test_the_commands_print_what_the_page_shows(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [
        one
        for one in EXAMPLES
        if one.split()[2] in VERBS and not re.search(r"undo( --list)?$", one.splitlines()[0])
    ]
    assert len(shown) >= 5
    for example in shown:
        command, _, output = example.partition("\n")
        assert main([*shlex.split(command)[2:], "--home", str(home)]) == 0, command
        printed = capsys.readouterr()
        wanted = [
            shape(line)
            for line in (output.replace("\n  is undone", " is undone")).splitlines()
            if line.strip()
        ]
        real = shape(printed.out + printed.err).replace(f" --home {home}", "")
        assert [line for line in wanted if line not in real] == [], real
