"""`sessionary import`: what is printed, what `--json` says, and the exit codes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sessionary.cli import main
from tests.unit.test_import import item, openai_database, trajectory


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def folder(parent: Path, name: str) -> str:
    """A folder to import into: one that is named must exist."""
    (parent / name).mkdir()
    return str(parent / name)


def test_a_trajectory_is_imported_listed_and_exported_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = ["--home", folder(tmp_path, "home")]
    path = str(trajectory(tmp_path))
    assert run(capsys, "import", path, *home) == (0, "run  imported  4 items\n", "")
    assert run(capsys, "import", path, *home) == (0, "run  imported before\n", "")
    code, out, _ = run(capsys, "import", path, *home, "--json")
    assert (code, json.loads(out)) == (
        0,
        {
            "imports": [
                {
                    "path": path,
                    "format": "atif",
                    "sessions": [{"id": "run", "framework": "import", "state": "unchanged", "items": 0}],
                    "problems": [],
                }
            ]
        },
    )
    assert "Fix it" in run(capsys, "search", "Fix", *home)[1]
    first, second = tmp_path / "one.atif.json", tmp_path / "two.atif.json"
    assert run(capsys, "export", "run", "--output", str(first), "--strict", *home)[0] == 0
    assert json.loads(first.read_text("utf-8"))["schema_version"] == "ATIF-v1.8"
    again = ["--home", folder(tmp_path, "again")]
    assert run(capsys, "import", str(first), *again)[0] == 0
    assert run(capsys, "export", "run", "--output", str(second), *again)[0] == 0
    assert first.read_bytes() == second.read_bytes()


def test_what_is_left_out_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = ["--home", folder(tmp_path, "home")]
    path = openai_database(tmp_path, item("a"), "{torn")
    code, out, err = run(capsys, "import", str(path), *home)
    assert (code, out) == (3, "one  imported  1 item\n")
    assert err.startswith(f"{path}: row 2 of agent_messages is not JSON and was not imported")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE agent_messages SET message_data = ? WHERE id = 1", (item("b"),))
    code, out, _ = run(capsys, "import", str(path), *home)
    assert (code, out) == (3, "one  left out: another session of this id is stored, or both have changed\n")
    assert run(capsys, "import", str(tmp_path / "gone.json"), *home)[0] == 10
    (tmp_path / "x.txt").write_text("x")
    code, _, err = run(capsys, "import", str(tmp_path / "x.txt"), *home)
    assert code == 12
    assert "is not JSON" in err
    assert "import ATIF 1.0 to 1.8" in err
    code, _, err = run(capsys, "import", str(tmp_path), *home)
    assert code == 16
    assert f"{tmp_path}: Is a directory\n  a folder is in the place of a file: move it away, or choose" in err
