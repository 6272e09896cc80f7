"""What is said of a kernel after each change of the table, by the real runtimes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from explain.changes import CHANGES, Change
from explain.worlds import KERNELS, World, name_of, why_no_disk
from otel_kernel.report.explanation import explain_kernel
from otel_kernel.report.opening import opened_recording
from otel_kernel.report.why import Reason, Why

FIRST, SECOND = f"{1:032x}", f"{2:032x}"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs that have run once."""
    return tmp_path_factory.mktemp("worlds")


def after_one_run(change: Change, worlds: Path) -> World:
    """Return the program of a change after its first run, which several changes share."""
    world, saved = World(worlds / change.runtime, change.runtime), worlds / name_of(change)
    if not saved.exists():
        world.make()
        world.run(1, change, {}, is_older=change.older)
        world.save(saved)
    world.restore(saved)
    return world


@cache
def disk() -> str | None:
    return why_no_disk()


def changes() -> list[object]:
    return [pytest.param(change, id=f"{change.runtime}: {change.what}") for change in CHANGES]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("change", changes())
def test_a_change_is_told(change: Change, worlds: Path) -> None:
    if change.is_full and disk():
        pytest.skip(str(disk()))
    world = after_one_run(change, worlds)
    world.run(2, change, world.change(change), is_older=change.stays_old)

    with opened_recording(world.recording) as connection:
        explanation = explain_kernel(connection, KERNELS[change.runtime], SECOND, "r.db")

    reasons = [trip.why for trip in explanation.trips]
    if change.reason is None:
        assert ([], 1) == (reasons, explanation.loaded), reasons
        return
    (why,) = reasons
    assert isinstance(why, Why)
    assert change.reason == why.reason.value, why
    assert set(change.parts) <= {part.name for part in why.differing}, why
    assert change.detail in (why.detail or ""), why
    if change.runtime == "jax" and "module" in change.parts:
        assert explanation.trips[0].ir_difference, "JAX's texts are kept"


def test_no_answer_of_the_table_is_unknown() -> None:
    reasons = {change.reason for change in CHANGES}

    assert Reason.UNKNOWN.value not in reasons
    assert {None, *(reason.value for reason in Reason)} >= reasons
    assert 20 <= len(CHANGES)
    assert {"numba", "jax", "triton", "torch"} == {change.runtime for change in CHANGES}
