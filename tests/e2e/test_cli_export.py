"""`sessionary export`: what is printed and written, what is refused, and that no planted secret remains."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.export import FORMATS
from tests.e2e.driving import documented

ID = "3f0c81d2-0000-4000-8000-000000000001"
SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowPLANTED\n-----END RSA PRIVATE KEY-----",
    "AWS access key": "AKIA" + "PLAN" * 4,
    "GitHub token": "ghp_" + "p1" * 18,
    "OpenAI key": "sk-proj-" + "Pl4n" * 8,
    "Anthropic key": "sk-ant-api03-" + "Pl4n" * 8,
    "Google key": "AIza" + "p" * 35,
    "Slack token": "xoxb-1234567890-planted",
    "Stripe key": "sk_live_" + "p" * 24,
    "JSON web token": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2Q",
    "header": "Authorization: Basic cGxhbnRlZDpwbGFudGVk",
    "address": "postgres://app:pl4nted@db/x",
    "environment": "DB_PASS='planted two'",
    "path": "/Users/planted/Desktop",
}
FOUND = (
    "PLANTED",
    "PLAN" * 2,
    "p1p1",
    "Pl4n",
    "p" * 20,
    "1234567890",
    "SflKx",
    "cGxhbn",
    "pl4nted",
    "planted",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "SESSIONARY_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number > 1 else None,
        "timestamp": f"2026-03-01T09:{number:02}:00Z", "message": {"role": kind, "content": content}, **more,
    }  # fmt: skip


def talk(home: Path, *records: dict[str, Any], name: str = ID, project: str = "-w") -> Path:
    path = home / ".claude" / "projects" / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def everywhere(secret: str) -> list[dict[str, Any]]:
    """Records with a secret at every place that is exported."""
    nested = json.dumps({"k": json.dumps({"deep": [secret]})})
    escaped = "".join(f"\\u{ord(char):04x}" if char.isalnum() else json.dumps(char)[1:-1] for char in secret)
    call = {
        "command": secret,
        secret: {"list": [{"deeper": secret}]},
        "json": nested,
        "cut": f'{{"a": "{escaped}',
    }
    return [
        record(1, "user", f"say {secret} now", cwd=f"/Users/planted/{secret}", gitBranch=secret),
        record(2, "assistant", [
            {"type": "thinking", "thinking": secret}, {"type": "text", "text": f"`{secret}`"},
            {"type": "tool_use", "id": f"t {secret}", "name": f"Bash {secret}", "input": call},
        ]),
        record(3, "user", [{"type": "tool_result", "tool_use_id": f"t {secret}", "content": [
            {"type": "text", "text": secret}, {"type": "image", "source": {"data": secret}}]}]),
        {"type": f"new {secret}", "timestamp": "2026-03-01T09:05:00Z", "data": {secret: nested}},
        {"type": "custom-title", "customTitle": f"Title {secret}", "sessionId": ID},
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SECRETS)
def test_no_planted_secret_remains(
    home: Path, capsys: pytest.CaptureFixture[str], name: str, form: str
) -> None:
    path = talk(home, *everywhere(SECRETS[name]), project="-Users-planted-app")
    talk(home, *everywhere(SECRETS[name]), name="agent-1", project=f"-Users-planted-app/{ID}/subagents")
    with path.open("a") as file:
        file.write('{"type": "us')
    assert main(["export", ID, "--format", form, "--redact", "--branches"]) == 0
    printed = capsys.readouterr()
    both = printed.out + printed.err
    assert [mark for mark in FOUND if mark in both] == []
    assert "masked: " in printed.err
    assert main(["export", ID, "--format", form]) == 0
    printed = capsys.readouterr()
    assert any(mark in printed.out for mark in FOUND), "without --redact it is there"


def test_a_secret_that_a_title_cuts_is_not_in_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cut in range(1, 40):
        talk(home, record(1, "user", "x" * (198 - cut) + " " + SECRETS["GitHub token"]))
        assert main(["export", ID, "--redact"]) == 0
        assert "p1p1" not in capsys.readouterr().out, cut


def test_the_same_secret_has_the_same_mark(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, *everywhere(SECRETS["GitHub token"]))
    assert main(["export", ID, "--redact", "--output", "out.json", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["exports"][0]
    assert set(re.findall(r"\[redacted: GitHub[^\]]*\]", Path("out.json").read_text("utf-8"))) == {
        "[redacted: GitHub token 1]"
    }
    masked = {one["rule"]: one["count"] for one in report["masked"]}
    assert masked["GitHub token"] > 10


@pytest.mark.parametrize("form", FORMATS)
def test_the_blob_key_is_always_masked(home: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    text = json.dumps({"blobEncryptionKey": "s3cr3t-key"})
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "x",
        "input": {"blobEncryptionKey": "s3cr3t-key", "t": text},
    }
    talk(
        home,
        record(1, "user", text),
        record(2, "assistant", [call]),
        {"type": "n", "blobEncryptionKey": "s3cr3t-key"},
    )
    assert main(["export", ID, "--format", form]) == 0
    printed = capsys.readouterr()
    assert "s3cr3t" not in printed.out
    assert "[redacted: " in printed.out
    assert main(["export", ID, "--format", form, "--redact"]) == 0
    assert "s3cr3t" not in capsys.readouterr().out


def test_rules_of_the_user(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, record(1, "user", "KD-123 and ada@example.org"))
    (home / "my.toml").write_text("[rules]\ncustomer = 'KD-\\d+'\n\"mail address\" = true\n")
    assert main(["export", ID, "--redact", "--rules", "my.toml"]) == 0
    assert "> [redacted: customer 1] and [redacted: mail address 1]" in capsys.readouterr().out
    config = home / ".config" / "sessionary"
    config.mkdir(parents=True)
    (home / "my.toml").rename(config / "redaction.toml")
    assert main(["export", ID, "--redact"]) == 0
    assert "[redacted: customer 1]" in capsys.readouterr().out
    assert main(["export", ID, "--redact", "--rules", "gone.toml"]) == 10
    assert main(["export", ID, "--rules", "my.toml"]) == 2


def test_files_are_written_and_never_replaced(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, record(1, "user", "Go"), record(2, "assistant", "Done"))
    assert main(["export", ID[:8], "--output", "out/one.html"]) == 0
    assert capsys.readouterr().out == "out/one.html  2 messages\n"
    assert Path("out/one.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert os.stat("out/one.html").st_mode & 0o777 == 0o600
    assert main(["export", ID, "--output", "out/one.html"]) == 11
    assert "give --force" in capsys.readouterr().err
    assert main(["export", ID, "--output", "out/one.html", "--format", "jsonl", "--force"]) == 0
    assert len(Path("out/one.html").read_text("utf-8").splitlines()) == 2
    assert main(["export", ID, "--output", "/dev/null", "--force"]) == 12
    assert main(["export", ID, "--output", ""]) == 2
    assert os.listdir("out") == ["one.html"]


def test_several_sessions_go_into_a_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [talk(home, record(1, "user", "Go"), name=name) for name in (ID, "strange name; rm -rf", "..x")]
    assert main(["export", "--output", "all/", *map(str, [ID, *paths[1:]])]) == 0
    names = sorted(os.listdir("all"))
    assert len(names) == 3
    assert all(re.fullmatch(r"(claude_code|file)-[A-Za-z0-9._-]+\.md", name) for name in names)
    assert main(["export", ID, str(paths[1])]) == 2
    Path("all", names[-1]).unlink()
    assert main(["export", "--output", "all", *map(str, [ID, *paths[1:]])]) == 11, "two of them are there"
    assert len(os.listdir("all")) == 2, "so the third is not written either"


def test_strict_fails_with_its_exit_code(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, record(1, "user", [{"type": "text", "text": "See"}, {"type": "image", "source": {}}]))
    assert main(["export", ID, "--strict", "--output", "out.md"]) == 18
    assert "image" in capsys.readouterr().err
    assert not Path("out.md").exists()
    assert main(["export", ID, "--strict", "--output", "out.md", "--json"]) == 18
    assert json.loads(capsys.readouterr().err)["details"]["losses"][0]["what"] == "image"
    assert main(["export", ID, "--output", "out.md"]) == 0
    assert "not exported: 1 × image" in capsys.readouterr().err


def test_the_fields_of_json_are_documented(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, record(1, "user", [{"type": "image", "source": {}}]))
    assert main(["export", ID, "--output", "out.md", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) | set(document["exports"][0]) <= documented("sessionary export")[0]
    assert main(["export", ID, "--json"]) == 2


def test_nothing_is_printed_before_an_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "missing"]) == 10
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_of_which_nothing_can_be_read_is_an_error(
    home: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    notes = home / "notes.txt"
    notes.write_text("Not JSON.\nAt all.\n")
    assert main(["export", "./notes.txt", "--format", form]) == 13
    out, err = capsys.readouterr()
    assert (out, str(notes.name) in err) == ("", True)
    assert main(["export", "./notes.txt", "--format", form, "--output", "kept"]) == 13
    assert not (home / "kept").exists()
