"""The sessions of Cursor on the command line: one row each, and no key of encryption in any output."""

import json
import shutil
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.layouts.agents.cursor import HOMES
from tests.support.agent_files import write_lines
from tests.support.cursor_files import KEY, Chat, Editor, tool

IDS = ("11111111-aaaa", "22222222-bbbb", "33333333-cccc")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*HOMES, "SESSIONARY_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path)
    quoted = json.dumps({"blobEncryptionKey": KEY})
    said = {"role": "user", "message": {"content": [{"type": "text", "text": f"Read {quoted}"}]}}
    for name in IDS:
        write_lines(tmp_path / f".cursor/projects/p/agent-transcripts/{name}/{name}.jsonl", said)
    chat = Chat(tmp_path / ".cursor", IDS[1], cwd=str(tmp_path), title="Of the store")
    chat.add({"role": "user", "content": f"Read {quoted}"}, {"role": "odd", "blobEncryptionKey": KEY})
    editor = Editor(tmp_path / ".config/Cursor/User")
    editor.bubble(IDS[2], "b1", 1, text=f"Read {quoted}")
    editor.bubble(IDS[2], "b2", 2, toolFormerData=tool("c1", result=quoted, params=quoted))
    editor.session(IDS[2], name="Of the editor")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    assert KEY not in out + err
    return code, out


def test_a_session_in_several_stores_is_one_row(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "list", "--json")
    rows = {one["id"]: one for one in json.loads(printed)}
    assert code == 0
    assert {one["kind"] for one in rows.values()} == {"cursor"}
    assert [rows[name]["path"].rpartition("/")[2] for name in IDS] == [
        f"{IDS[0]}.jsonl", "store.db", f"state.vscdb#{IDS[2]}",
    ]  # fmt: skip
    assert rows[IDS[1]]["title"] == "Of the store"
    assert run(capsys, "list")[1].count("Of the") == 2


@pytest.mark.parametrize("name", IDS)
def test_no_key_in_any_output(home: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    for words in (
        ("show", name),
        ("show", name, "--json"),
        ("show", name, "--full"),
        ("check", name, "--json"),
    ):
        code, printed = run(capsys, *words)
        assert code == 0
        assert "[redacted]" in printed or "check" in words
    assert run(capsys, "search", KEY)[0] == 1
    assert run(capsys, "search", "Read", "--json")[0] == 0


def test_what_continues_a_session(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"cursor-agent --resume {IDS[1]}" in run(capsys, "open", IDS[1])[1]
    assert run(capsys, "open", IDS[2])[0] == 18


def test_where_doctor_looked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = run(capsys, "doctor", "--json")
    (found,) = [one for one in json.loads(printed)["agents"] if one["kind"] == "cursor"]
    assert found["sessions"] == 3
    assert [(one["path"].removeprefix(f"{home}/"), one["state"]) for one in found["locations"]] == [
        (".cursor", "found"),
        (".cursor-server", "missing"),
        (".config/Cursor/User/globalStorage/state.vscdb", "found"),
        (".cursor-server/data/User/globalStorage/state.vscdb", "missing"),
    ]


def test_an_archived_session_is_read_when_its_source_is_gone(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    write_lines(
        home / f".cursor/projects/p/agent-transcripts/{IDS[0]}/subagents/child.jsonl",
        {"role": "user", "message": {"content": [{"type": "text", "text": "of a sub-agent"}]}},
    )
    before = {name: run(capsys, "show", name, "--json")[1] for name in (*IDS, "child")}
    assert run(capsys, "archive", "run") == (0, "✓ 3 sessions archived (2.6 kB), 0 unchanged\n")
    for place in (".cursor", ".config/Cursor"):
        shutil.rmtree(home / place)
    rows = {one["id"]: one for one in json.loads(run(capsys, "list", "--json")[1])}
    assert set(rows) == {*IDS, "child"}
    assert rows["child"]["parent"] == IDS[0]
    for name, shown in before.items():
        assert json.loads(run(capsys, "show", name, "--json")[1])["messages"] == json.loads(shown)["messages"]
