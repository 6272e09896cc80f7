"""Two real ranks of a torchrun job."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch_store
from run.launching import BIN, OTEL_KERNEL, environment

from server.serving import PROGRAMS, by_rank, report


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of two ranks on CPUs, which share a store."""
    folder = tmp_path_factory.mktemp("torchrun")
    torch_store.copy_to(folder / "store")
    torchrun = [str(BIN / "torchrun"), "--standalone", "--nproc-per-node", "2"]
    changes = {
        **torch_store.environment(folder / "store"),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [OTEL_KERNEL, "run", "--recording", "r.db", "--", *torchrun, str(PROGRAMS / "torch_ranks.py")],
        cwd=folder,
        env={**os.environ, **environment(changes)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return folder / "r.db"


@pytest.fixture(scope="module")
def ranks(recording: Path) -> Any:
    """What `report --by rank --json` says of it."""
    return by_rank(recording)


def named(entries: list[dict[str, Any]], kernel: str) -> list[dict[str, Any]]:
    return [each for each in entries if each["kernel"].partition("[")[0].endswith(f".{kernel}")]


def test_both_ranks_are_there_with_their_world(ranks: Any) -> None:
    assert [(0, 2, 1), (1, 2, 1)] == [
        (rank["rank"], rank["world_size"], rank["processes"]) for rank in ranks["ranks"]
    ]
    assert 0 == ranks["unranked"]["trips"]


def test_a_kernel_that_both_compile_at_once_is_an_overlapping_duplicate(ranks: Any) -> None:
    (found,) = named(ranks["duplicate_compilations"], "together")

    assert [0, 1] == found["compiled"]
    assert found["overlapping"]
    assert found["duplicate_ns"] > 0


def test_a_kernel_that_one_rank_stores_for_the_other_is_none(ranks: Any) -> None:
    first, second = (rank["loaded"] for rank in ranks["ranks"])

    assert [] == named(ranks["duplicate_compilations"], "first")
    assert second > first == 0


def test_the_rank_that_held_the_other_up_is_named(ranks: Any, recording: Path) -> None:
    (found,) = named(ranks["hold_ups"], "late")
    _, text = report(recording, "report", "--by", "rank")

    assert (1, [0], "compiled") == (found["rank"], found["waiting"], found["outcome"])
    assert found["held_up_ns"] > 0
    assert ranks["ranks"][0]["waited_ns"] >= found["held_up_ns"]
    assert "\n    rank 0 waits " in text
