"""Bundles of session files for a dataset: the bytes of the agents, a card that is always valid, and hashes."""

from __future__ import annotations

import errno
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from sessionary import Workspace
from sessionary.cli import main
from sessionary.disk.fs import OS_FS
from sessionary.errors import AlreadyExists, Unsupported
from sessionary.export.losses import Report
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.workspace.bundling import bundle
from tests.support.faults import FaultFs, sweep
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep
from tests.unit.export.conftest import ID, Talk, record

SECRET = "ghp_" + "a1B2" * 9
HOSTILE = 'x"\n---\n- |`<script>\x1b[31m\u202e] [a](javascript:b)'


def made(workspace: Workspace, folder: Path, *words: str, **how: Any) -> Report:
    refs = [workspace.find(word) for word in words or (ID,)]
    return bundle(workspace, refs, str(folder), OS_FS, **how)


def manifest(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return document


def header(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text("utf-8")
    found = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = yaml.safe_load(found[1])
    return document


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_bundle_has_the_bytes_of_the_agent_and_their_hashes(talk: Talk, tmp_path: Path) -> None:
    lines = (record(1, "user", "Hi"), b"not json\n", record(2, "assistant", "Ho"), b'{"torn')
    workspace = talk(*lines, agent=(record(3, "user", "Look"),))
    report = made(workspace, tmp_path / "out")
    source = tmp_path / ".claude" / "projects" / "-home-zoe-app"
    name = f"claude_code/{ID}/{ID}"
    found = files_of(tmp_path / "out")
    assert found.keys() == {
        "README.md", "manifest.json", f"{name}.jsonl", f"{name}/subagents/agent-a1.jsonl",
    }  # fmt: skip
    assert found[f"{name}.jsonl"] == (source / f"{ID}.jsonl").read_bytes()
    assert found[f"{name}/subagents/agent-a1.jsonl"] == next(source.rglob("agent-*")).read_bytes()
    assert (report.losses, report.sessions) == ([], 2)
    document = manifest(tmp_path / "out")
    listed = [file for one in document["sessions"] for file in one["files"]]
    assert {file["path"]: file["sha256"] for file in listed} == {
        path: sha256(data).hexdigest() for path, data in found.items() if path.startswith("claude_code")
    }
    assert (document["format"], document["version"], document["redacted"]) == ("sessionary-bundle", 1, False)
    assert header(tmp_path / "out")["tags"] == ["format:agent-traces", "agent-traces"]
    assert "claude_code." in found["README.md"].decode()
    assert "\nThe files of 2 sessions, as their agents store them." in found["README.md"].decode()


def test_the_card_of_one_session_says_so(talk: Talk, tmp_path: Path) -> None:
    made(talk(record(1, "user", "Hi")), tmp_path / "out")
    assert "\nThe files of one session, as their agents store them." in (
        tmp_path / "out" / "README.md"
    ).read_text("utf-8")


def test_secrets_are_masked_in_files_names_and_documents(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(
        record(1, "user", f"My token is {SECRET}"), b'{"broken ' + SECRET.encode() + b"\n",
        record(2, "assistant", "I see /home/zoe/app"),
    )  # fmt: skip
    report = made(workspace, tmp_path / "out", redact=True)
    found = files_of(tmp_path / "out")
    assert all(SECRET.encode() not in data and b"zoe" not in data for data in found.values())
    assert not any("zoe" in name for name in found)
    (name,) = (name for name in found if name.endswith(".jsonl"))
    first, broken, last, end = found[name].split(b"\n")
    assert json.loads(first)["message"]["content"] == "My token is [redacted: GitHub token 1]"
    assert broken == b'{"broken [redacted: GitHub token 1]'
    assert json.loads(last)["uuid"] == "u2"
    assert end == b""
    assert report.masked["GitHub token"] == 2
    masked = {row["rule"]: row["count"] for row in manifest(tmp_path / "out")["masked"]}
    assert masked["GitHub token"] == 2
    assert made(workspace, tmp_path / "plain").masked == {}


def test_hostile_names_make_no_invalid_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for session in (HOSTILE, "../../up", "README.md", "a\0b"):
        one = RecordJournal(tmp_path / "home" / "openai-agents", "openai-agents", session, durability="none")
        one.change(lambda _: Change(add=[{"role": "user", "content": HOSTILE + "\ud800"}]))
    workspace = Workspace(tmp_path / "home", cache=str(tmp_path / "cache"))
    refs = list(workspace.refs())
    bundle(workspace, refs, str(tmp_path / "out"), OS_FS)
    assert not (tmp_path / "up").exists()
    document = manifest(tmp_path / "out")
    assert {one["id"] for one in document["sessions"]} == {ref.session_id for ref in refs}
    for one in document["sessions"]:
        (file,) = one["files"]
        assert (tmp_path / "out" / file["path"]).resolve().is_relative_to(tmp_path / "out" / "records")
        assert sha256((tmp_path / "out" / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert list(header(tmp_path / "out")) == ["pretty_name", "size_categories", "tags"]
    body = (tmp_path / "out" / "README.md").read_text("utf-8").split("\n---\n", 1)[1]
    assert not set("<`\x1b\u202e") & set(body.replace("`manifest.json`", ""))
    rows = [line for line in body.splitlines() if line.startswith("| ")][1:]
    assert [line.count("|") for line in rows] == [7] * 4


def test_what_cannot_be_copied_is_a_loss_and_strict_writes_nothing(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(record(1, "user", "Hi"), agent=(record(3, "user", "Look"),))
    agent = next((tmp_path / ".claude").rglob("agent-*"))
    agent.with_name("picture.png").write_bytes(b"\x89PNG\0")
    with pytest.raises(Unsupported, match=r"\.png"):
        made(workspace, tmp_path / "out", strict=True)
    assert not (tmp_path / "out").exists()
    report = made(workspace, tmp_path / "out")
    assert [(loss.code, loss.what) for loss in report.losses] == [("content", ".png")]
    assert manifest(tmp_path / "out")["losses"][0]["what"] == ".png"
    assert "Not included" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_a_folder_that_is_not_empty_is_refused(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(record(1, "user", "Hi"))
    made(workspace, tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("kept")
    with pytest.raises(AlreadyExists):
        made(workspace, tmp_path / "out")
    made(workspace, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"


def test_the_command(talk: Talk, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(record(1, "user", f"My token is {SECRET}"))
    assert main(["export", ID, "--format", "hf"]) == 2
    assert main(["export", ID, "--format", "hf", "--output", "out", "--redact", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["exports"]
    assert (one["format"], one["sessions"], one["path"]) == ("hf", 1, str(tmp_path / "out"))
    assert main(["export", ID, "--format", "hf", "--output", "out"]) == AlreadyExists.exit_code
    assert main(["export", ID, "--format", "hf", "--output", "more/", "--redact"]) == 0
    out, err = capsys.readouterr()
    assert "1 session" in out
    assert "masked: 1 × GitHub token" in err


def test_a_bundle_with_a_card_is_complete(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(
        record(1, "user", "Hi"), record(2, "assistant", "x" * 5000), agent=(record(3, "user", "Look"),)
    )
    refs = [workspace.find(ID)]

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        out = Path(folder, "out")
        if not (out / "README.md").exists():
            assert not acked
            return
        document = manifest(out)
        files = [file for one in document["sessions"] for file in one["files"]]
        assert len(files) + len(document["losses"]) == 2
        for file in files:
            assert sha256((out / file["path"]).read_bytes()).hexdigest() == file["sha256"]

    def run(fs: RecordingFs) -> None:
        bundle(workspace, refs, f"{fs.root}/out", fs)
        fs.mark("bundled")

    def failing(fs: FaultFs, folder: str) -> None:
        bundle(workspace, refs, f"{folder}/out", fs)
        fs.mark("bundled")

    report = crash_sweep(lambda folder: None, run, check, tmp_path / "crash")
    assert report.states > 10
    assert not report.violations, report.describe()
    (tmp_path / "fault").mkdir()
    report = sweep(lambda folder: None, failing, check, tmp_path / "fault", effects=("short", errno.EIO))
    assert report.states > 10
    assert not report.violations, report.describe()
