"""The code, the settings and the commands of docs/howto/export.md work, and its table has every loss."""

import json
import re
import shlex
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.cli.export_cmd import BUNDLE
from sessionary.export import FORMATS
from sessionary.export.losses import CODES
from sessionary.redaction import COMMON, Redaction
from sessionary.redaction.personal import load_rules

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "howto" / "export.md").read_text("utf-8")
TOKEN = "ghp_" + "a1" * 18


def block(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (
        "CLAUDE_CONFIG_DIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "SESSIONARY_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / ".claude" / "projects" / "-w" / "3f0c81d2-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    content = [{"type": "text", "text": f"token {TOKEN}"}, {"type": "image", "source": {}}]
    record = {"type": "user", "uuid": "u1", "timestamp": "2026-03-01T09:00:00Z"}
    path.write_text(json.dumps({**record, "message": {"role": "user", "content": content}}) + "\n")


def test_the_commands_run(tmp_path: Path) -> None:
    lines = [line for one in block("sh") for line in one.splitlines()]
    assert len(lines) == 5
    (tmp_path / "elsewhere").mkdir()
    for line in lines:
        words = shlex.split(line)[1:]
        assert main([*words, "--force"] if words[0] == "export" else words) == 0
    assert "[redacted: GitHub token 1]" in (tmp_path / "build.html").read_text("utf-8")
    assert "masked" in (tmp_path / "dataset" / "README.md").read_text("utf-8")


def test_the_code_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for one in block("python"):
        exec(one, {})
    printed = capsys.readouterr().out
    assert printed.startswith("1 messages\nmissing: 1 image\nmasked: {")
    assert "'GitHub token': 2" in printed, "in the title and in the text"
    assert TOKEN not in (tmp_path / "session.html").read_text("utf-8")


def test_the_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(block("toml")[0])
    redacted = Redaction(load_rules(str(file))).text("KD-123456 https://a.corp.example a@b.example")
    assert redacted == "[redacted] https://[redacted] [redacted]"
    assert "cookie" in COMMON


def test_the_tables_have_every_format_and_every_loss() -> None:
    named = set(re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE))
    assert named == FORMATS.keys() | CODES.keys() | {BUNDLE}
    page = (DOCS / "cli-json.md").read_text("utf-8")
    assert all(f"`{code}`" in page for code in CODES)
