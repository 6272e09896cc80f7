"""Builds the CubeCL programs of this folder and runs them.

A build is kept outside the tree, by what it is made of: cold it takes minutes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
CRATE: Final = HERE / "crate-0.12"

BUILD_SECONDS: Final = 3600
"""For `pytest.mark.timeout` of whatever may have to build first."""

_DRIVER: Final = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
"""Mesa's Vulkan on the CPU, so that no GPU is needed and none is used."""

_PACKAGES: Final = ("mesa-vulkan-drivers", "libvulkan1")


@dataclass(frozen=True)
class Programs:
    """What was built."""

    first: Path
    """The program that writes environments."""
    second: Path
    """The same, built once more with the same kernels."""
    reads: Path
    """The test that reads an environment through CubeCL."""


def programs(crate: Path = CRATE) -> Programs:
    """Return the built programs; skip the test where they cannot be built."""
    _need(shutil.which("cargo") is not None, "CubeCL's programs are built with cargo, which is not installed")
    _install_vulkan()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-kernel" / "cubecl"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / _digest(crate)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _build(crate, folder)
    return Programs(folder / "first", folder / "second", folder / "reads")


def _need(condition: bool, reason: str) -> None:
    if condition:
        return
    if os.environ.get("OTEL_KERNEL_REQUIRE_ALL"):
        pytest.fail(reason)
    pytest.skip(reason)


def _install_vulkan() -> None:
    if Path(_DRIVER).exists():
        return
    _need(
        os.geteuid() == 0 and shutil.which("apt-get") is not None,
        f"{' and '.join(_PACKAGES)} are not installed",
    )
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *_PACKAGES]):
        subprocess.run(["apt-get", "--quiet", *command], check=True, capture_output=True)


def _digest(crate: Path) -> str:
    digest = hashlib.sha256(subprocess.run(["rustc", "-V"], check=True, capture_output=True).stdout)
    for path in sorted([*crate.glob("Cargo.*"), *HERE.glob("src/*.rs"), *HERE.glob("tests/*.rs")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


def _build(crate: Path, folder: Path) -> None:
    target, made = folder.with_suffix(".target"), folder.with_suffix(".new")
    made.mkdir(exist_ok=True)
    started = time.monotonic()
    for build in ("first", "second"):
        _keep(_cargo(crate, target, build, "producer", "build"), made / build)
    _keep(_cargo(crate, target, "first", "reads", "test", "--no-run", "--test", "reads"), made / "reads")
    (made / "seconds").write_text(f"{time.monotonic() - started:.0f}\n")
    made.rename(folder)
    shutil.rmtree(target)


def _cargo(crate: Path, target: Path, build: str, name: str, *command: str) -> Path:
    """Run cargo and return the executable with this name."""
    done = subprocess.run(
        ["cargo", *command, "--locked", "--message-format", "json-render-diagnostics"],
        cwd=crate,
        env={**os.environ, "CARGO_TARGET_DIR": str(target), "PRODUCER_BUILD": build},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = [json.loads(line) for line in done.stdout.splitlines()]
    (program,) = [
        each["executable"] for each in made if each.get("executable") and each["target"]["name"] == name
    ]
    return Path(program)


def _keep(program: Path, path: Path) -> None:
    shutil.copy(program, path)
    subprocess.run(["strip", path], check=True)


def configure(
    folder: Path, level: str = "basic", name: str = "shop", keep_sessions: int | None = None
) -> Path:
    """Write the configuration of the programs that run in `folder`, and return their environment."""
    kept = "" if keep_sessions is None else f"keep_sessions = {keep_sessions}\n"
    (folder / "cubecl.toml").write_text(
        "[compilation]\ncache = true\n\n"
        f'[environment]\nname = "{name}"\npath = {{ directory = "environments" }}\n\n'
        f'[environment.records]\nlevel = "{level}"\n{kept}'
    )
    return folder / "environments" / f"{name}.db"


def variables() -> Mapping[str, str]:
    """Return the environment variables of a program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUBECL_")}
    return {**kept, "VK_DRIVER_FILES": _DRIVER, "VK_ICD_FILENAMES": _DRIVER}


def run(program: Path, folder: Path, *steps: str) -> None:
    """Run a program to its end."""
    done = subprocess.run(
        [program, *steps], cwd=folder, env=variables(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def start(program: Path, folder: Path, *steps: str) -> subprocess.Popen[str]:
    """Start a program that waits at each `line:`."""
    return subprocess.Popen(
        [program, *steps],
        cwd=folder,
        env=variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def go_on(process: subprocess.Popen[str]) -> None:
    """Let a program that waits go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait(process: subprocess.Popen[str]) -> None:
    """Wait until a program waits."""
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"


STEPS: Final = (
    ("label:models build shop", "mark:load weights", "scale:2", "shift:3", "end:", "tune:64", "memory:model loaded", "scale:2", "staged:5"),
    ("label:second build", "scale:2", "staged:5"),
    ("label:second build again", "scale:2", "shift:9", "staged:5"),
)  # fmt: skip
"""What the programs of the committed environments did: the first build once, then the second one twice."""


def write_environment(built: Programs, folder: Path, level: str) -> Path:
    """Write an environment as those that are committed were written, and return it."""
    path = configure(folder, level)
    for program, steps in zip((built.first, built.second, built.second), STEPS, strict=True):
        run(program, folder, *steps)
    return path
