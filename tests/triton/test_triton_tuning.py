"""A round of tuning is one span around the trips of its candidates."""

# Triton has no types that say enough.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton_kernels as kernels
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode
from telemetry import Telemetry
from triton_device import TELLS_OF_LAUNCHES, floats

from otel_kernel import semconv
from otel_kernel.records import Abandoned, CompilationOutcome


def named(telemetry: Telemetry, verb: str) -> list[ReadableSpan]:
    return [span for span in telemetry.spans if span.name.startswith(f"{verb} ")]


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def tuner(*configurations: triton.Config, **options: Any) -> Any:
    return triton.autotune(list(configurations), key=[], **options)(kernels.scale)


def sizes(*each: int) -> list[triton.Config]:
    return [triton.Config({"size": size}) for size in each]


def two_candidates() -> list[triton.Config]:
    """Return candidates that differ in what no kernel has as a parameter."""
    no_constants: dict[str, int] = {}
    return [triton.Config(no_constants, num_warps=1), triton.Config(no_constants, num_warps=2)]


def test_a_round_is_a_span_around_its_trips(triton_telemetry: Telemetry) -> None:
    tuned = tuner(*sizes(32, 64, 128))
    for _ in range(2):
        tuned[(1,)](floats(128))

    (tune,) = named(triton_telemetry, "tune")
    trips = named(triton_telemetry, "compile")
    assert tune.attributes is not None
    assert "tune triton_kernels.scale" == tune.name
    assert "parent" == tune.attributes[semconv.ROLE]
    assert semconv.OUTCOME not in tune.attributes
    assert StatusCode.UNSET is tune.status.status_code
    assert [id_of(tune)] * 3 == [parent_of(span) for span in trips]
    assert [CompilationOutcome.COMPILED] * 3 == [trip.outcome for trip in triton_telemetry.trips]
    assert triton_telemetry.spans[-1] is tune


def test_a_candidate_that_is_discarded_is_no_failure(triton_telemetry: Telemetry) -> None:
    kernels.tuned[(1,)](floats(128))
    kernels.tuned.cache.clear()

    discarded = triton_telemetry.trips[-1]
    (tune,) = named(triton_telemetry, "tune")
    assert [None, None, Abandoned.TUNING] == [trip.abandoned for trip in triton_telemetry.trips]
    assert (None, None) == (discarded.outcome, discarded.error_type)
    assert {StatusCode.UNSET} == {span.status.status_code for span in triton_telemetry.spans}
    assert StatusCode.UNSET is tune.status.status_code


@pytest.mark.skipif(not TELLS_OF_LAUNCHES, reason="3.4 does not tell that a launch goes on")
def test_a_candidate_that_cannot_be_loaded_is_no_failure(triton_telemetry: Telemetry, device: Any) -> None:
    device.threads = 128
    tuned = tuner(triton.Config({"size": 64}, num_warps=4), triton.Config({"size": 64}, num_warps=8))
    tuned[(1,)](floats(64))

    well, discarded = triton_telemetry.trips
    assert (CompilationOutcome.COMPILED, None) == (well.outcome, discarded.outcome)
    assert Abandoned.TUNING is discarded.abandoned


def test_a_candidate_that_ptxas_refuses_is_no_failure(
    triton_telemetry: Telemetry, capfd: pytest.CaptureFixture[str]
) -> None:
    tuned = triton.autotune(two_candidates(), key=[])(kernels.unassembled)
    with pytest.raises(Exception, match="PTXAS"):
        tuned[(1,)](floats(1))
    capfd.readouterr()  # Triton prints all of the PTX

    # Both candidates are discarded, and the launch of the one that is chosen all the same is outside of it.
    assert [Abandoned.TUNING, Abandoned.TUNING, None] == [trip.abandoned for trip in triton_telemetry.trips]
    assert "triton.runtime.errors.PTXASError" == triton_telemetry.trips[2].error_type


def test_what_the_tuner_does_not_discard_fails_the_round(triton_telemetry: Telemetry) -> None:
    from triton.compiler.errors import CompilationError

    tuned = triton.autotune(two_candidates(), key=[])(kernels.undefined)
    with pytest.raises(CompilationError):
        tuned[(1,)](floats(1))

    (tune,) = named(triton_telemetry, "tune")
    assert StatusCode.ERROR is tune.status.status_code
    assert tune.attributes is not None
    assert "triton.compiler.errors.CompilationError" == tune.attributes["error.type"]
    assert ["triton.compiler.errors.CompilationError"] == [trip.error_type for trip in triton_telemetry.trips]


def test_two_rounds_are_two_spans(triton_telemetry: Telemetry) -> None:
    for _ in range(2):
        tuner(*sizes(32, 64))[(1,)](floats(64))

    assert 2 == len(named(triton_telemetry, "tune"))


def test_a_round_inside_of_another_is_a_span_inside(triton_telemetry: Telemetry) -> None:
    inner = triton.autotune(two_candidates(), key=[])(kernels.modal)

    def launch_inner(*_: object, **__: object) -> None:
        inner[(1,)](floats(1), mode=1)

    outer = tuner(*sizes(32, 64), pre_hook=launch_inner)
    outer[(1,)](floats(64))

    inside, around = named(triton_telemetry, "tune")
    assert ("tune triton_kernels.modal", "tune triton_kernels.scale") == (inside.name, around.name)
    assert id_of(around) == parent_of(inside)
    assert {id_of(around), id_of(inside)} == {parent_of(span) for span in named(triton_telemetry, "compile")}


def test_what_was_tuned_before_compiles_the_chosen_one_only(
    triton_telemetry: Telemetry, restart: Any
) -> None:
    for _ in range(2):
        tuner(*sizes(32, 64), cache_results=True)[(1,)](floats(64))
        restart()

    assert 1 == len(named(triton_telemetry, "tune"))
    assert 3 == len(triton_telemetry.trips)
    assert CompilationOutcome.LOADED is triton_telemetry.trips[2].outcome
    assert parent_of(named(triton_telemetry, "compile")[2]) is None


def test_a_tuner_is_told_of_at_no_level_off(triton_telemetry: Telemetry) -> None:
    from otel_kernel import pipeline

    pipeline.configure(level="off")
    tuner(*sizes(32, 64))[(1,)](floats(64))

    assert [] == triton_telemetry.spans
