"""What users have reported and could not find the cause of: the trips name it."""

from __future__ import annotations

from typing import Any

import pytest
from torch_programs import Report, run_program

from otel_kernel.records import CompilationOutcome, Trip

COMPILED, LOADED = CompilationOutcome.COMPILED, CompilationOutcome.LOADED
COMPONENT = "compute.kernel.key.component."

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run_program(tmp_path_factory.mktemp("reported"), "reported.py")


def of(trip: Trip, name: str) -> Any:
    return trip.attributes.get(f"compute.kernel.{name}")


def graph(report: Report, part: str) -> Trip:
    return report.graphs(part)[-1]


def changed(before: Trip, after: Trip) -> set[str]:
    """Return the components of the key in which two trips differ."""
    names = {name for trip in (before, after) for name in trip.attributes if name.startswith(COMPONENT)}
    return {
        name.removeprefix(COMPONENT)
        for name in names
        if before.attributes.get(name) != after.attributes.get(name)
    }


@pytest.mark.parametrize(
    ("part", "cause", "not_it"),
    [
        ("other inputs", "inputs", "config"),
        ("another graph", "graph", "config"),
        ("another setting that is part of the key", "config", "graph"),
    ],
)
def test_why_the_fx_graph_cache_missed(report: Report, part: str, cause: str, not_it: str) -> None:
    """pytorch#152065: the log says that it missed, and not why."""
    before, after = graph(report, "cold"), graph(report, part)

    assert ("miss", "the FX graph cache has no entry under this key") == (
        of(after, "store.lookup"),
        of(after, "compilation.reason"),
    )
    assert before.key != after.key
    assert cause in changed(before, after)
    assert not_it not in changed(before, after)


@pytest.mark.parametrize(("part", "state"), [("passed by", "bypass"), ("store off", "disabled")])
def test_why_the_fx_graph_cache_was_not_asked(report: Report, part: str, state: str) -> None:
    """pytorch#152065, where there is no key at all."""
    trip = graph(report, part)

    assert (COMPILED, None, state) == (trip.outcome, trip.key, of(trip, "store.lookup"))
    assert of(trip, "key.absent_reason") in ("bypassed", "disabled")


def test_a_setting_that_changes_the_key_is_named(report: Report) -> None:
    after = graph(report, "another setting that is part of the key")

    assert "max_fusion_size=32" == of(after, "key.component.config_changed")
    assert {"config", "config_changed"} == changed(graph(report, "cold"), after)


def test_a_setting_that_does_not_change_the_key_loads(report: Report) -> None:
    before, after = graph(report, "cold"), graph(report, "another setting that is not")

    assert (LOADED, before.key) == (after.outcome, after.key)
    assert set() == changed(before, after)


def test_a_graph_that_hits_one_store_and_misses_the_other(report: Report) -> None:
    """vllm#20451: equal subgraphs hit the FX graph cache and miss AOTAutograd's."""
    before, after = graph(report, "cold"), graph(report, "the same graph in another layer")
    (autograd,) = report.spans("the same graph in another layer", "aot_autograd")
    (first,) = report.spans("cold", "aot_autograd")

    assert (LOADED, "hit", before.key) == (after.outcome, of(after, "store.lookup"), after.key)
    assert ("miss", "no entry under this key") == (
        autograd["attributes"]["compute.kernel.store.lookup"],
        autograd["attributes"]["compute.kernel.compilation.reason"],
    )
    assert (
        first["attributes"]["compute.kernel.store.entry"]
        != (autograd["attributes"]["compute.kernel.store.entry"])
    )


def test_which_part_still_compiles_when_all_is_cached(report: Report) -> None:
    """pytorch#149096: after caching every stage, see what is compiled all the same."""
    cached = report.trips("all that is cached")
    new = report.trips("what has changed")

    assert [("torch.inductor.graph", LOADED), ("torch.inductor.cpp_kernel", COMPILED)] == [
        (trip.layer, trip.outcome) for trip in cached
    ]
    assert {COMPILED} == {trip.outcome for trip in new}
    assert {"<lambda>"} == {
        str(trip.attributes["code.function.name"]).rpartition(".")[2]
        for trip in new
        if trip.layer == "torch.inductor.graph"
    }


def test_a_batch_of_another_size_names_what_has_changed(report: Report) -> None:
    why = "0/0: tensor 'query' size mismatch at index 0. expected 2, actual 5"
    (frame,) = report.spans("batch of 5", "dynamo.frame")

    assert of(graph(report, "batch of 2"), "compilation.reason") == (
        "the FX graph cache has no entry under this key"
    )
    assert frame["attributes"]["compute.kernel.compilation.reason"] == why
    assert str(of(graph(report, "batch of 5"), "compilation.reason")).startswith(why)
    assert [] == report.trips("batch of 7")
