"""Some file systems hand out fewer bytes at a time than they are asked for. That is not the end of a file.

Each reader is asked once over the real file system and once over one that gives a hundred bytes at a time.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary import SessionStore, WorkStore, create_breadcrumb
from sessionary.disk.fs import OS_FS, Fs, read_at
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.turn_marks import read_marks
from sessionary.layouts.summary import summaries
from sessionary.search import Needle, Query, Search, Target
from sessionary.testing.wrapper import WrappedFs

ID = "3f0c81d2-0000-4000-8000-000000000001"
MESSAGES: list[dict[str, Any]] = [
    {"role": role, "content": f"{role} number {number} {'x' * 150}"}
    for number in range(20)
    for role in ("user", "assistant")
]
TORN = b'{"role": "user", "content": "' + b"y" * 300


class _Stingy(WrappedFs):
    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return super().pread(fd, min(length, 100), offset)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SessionStore(tmp_path / "projects" / "-p" / "sessions")
    store.save(ID, MESSAGES, {"session_id": ID, "bundle": "b" * 300})
    return tmp_path


def transcript(home: Path) -> Path:
    return home / "projects" / "-p" / "sessions" / ID / "transcript.jsonl"


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 250, 1000])
def test_all_bytes_come_up_to_the_end(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)))
    fd = OS_FS.open(str(path), 0)
    assert read_at(_Stingy(), fd, length, 3) == bytes(range(256))[3 : 3 + length]
    OS_FS.close(fd)


@pytest.mark.timeout(60)
def test_sessions_are_listed_checked_read_and_found_alike(home: Path) -> None:
    with transcript(home).open("ab") as file:
        file.write(TORN)

    def seen(fs: Fs) -> list[Any]:
        layout = AmplifierLayout(home, fs)
        (ref,) = layout.discover()
        hits = Search(Query((Needle("number 17"),))).hits([Target(ref, layout)])
        return [
            list(summaries(layout)),
            list(layout.check(ref)),
            list(layout.read(ref)),
            [hit.index for hit in hits],
        ]

    assert seen(_Stingy()) == seen(OS_FS)
    assert seen(OS_FS)[3] == [34, 35]


@pytest.mark.timeout(60)
def test_a_torn_record_is_put_aside_whole_and_no_other_with_it(home: Path) -> None:
    path = transcript(home)
    before = path.read_bytes()
    path.write_bytes(before + TORN)
    store = SessionStore.with_fs(_Stingy(), path.parent.parent)
    assert store.load(ID)[0] == SessionStore(path.parent.parent).load(ID)[0]
    store.append(ID, [{"role": "user", "content": "next"}])
    kept = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [one["content"] for one in kept] == [one["content"] for one in MESSAGES] + ["next"]
    (aside,) = path.parent.glob("transcript.jsonl.torn-*")
    assert aside.read_bytes() == TORN


@pytest.mark.timeout(60)
def test_the_turns_of_a_session_are_found_alike(home: Path) -> None:
    marks = read_marks(_Stingy(), str(transcript(home)))
    assert marks == read_marks(OS_FS, str(transcript(home)))
    assert marks.messages == len(MESSAGES)


def test_breadcrumbs_are_read_alike(tmp_path: Path) -> None:
    works = WorkStore(tmp_path / "docs" / "sessions")
    session = works.create("work")
    crumb = create_breadcrumb("p" * 300, "r" * 300, [], [], session.session_id, 0, "m", {})
    works.write_breadcrumb(crumb, session.session_id)

    for fs in (OS_FS, _Stingy()):
        (found,) = WorkStore.with_fs(fs, works.root).list_breadcrumbs(session.session_id)
        assert (found.prompt, found.response) == (crumb.prompt, crumb.response)
