"""Detects file systems on which SQLite's locks are not reliable."""

from __future__ import annotations

import re
from pathlib import Path

#: NFS, CIFS, Lustre, GPFS, AFS, FUSE and their relatives: SQLite's locks do not work there
#: (``docs/htcondor-admins.rst``, "Homes on a network file system").
NETWORK_TYPES = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "gfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
    }
)

#: The kernel's list of this process's mounts (proc(5), "/proc/pid/mountinfo").
MOUNTINFO = Path("/proc/self/mountinfo")

_OCTAL = re.compile(r"\\([0-7]{3})")


def network_filesystem(path: Path, mountinfo: Path = MOUNTINFO) -> str | None:
    """Return the type of the network file system that ``path`` is on, or None.

    Symbolic links are followed; parts of the path may be missing. Without ``/proc`` the result is
    None; then only the ledger's own locks protect it.
    """
    try:
        lines = mountinfo.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best: tuple[int, str] = (-1, "")
    for line in lines:
        mount = _parse(line)
        if mount is None:
            continue
        point, kind = mount
        depth = len(point.parts)
        # Of two mounts on the same point, the later line is the visible one.
        if depth >= best[0] and target.is_relative_to(point):
            best = (depth, kind)
    kind = best[1]
    return kind if kind in NETWORK_TYPES or kind.startswith("fuse") else None


def _parse(line: str) -> tuple[Path, str] | None:
    """Return the mount point and the type in a line of mountinfo."""
    fields = line.split(" ")
    try:
        separator = fields.index("-", 6)
        point, kind = fields[4], fields[separator + 1]
    except (ValueError, IndexError):
        return None
    return Path(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), point)), kind
