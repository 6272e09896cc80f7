"""Writes the committed environments anew: `PYTHONPATH=tests python -m interop.cubecl CRATE [FOLDER]`.

CRATE is a folder here, such as `crate-0.12`; its program is built first, which takes minutes.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tempfile
from pathlib import Path

from interop.cubecl.environments import FIXTURES
from interop.cubecl.producer import HERE, programs, write_environment


def main(crate: str, into: Path) -> None:
    """Write the environments of both levels."""
    manifest = (HERE / crate / "Cargo.toml").read_text()
    (version,) = re.findall(r'^cubecl = { version = "=([^"]+)"', manifest, re.MULTILINE)
    built = programs(HERE / crate)
    for level in ("basic", "full"):
        with tempfile.TemporaryDirectory() as folder:
            path = write_environment(built, Path(folder), level)
            with tarfile.open(into / f"{version}-{level}.tar.gz", "w:gz") as archive:
                for ending in ("", "-wal"):
                    archive.add(f"{path}{ending}", path.name + ending)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else FIXTURES)
