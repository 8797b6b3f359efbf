"""Moving a project, cut off by power, killed and failed at every point.

What must hold in each state: every session is in the old project or in the new one, never in both and never in
part; doing it again does the rest.
"""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import NotFound
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.layouts.amplifier.project_rename import carry_out, plan
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.amplifier.store import SessionStore
from tests.support.faults import Effect, sweep
from tests.support.sweeps import crash_sweep

OLD, NEW = "/home/u/app", "/home/u/work/shop"
IDS = ("one", "two", "gone")
EFFECTS: tuple[Effect, ...] = ("kill", "torn", "short", errno.EIO, errno.ENOSPC)
Setup = Callable[[str], None]


def sessions(home: str, path: str) -> Path:
    return Path(home, "projects", path_slug(path), "sessions")


def setup(home: str) -> None:
    """Two sessions, one of which does not say where it was held, and one in the trash."""
    for name in IDS:
        folder = sessions(home, OLD) / name
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_bytes(said(name))
        (folder / "metadata.json").write_text(
            json.dumps({"session_id": name} | ({} if name == "two" else {"working_dir": f"{OLD}/src"}))
        )
    SessionStore(sessions(home, OLD), durability="none").delete("gone")


def setup_joined(home: str) -> None:
    """The same, where the new project has a session already."""
    setup(home)
    (sessions(home, NEW) / "there").mkdir(parents=True)
    (sessions(home, NEW) / "there" / "transcript.jsonl").write_bytes(said("there"))


def said(name: str) -> bytes:
    return b'{"role": "user", "content": "%s"}\n' % name.encode()


def move(fs: Fs, home: str) -> None:
    try:
        found = plan(home, path_slug(OLD), NEW, old=OLD, fs=fs)
    except NotFound:
        return  # all was done
    carry_out(found, fs=fs)


def places(home: str, path: str) -> dict[str, Path]:
    """Where the folders of sessions lie, by id, the trash included."""
    root = sessions(home, path)
    found = [*root.glob("[!.]*"), *root.glob(".trash/*/*")]
    names = [folder.name for folder in found]
    assert len(set(names)) == len(names), f"a session is stored twice in {path}: {names}"
    return dict(zip(names, found, strict=True))


def check(home: str, acked: tuple[Any, ...]) -> None:
    old, new = places(home, OLD), places(home, NEW)
    new.pop("there", None)
    assert not old.keys() & new.keys(), "a session is in both projects"
    assert {*old, *new} == set(IDS), f"sessions are missing: {sorted({*old, *new})}"
    assert not (acked and old), "it was said that all have moved"
    for name, folder in {**old, **new}.items():
        assert (folder / "transcript.jsonl").read_bytes() == said(name)
        metadata = json.loads((folder / "metadata.json").read_bytes())
        before, after = ({"working_dir": f"{path}/src"} if name != "two" else {} for path in (OLD, NEW))
        assert metadata in (
            [{"session_id": name} | after] if name in new else [{"session_id": name} | kept for kept in (before, after)]
        ), f"{name} says {metadata}"  # fmt: skip
    for folder in {**old, **new}.values():
        pool_of(OS_FS).drop(str(folder))  # the retry runs in a new process
    move(OS_FS, home)
    done = places(home, NEW)
    assert done.keys() - {"there"} == set(IDS)
    assert not sessions(home, OLD).parent.exists()
    assert json.loads((done["one"] / "metadata.json").read_bytes())["working_dir"] == f"{NEW}/src"
    store = SessionStore(sessions(home, NEW), durability="none")
    store.append("one", [{"role": "user", "content": "after", "timestamp": "t"}])
    assert [message["content"] for message in store.load("one")[0]] == ["one", "after"]
    assert store.undo() == "gone"


@pytest.mark.parametrize("begin", [setup, setup_joined])
def test_cut_off_by_power(begin: Setup, tmp_path: Path) -> None:
    def operation(fs: Any) -> None:
        move(fs, fs.root)
        fs.mark("moved")

    report = crash_sweep(begin, operation, check, tmp_path)
    assert report.states > 100
    assert not report.violations, report.describe()


@pytest.mark.parametrize("begin", [setup, setup_joined])
def test_each_call_fails_in_each_way(begin: Setup, tmp_path: Path) -> None:
    def workload(fs: Any, folder: str) -> None:
        move(fs, folder)
        fs.mark("moved")

    report = sweep(begin, workload, check, tmp_path, effects=EFFECTS)
    assert report.states > 100
    assert not report.violations, report.describe()
