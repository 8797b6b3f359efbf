"""What the pages about the mailbox say is so: the examples run, and every code has its row."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessionary import Mailbox
from sessionary.model import Severity
from tests.messages import echo, prompts

MAKERS = ("Problem", "Problem.of_file")
REPO = Path(__file__).resolve().parents[2]
HOWTO = (REPO / "docs" / "howto" / "mailbox.md").read_text("utf-8")
FORMAT = (REPO / "docs" / "formats" / "mailbox.md").read_text("utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```$", HOWTO, re.DOTALL | re.MULTILINE)
SIXTH = subprocess.run(["date", "+%6N"], capture_output=True, text=True, check=False).stdout.strip()
GNU = pytest.mark.skipif(
    not re.fullmatch(r"\d{6}", SIXTH) or not Path("/proc/sys/kernel/random/uuid").exists(),
    reason="the example is for GNU coreutils on Linux",
)


def post(session: Path, text: str, path: str = "") -> subprocess.CompletedProcess[str]:
    (function,) = [block for block in SHELL if block.startswith("post()")]
    environment = {
        **os.environ,
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}" if path else os.environ["PATH"],
    }
    command = ["sh", "-eu", "-c", function + '\npost "$1" "$2"\n', "sh", str(session), text]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def session(folder: Path) -> Path:
    """A folder that the producer takes for a session."""
    folder.mkdir(exist_ok=True)
    (folder / "session.json").write_text("{}")
    return folder


@GNU
def test_the_shell_producer_creates_no_folder_for_a_missing_session(tmp_path: Path) -> None:
    assert post(tmp_path / "typo", "one").returncode != 0
    assert os.listdir(tmp_path) == []


@GNU
def test_the_producer_in_shell_leaves_messages_that_are_applied(tmp_path: Path) -> None:
    session(tmp_path)
    for text in ("one", "two"):
        done = post(tmp_path, text)
        assert done.returncode == 0, done.stderr
    assert Mailbox(tmp_path).consume(echo).problems == []
    assert prompts(tmp_path) == ["one", "two"]
    names = sorted(os.listdir(tmp_path / "breadcrumbs" / "0"))
    assert len(names) == 2
    assert [
        json.loads((tmp_path / "breadcrumbs" / "0" / name).read_text())["timestamp"] for name in names
    ] == [name.removesuffix(".json") for name in names]


@GNU
def test_the_producer_in_shell_does_not_overwrite_a_message_of_the_same_microsecond(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "date").write_text("#!/bin/sh\necho 20260301_090000_000001\n")
    (tools / "date").chmod(0o755)
    session(tmp_path / "s")
    assert post(tmp_path / "s", "one", str(tools)).returncode == 0
    assert post(tmp_path / "s", "two", str(tools)).returncode != 0
    assert Mailbox(tmp_path / "s").consume(echo).applied == 1
    assert prompts(tmp_path / "s") == ["one"]


def test_the_python_examples_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", HOWTO, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks))
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_code_has_a_row_with_its_severity() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \|$", FORMAT.partition("## Codes")[2], re.MULTILINE))
    found: dict[str, str] = {}
    for path in (REPO / "src" / "sessionary" / "mailbox").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS:
                code, severity = node.args[:2]
                assert isinstance(code, ast.Constant)
                assert isinstance(severity, ast.Attribute)
                found[str(code.value)] = severity.attr
    assert rows == found
    assert set(rows.values()) <= {severity.name for severity in Severity}


def test_the_line_of_the_example_has_the_keys_of_a_real_one(tmp_path: Path) -> None:
    from tests.messages import log, put

    put(tmp_path, "a")
    Mailbox(tmp_path).consume(echo)
    (example,) = re.findall(r"^```json\n(.*?)^```$", FORMAT, re.DOTALL | re.MULTILINE)
    assert list(json.loads(example)) == list(log(tmp_path)[0])


def test_every_event_of_the_attempts_is_documented() -> None:
    source = (REPO / "src" / "sessionary" / "mailbox" / "attempts.py").read_text("utf-8")
    written = set(re.findall(r'self\._add\("(\w+)"', source))
    section = FORMAT.partition("## The attempts")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) - {"what"} == written
