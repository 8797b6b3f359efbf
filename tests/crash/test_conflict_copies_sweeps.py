"""Bringing in conflict copies, cut off by power, killed and failed at every point.

What must hold in each state: every message is in some file of the project, nothing is there in part under the name of a
session's file, and doing it again does the rest.
"""

import errno
import json
from pathlib import Path
from typing import Any

from sessionary.disk.fs import OS_FS, Fs
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.conflict_copies import bring_in
from tests.support.faults import Effect, sweep
from tests.support.sweeps import crash_sweep

ID = "one"
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
TEXTS = ("first", "second", "goes on", "otherwise")


def sessions(home: str) -> Path:
    return Path(home, "projects", "-p", "sessions")


def said(*texts: str) -> bytes:
    return b"".join(b'{"role":"user","content":"%s"}\n' % text.encode() for text in texts)


def setup(home: str) -> None:
    """A session, a copy that continues it with its metadata, and a copy that is another conversation."""
    folder = sessions(home) / ID
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(said("first", "second"))
    (folder / "metadata.json").write_text(json.dumps({"session_id": ID, "name": "here"}))
    (folder / "transcript (1).jsonl").write_bytes(said("first", "second", "goes on"))
    (folder / "metadata (1).json").write_text(json.dumps({"session_id": ID, "name": "there", "tag": "t"}))
    (folder / "transcript (2).jsonl").write_bytes(said("first", "otherwise"))


def bring(fs: Fs, home: str) -> None:
    bring_in(
        AmplifierSyncLayout(Path(home), fs),
        SessionRef("amplifier", ID, str(sessions(home) / ID), "-p"),
        fs=fs,
    )


def texts_in(path: Path) -> list[str]:
    return [json.loads(line)["content"] for line in path.read_bytes().splitlines()]


def check(home: str, acked: tuple[Any, ...]) -> None:
    folder = sessions(home) / ID
    assert texts_in(folder / "transcript.jsonl") in (["first", "second"], ["first", "second", "goes on"])
    everything = b"".join(path.read_bytes() for path in sessions(home).rglob("*") if path.is_file())
    assert all(text.encode() in everything for text in TEXTS)
    for other in sessions(home).glob("[!.]*"):
        assert isinstance(json.loads((other / "metadata.json").read_bytes()), dict), "a document in part"
    pool_of(OS_FS).drop(str(folder))  # doing it again is a new process
    bring(OS_FS, home)
    assert texts_in(folder / "transcript.jsonl") == ["first", "second", "goes on"]
    merged = json.loads((folder / "metadata.json").read_bytes())
    assert merged["tag"] == "t"
    (other,) = (path for path in sessions(home).glob("[!.]*") if path.name != ID)
    assert texts_in(other / "transcript.jsonl") == ["first", "otherwise"]
    metadata = json.loads((other / "metadata.json").read_bytes())
    assert (metadata["session_id"], metadata["parent_id"]) == (other.name, ID)
    assert not [path.name for path in folder.iterdir() if path.name.endswith((").jsonl", ").json"))]


def test_cut_off_by_power(tmp_path: Path) -> None:
    def operation(fs: Any) -> None:
        bring(fs, fs.root)
        fs.mark("brought in")

    report = crash_sweep(setup, operation, check, tmp_path)
    assert report.states > 50
    assert not report.violations, report.describe()


def test_each_call_fails_in_each_way(tmp_path: Path) -> None:
    def workload(fs: Any, folder: str) -> None:
        bring(fs, folder)
        fs.mark("brought in")

    report = sweep(setup, workload, check, tmp_path, effects=EFFECTS)
    assert report.states > 50
    assert not report.violations, report.describe()
