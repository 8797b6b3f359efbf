"""A removal that was cut off is finished, and blocks nothing else."""

import os
from pathlib import Path

import pytest

from sessionary.cli.sync import places
from sessionary.errors import Locked
from sessionary.sync.settings import Settings
from sessionary.workspace import sync_watch, syncing
from tests.support.memory_remote import MemoryRemote, MemoryServer


class Slow(MemoryRemote):
    settled_after = 30.0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Settings(remote="s3://bucket", tenant="me", device="here")


def remote() -> Slow:
    return Slow(MemoryServer(), "me")


def open_run(settings: Settings) -> Path:
    folder = Path(syncing.removed(settings).folder)
    folder.mkdir(parents=True)
    (folder / "open").write_text("20250131T120000.000000Z")
    return folder


def test_it_is_finished_after_a_wait(settings: Settings) -> None:
    folder, slept = open_run(settings), list[float]()
    places.finish_removal(settings, remote(), slept.append)
    assert slept == [40.0]
    assert not (folder / "open").exists()


def test_what_cannot_be_read_is_reported_and_stops_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(syncing.removed(settings).folder)
    os.makedirs(folder / "open")  # no file
    places.finish_removal(settings, remote())
    assert "an interrupted removal is not finished" in capsys.readouterr().err


def test_a_watch_that_is_stopped_leaves_it_to_the_next(settings: Settings) -> None:
    folder = open_run(settings)
    with sync_watch.Stop() as stop:
        stop.set()

        def rest(seconds: float) -> None:
            sync_watch._rest(stop, seconds)

        with pytest.raises(Locked):
            rest(30.0)
        places.finish_removal(settings, remote(), rest)
    assert (folder / "open").exists()
