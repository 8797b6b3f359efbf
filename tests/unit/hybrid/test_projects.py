"""Stores of folders without a repository: two of one name do not share their sessions, and none waits for a user."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessionary import HybridSessionStore
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.sync.bindings import identities_in
from sessionary.sync.remote import heads_of
from tests.support.memory_remote import MemoryServer
from tests.unit.hybrid.conftest import META, say

Open = Callable[[Path], HybridSessionStore]


@pytest.fixture
def opened(server: MemoryServer) -> Iterator[Open]:
    stores = []

    def make(folder: Path) -> HybridSessionStore:
        """The store of a project in a folder; the machine is the folder above its parent."""
        folder.mkdir(parents=True, exist_ok=True)
        machine = folder.parents[1]
        sessions = machine / "home" / "projects" / path_slug(str(folder)) / "sessions"
        store = HybridSessionStore(sessions, remote=server.remote, state_dir=machine / "state")
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


def keep(store: HybridSessionStore, session: str) -> None:
    store.save(session, say(session), {**META, "session_id": session})
    assert asyncio.run(store.sync()).pushed == 1


def pulled(store: HybridSessionStore) -> set[str]:
    report = asyncio.run(store.pull())
    assert (report.held_back, report.errors) == (0, [])
    return set(store.list_sessions(top_level_only=False))


def test_two_folders_of_one_name_do_not_get_the_sessions_of_one_another(
    tmp_path: Path, opened: Open, server: MemoryServer
) -> None:
    work, play = opened(tmp_path / "one/work/app"), opened(tmp_path / "one/play/app")
    keep(work, "w")
    keep(play, "p")
    assert pulled(work) == {"w"}
    assert pulled(play) == {"p"}
    assert len(set(identities_in(heads_of(server.remote())))) == 2


def test_a_second_machine_has_the_sessions_of_its_only_folder_of_that_name(
    tmp_path: Path, opened: Open
) -> None:
    keep(opened(tmp_path / "one/work/app"), "w")
    assert pulled(opened(tmp_path / "two/code/app")) == {"w"}


def test_a_folder_that_may_be_two_projects_becomes_one_of_its_own_without_waiting(
    tmp_path: Path, opened: Open, server: MemoryServer
) -> None:
    keep(opened(tmp_path / "one/work/app"), "w")
    keep(opened(tmp_path / "one/play/app"), "p")
    elsewhere = opened(tmp_path / "two/code/app")
    assert pulled(elsewhere) == set()
    keep(elsewhere, "e")
    assert pulled(elsewhere) == {"e"}
    assert len(set(identities_in(heads_of(server.remote())))) == 3


def test_other_folders_of_the_home_count_though_no_store_was_opened_there(
    tmp_path: Path, opened: Open
) -> None:
    keep(opened(tmp_path / "one/work/app"), "w")
    other = tmp_path / "two/other/app"
    other.mkdir(parents=True)
    (tmp_path / "two/home/projects" / path_slug(str(other)) / "sessions").mkdir(parents=True)
    assert pulled(opened(tmp_path / "two/code/app")) == set()
