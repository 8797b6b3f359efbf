"""The files of a small project, to the byte: what we write today is what everybody can read tomorrow."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox
from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.compat_api import (
    load_breadcrumb,
    load_session,
    save_session,
    write_breadcrumb,
)
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore

GOLDEN = Path(__file__).parents[3] / "golden" / "maestro"
PARENT, CHILD, RESULT = (f"{letter * 8}-0000-4000-8000-000000000001" for letter in "abc")
FILES = (
    f"{PARENT}/session.json",
    f"{PARENT}/{CHILD}/session.json",
    f"{PARENT}/breadcrumbs/0/20260301_090001_000000.json",
    f"{PARENT}/breadcrumbs/0/20260301_090001_000001.json",
    f"{PARENT}/log.jsonl",
    f"{PARENT}/attempts.work.jsonl",
)


def at(minute: int) -> Callable[[], datetime]:
    return lambda: datetime(2026, 3, 1, 9, minute, tzinfo=UTC)


def message(number: int) -> Breadcrumb:
    """Both are of one microsecond."""
    crumb = create_breadcrumb(
        prompt="Prüfe die Lizenz 日本",
        response='{"ok": true}',
        tools_called=[
            {
                "tool": "bash",
                "args": {"command": "ls"},
                "result": "a\nb",
                "error": None,
                "timestamp": "2026-03-01T09:00:01",
            }
        ],
        files_modified=[
            {
                "path": "a.py",
                "operation": "modify",
                "diff": None,
                "timestamp": "2026-03-01T09:00:01",
                "size": 5,
            }
        ],
        parent_session_id=None,
        depth_level=0,
        model_used="opus",
        token_count={"input": 120, "output": 30},
        cost=0.00405,
        tags=["licence"],
        payload={"number": number},
    )
    crumb.breadcrumb_id, crumb.timestamp = f"id-{number}", "20260301_090001_000000"
    return crumb


def handle(crumb: Breadcrumb) -> dict[str, Any]:
    if crumb.breadcrumb_id == "id-2":
        raise RuntimeError("no network")
    return {"heard": crumb.prompt, "payload": crumb.payload}


def build(root: Path) -> None:
    ids = iter([PARENT, CHILD, RESULT])
    store = WorkStore.with_fs(OS_FS, root, now=at(0), new_id=lambda: next(ids))
    store.create("work_task", related_entity={"task_id": "T-1", "name": "Fonts"}, purpose="Fönts")
    store.now = at(1)
    store.start_subwork(PARENT, "Check the licence", {"kind": "file", "ref": "fonts.txt"})
    for number in (1, 2):
        store.write_breadcrumb(message(number), PARENT)
    store.now = at(2)
    store.interrupt(CHILD, "power")
    Mailbox.with_fs(OS_FS, root / PARENT, now=at(3)).consume(handle, max_attempts=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "docs" / "sessions"
    build(root)
    return root


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_written_as_it_was_to_the_byte(root: Path, name: str) -> None:
    assert (root / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_nothing_else_is_written_but_locks(root: Path) -> None:
    written = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert {name for name in written if not name.endswith(".lock")} == set(FILES)


def test_the_files_are_read_and_written_back_to_the_byte(tmp_path: Path) -> None:
    for name in FILES[:4]:
        data, copy = (GOLDEN / name).read_bytes(), tmp_path / name
        if name.endswith("session.json"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            session = load_session(copy)
            save_session(session, copy)
            assert copy.read_bytes() == data, "nothing was changed, so nothing is written"
        else:
            written = write_breadcrumb(load_breadcrumb(GOLDEN / name), PARENT, tmp_path)
            assert Path(written) == copy
            assert copy.read_bytes() == data


def test_the_log_of_the_files_acknowledges_their_messages(root: Path) -> None:
    for name in FILES:
        (root / name).write_bytes((GOLDEN / name).read_bytes())
    status = Mailbox(root / PARENT).status()
    assert (status.applied, status.pending, [dead.breadcrumb_id for dead in status.dead]) == (1, 0, ["id-2"])
