"""File systems on which the promises do not hold are recognised by their type and options."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk import mounts
from sessionary.disk.mounts import flushes_links, mount_of, parse_mountinfo, weakness

TABLE = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /dev/shm rw - tmpfs tmpfs rw
40 22 0:40 / /home/ana\040b rw - nfs4 server:/x rw,vers=4.2
41 22 0:41 / /mnt/share rw - fuse.sshfs host: rw
42 22 8:1 / /mnt/stick rw - fuseblk /dev/sdb1 rw
43 22 0:43 / /ctr rw - overlay overlay rw,lowerdir=/l,volatile
44 22 0:44 / /ok rw - overlay overlay rw,lowerdir=/l
45 22 0:45 / /mac rw - virtiofs mac rw
46 22 0:46 / /mac/inner rw - xfs /dev/vdb rw
broken row
"""


@pytest.mark.parametrize(
    ("path", "kind", "word"),
    [
        ("/home/x", "ext4", None),
        ("/home/ana b/sessions", "nfs4", "NFS"),
        ("/home/ana bc", "ext4", None),
        ("/dev/shm/x", "tmpfs", "memory"),
        ("/mnt/share/x", "fuse.sshfs", "fuse.sshfs"),
        ("/mnt/stick/x", "fuseblk", None),
        ("/ctr/x", "overlay", "volatile"),
        ("/ok", "overlay", None),
        ("/mac/x", "virtiofs", "virtiofs"),
        ("/mac/inner/x", "xfs", None),
    ],
)
def test_the_type_of_the_mount_decides(path: Any, kind: Any, word: Any) -> None:
    mount = mount_of(path, parse_mountinfo(TABLE))
    assert mount is not None
    assert mount.kind == kind
    said = mount.weakness() or ""
    assert (said == "") if word is None else (word in said)


def test_a_real_folder_can_be_asked(tmp_path: Any) -> None:
    assert weakness(tmp_path) is None or isinstance(weakness(tmp_path), str)
    assert weakness("/proc/self") is None


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Nothing is known of any folder, before and after."""
    flushes_links.cache_clear()
    yield
    flushes_links.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("/mac/inner/x", None, True),
        ("/dev/shm/x", None, True),
        ("/ok", None, None),
        ("/home/ana b/sessions", None, None),
        ("/home/x", "rw\ndelalloc\ndata=ordered\n", True),
        ("/home/x", "rw\ndelalloc\nnojournal_checksum\n", False),
        ("/home/x", None, None),
    ],
)
def test_whether_the_flush_of_a_folder_brings_along_what_its_names_lead_to(
    path: str, options: str | None, expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "_mount_under", lambda folder: mount_of(folder, parse_mountinfo(TABLE)))
    monkeypatch.setattr(mounts, "_options_of_ext4", lambda device: options)
    assert flushes_links(path, 1) is expected


@pytest.mark.usefixtures("forgotten")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports it")
def test_the_folder_of_an_unknown_mount_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "_mount_under", lambda folder: None)
    assert flushes_links(str(tmp_path), tmp_path.stat().st_dev) is None
    assert mounts._options_of_ext4(0) is None


@pytest.mark.usefixtures("forgotten")
def test_another_file_system_in_the_same_place_is_judged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ["/mac/inner", "/ok"]
    monkeypatch.setattr(mounts, "_mount_under", lambda folder: mount_of(there.pop(0), parse_mountinfo(TABLE)))
    assert [flushes_links("/s", device) for device in (1, 1, 2)] == [True, True, None]
