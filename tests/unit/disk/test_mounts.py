"""File systems on which the promises do not hold are recognised by their type and options."""

from typing import Any

import pytest

from sessionary.disk.mounts import mount_of, parse_mountinfo, weakness

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
