"""Names, tags and stars: one file, whatever interrupts its change."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import Invalid
from sessionary.model import SessionRef
from sessionary.workspace.labels import FILE, Label, Labels, tag_of
from tests.support.faults import sweep
from tests.support.recorder import RecordingFs
from tests.support.sweeps import crash_sweep

REF = SessionRef("codex", "one", "/x/one.jsonl")


def name(folder: str, text: str, fs: Fs = OS_FS, ref: SessionRef = REF) -> Label:
    return Labels(fs, folder).change(ref, lambda one: replace(one, name=text))


def test_a_change_returns_the_previous_value(tmp_path: Path) -> None:
    assert name(str(tmp_path), "a").name is None
    assert name(str(tmp_path), "b").name == "a"
    assert Labels(folder=str(tmp_path)).of(REF) == Label("codex", "one", "b")


def test_labels_are_by_kind_and_id(tmp_path: Path) -> None:
    name(str(tmp_path), "a")
    other = SessionRef("pi", "one", "/y/one.jsonl")
    assert Labels(folder=str(tmp_path)).of(other).is_empty


def test_an_equal_change_writes_nothing(tmp_path: Path) -> None:
    name(str(tmp_path), "a")
    before = (tmp_path / FILE).stat().st_ino
    name(str(tmp_path), "a")
    assert (tmp_path / FILE).stat().st_ino == before


def test_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    def many(agent: str) -> None:
        for at in range(10):
            name(str(tmp_path), "x", ref=SessionRef(agent, f"{at}", ""))

    threads = [threading.Thread(target=many, args=(f"agent{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Labels(folder=str(tmp_path)).known()) == 40


@pytest.mark.parametrize(("word", "tag"), [("#bug", "bug"), (" a-b ", "a-b"), ("e\u0301", "é"), ("在", "在")])
def test_the_form_of_a_tag(word: str, tag: str) -> None:
    assert tag_of(word) == tag


@pytest.mark.parametrize("word", ["", "#", "a b", "a,b", "a\x07b"])
def test_what_is_not_a_tag(word: str) -> None:
    with pytest.raises(Invalid):
        tag_of(word)


def _check(folder: str, acked: tuple[Any, ...]) -> None:
    found = Labels(folder=folder).of(REF).name
    assert found in (("new",) if acked else ("old", "new"))
    json.loads(Path(folder, FILE).read_bytes())
    name(folder, "later")
    assert Labels(folder=folder).of(REF).name == "later"


def _work(fs: Any, folder: str) -> None:
    name(folder, "new", fs)
    fs.mark("named")


def test_a_change_that_is_killed_anywhere_leaves_the_old_name_or_the_new(tmp_path: Path) -> None:
    report = sweep(
        lambda folder: name(folder, "old"),
        _work,
        _check,
        tmp_path,
        calls=("write", "rename", "fsync", "open"),
        effects=("kill", "torn"),
    )
    assert report.states > 5
    assert not report.violations, report.describe()


def test_a_name_survives_a_power_cut(tmp_path: Path) -> None:
    def work(fs: RecordingFs) -> None:
        _work(fs, str(fs.root))

    report = crash_sweep(lambda folder: name(folder, "old"), work, _check, tmp_path, limit=2)
    assert report.states > 2
    assert not report.violations, report.describe()
