"""Which paths lie on network file systems."""

from pathlib import Path

import pytest

from boinc_gahp.ledger.opening import network_filesystem

# Lines as in proc(5); the optional fields before the "-" vary in number.
MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:20 - nfs4 filer:/home rw,vers=4.2
31 30 8:2 / /home/scratch rw,relatime - xfs /dev/sdb1 rw
32 22 0:41 / /mnt/with\\040space rw master:3 propagate_from:2 - cifs //filer/share rw
33 22 0:42 / /lustre rw - lustre mgs:/fs rw
34 22 0:43 / /sshfs rw - fuse.sshfs me@host: rw
35 22 0:44 / /gpfs rw - gpfs fs0 rw
36 22 0:45 / /afs rw - afs none rw
37 22 0:46 / /over rw - nfs filer:/over rw
37 22 0:49 / /srv rw - nfs filer:/srv rw
38 37 0:47 / /over rw - tmpfs tmpfs rw
a line that is none
39 22 0:48 /
"""


@pytest.fixture
def mountinfo(tmp_path):
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/home/me/.local/state", "nfs4", id="nfs4"),
        pytest.param("/srv/state", "nfs", id="nfs"),
        pytest.param("/home", "nfs4", id="the mount point itself"),
        pytest.param("/homework", None, id="a name that only begins like it"),
        pytest.param("/home/scratch/me", None, id="a local disk below it"),
        pytest.param("/mnt/with space/x", "cifs", id="cifs, with a space in its name"),
        pytest.param("/lustre/x", "lustre", id="lustre"),
        pytest.param("/sshfs/x", "fuse.sshfs", id="fuse"),
        pytest.param("/gpfs/x", "gpfs", id="gpfs"),
        pytest.param("/afs/x", "afs", id="afs"),
        pytest.param("/over/x", None, id="a local file system mounted over nfs"),
        pytest.param("/var/lib", None, id="the root file system"),
    ],
)
def test_the_deepest_mount_decides(path, kind, mountinfo):
    assert network_filesystem(Path(path), mountinfo) == kind


def test_links_are_followed(tmp_path, mountinfo):
    (tmp_path / "link").symlink_to("/lustre/me")
    assert network_filesystem(tmp_path / "link" / "state", mountinfo) == "lustre"


def test_without_proc_nothing_is_a_network_file_system(tmp_path):
    assert network_filesystem(tmp_path, tmp_path / "absent") is None


def test_the_real_mountinfo_can_be_read():
    network_filesystem(Path("/proc"))
