"""Which file systems are shared over a network."""

from __future__ import annotations

import re
from pathlib import Path

_NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "orangefs",
        "smb3",
        "smbfs",
        "wekafs",
    }
)


def network_file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """Return the type of the network file system that holds `path`, or None for a local or unknown one.

    Args:
        path: an absolute path without links.
        mounts: the table of mounts, as Linux writes it.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    point, kind = Path("/"), ""
    for line in lines:
        fields = line.split(" ")
        here = Path(_unescape(fields[1]))
        # The innermost mount holds the file, and of several at one point the last.
        if path.is_relative_to(here) and len(here.parts) >= len(point.parts):
            point, kind = here, fields[2]
    return kind if kind in _NETWORK else None


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda digits: chr(int(digits[1], 8)), field)
