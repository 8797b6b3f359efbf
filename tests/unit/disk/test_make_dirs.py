"""Folders that cannot be made are reported, and never tried for ever."""

from pathlib import Path

import pytest

from sessionary.disk.fs import OS_FS, make_dirs


def test_a_link_to_a_missing_disk_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(tmp_path / "unmounted" / "disk")
    with pytest.raises(FileNotFoundError):
        make_dirs(OS_FS, str(tmp_path / "home" / "projects" / "one"))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_folder_within_which_others_are_made_is_not_made_itself(tmp_path: Path) -> None:
    top = tmp_path / "top"
    with pytest.raises(FileNotFoundError):
        make_dirs(OS_FS, str(top / "a" / "b"), within=str(top))
    assert list(tmp_path.iterdir()) == []
    top.mkdir()
    assert make_dirs(OS_FS, str(top / "a" / "b"), within=str(top)) is True
    assert (top / "a" / "b").is_dir()


def test_missing_parents_are_created_and_existing_ones_used(tmp_path: Path) -> None:
    wanted = tmp_path / "a" / "b" / "c"
    assert make_dirs(OS_FS, str(wanted)) is True
    assert make_dirs(OS_FS, str(wanted)) is False
    assert wanted.is_dir()
