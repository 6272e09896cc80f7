"""Every road to a graph of Inductor's, and what the trips on it say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch_programs import Report, Run, run_program

from otel_kernel.records import CompilationOutcome, Trip

COMPILED, LOADED, REKEYED = (
    CompilationOutcome.COMPILED,
    CompilationOutcome.LOADED,
    CompilationOutcome.REKEYED,
)
FRESH = "the FX graph cache has no entry under this key"

pytestmark = pytest.mark.slow


def of(trip: Trip, name: str) -> Any:
    return trip.attributes.get(f"compute.kernel.{name}")


def only(trips: list[Trip]) -> Trip:
    (trip,) = trips
    return trip


def ends(trips: list[Trip]) -> list[str]:
    """Return how each trip ended."""
    return [
        (trip.outcome.value if trip.outcome else trip.abandoned.value if trip.abandoned else trip.state)
        for trip in trips
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roads")


@pytest.fixture(scope="module")
def cold(folder: Path) -> Report:
    return run_program(folder, "roads.py", "usual")


@pytest.fixture(scope="module")
def warm(folder: Path, cold: Report) -> Report:
    assert cold.trips()
    return run_program(folder, "roads.py", "usual")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run_program(tmp_path_factory.mktemp("stores"), "roads.py", "stores")


def test_a_new_graph_is_compiled_and_so_is_its_kernel(cold: Report) -> None:
    graph, kernel = cold.trips("first")

    assert ("torch.inductor.graph", "__main__.wave[forward]") == (graph.layer, graph.kernel)
    assert ("torch.inductor.cpp_kernel", "cpp_fused_add_mul_sin_0") == (kernel.layer, kernel.kernel)
    assert (COMPILED, COMPILED) == (graph.outcome, kernel.outcome)
    assert graph.seq == kernel.parent_seq
    assert (True, True) == (of(graph, "device_loaded"), of(kernel, "device_loaded"))
    assert (True, True) == (of(graph, "store.stored"), of(kernel, "store.stored"))
    assert ("0/0", "miss", FRESH) == (
        of(graph, "compilation.id"),
        of(graph, "store.lookup"),
        of(graph, "compilation.reason"),
    )
    assert '["cpp_fused_add_mul_sin_0"]' == of(graph, "members.names")
    assert "f32[8][1]cpu" == of(graph, "specialization")
    assert {"key", "lookup", "lower", "codegen", "kernels"} <= {
        name.rpartition(".")[2] for name in graph.attributes if ".stage." in name
    }
    assert of(kernel, "stage.build") + of(kernel, "stage.load") <= (kernel.duration_ns or 0) * 1.1


def test_texts_are_those_of_the_framework_and_the_backend(cold: Report) -> None:
    graph, kernel = cold.trips("first")

    assert "torch.ops.aten.sin" in str(graph.ir)
    assert "async_compile.cpp_pybinding" in str(graph.source)
    assert "void  kernel(" in str(kernel.source)
    assert kernel.ir is None


def test_spans_nest_frame_autograd_graph_kernel(cold: Report) -> None:
    kernel, graph, autograd, frame = cold.spans("first")

    assert ["compile cpp_fused_add_mul_sin_0", "compile __main__.wave[forward]"] == [
        kernel["name"],
        graph["name"],
    ]
    assert ["aot_autograd __main__.wave", "dynamo.frame __main__.wave"] == [autograd["name"], frame["name"]]
    assert [graph["id"], autograd["id"], frame["id"], None] == [
        span["parent"] for span in (kernel, graph, autograd, frame)
    ]
    assert ["trip", "trip", "parent", "parent"] == [
        span["attributes"]["compute.kernel.role"] for span in (kernel, graph, autograd, frame)
    ]
    assert "miss" == autograd["attributes"]["compute.kernel.store.lookup"]
    assert "no entry under this key" == autograd["attributes"]["compute.kernel.compilation.reason"]
    assert "0/0" == frame["attributes"]["compute.kernel.compilation.id"]
    assert {"UNSET"} == {span["status"] for span in cold.spans("first")}


def test_every_span_has_an_id_of_its_own(cold: Report) -> None:
    # Dynamo puts Python's random numbers back after every frame, and the SDK draws its ids from them.
    ids = [span["id"] for span in cold.spans()]

    assert len(ids) == len(set(ids))


def test_a_call_that_finds_its_graph_in_memory_emits_nothing(cold: Report, warm: Report) -> None:
    for report in (cold, warm):
        assert ([], []) == (report.trips("again"), report.spans("again"))
        assert [] == report.trips("dynamic size again")


def test_a_new_process_loads_what_an_earlier_one_compiled(cold: Report, warm: Report) -> None:
    assert cold.value("wave") == warm.value("wave")
    for before, after in zip(cold.trips("first"), warm.trips("first"), strict=True):
        assert LOADED is after.outcome
        assert before.key == after.key
        assert before.key is not None
        assert (before.kernel, before.layer) == (after.kernel, after.layer)
        assert of(before, "identity") == of(after, "identity")
        assert after.ir is None
    assert ["hit"] == [
        span["attributes"]["compute.kernel.store.lookup"] for span in warm.spans("first", "aot_autograd")
    ]
    assert of(only(warm.graphs("first")), "compilation.original_ns") > 0


def test_another_size_says_why_it_was_compiled(cold: Report, warm: Report) -> None:
    why = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9"
    graph = only(cold.graphs("another size"))
    (frame,) = cold.spans("another size", "dynamo.frame")
    (warm_frame,) = warm.spans("another size", "dynamo.frame")

    assert f"{why}; {FRESH}" == of(graph, "compilation.reason")
    assert [why, why] == [
        span["attributes"]["compute.kernel.compilation.reason"] for span in (frame, warm_frame)
    ]
    assert "Sym(s77), f32[s77][1]cpu" == of(graph, "specialization")
    assert "2 <= L['t0']" == of(graph, "key.component.guards")
    assert LOADED is only(warm.graphs("another size")).outcome


def test_a_reset_loads_the_graph_and_keeps_the_kernel_in_memory(cold: Report) -> None:
    trip = only(cold.trips("after a reset"))

    assert LOADED is trip.outcome
    assert only(cold.graphs("first")).key == trip.key


def test_a_backward_is_compiled_when_it_first_runs(cold: Report) -> None:
    forward = only(cold.graphs("training forward"))
    backward = only(cold.graphs("training backward"))

    assert "__main__.Block.forward[forward]" == forward.kernel
    assert "__main__.Block.forward[backward]" == backward.kernel
    assert forward.attributes["code.function.name"] == backward.attributes["code.function.name"]
    assert of(forward, "compilation.id") == of(backward, "compilation.id")
    assert ["compiled", "compiled"] == ends(cold.kernels("training backward"))
    assert forward.key != backward.key


def test_a_stored_backward_is_loaded_with_its_forward(cold: Report, warm: Report) -> None:
    forward, backward = warm.graphs("training forward")

    assert ["loaded", "loaded"] == ends([forward, backward])
    assert "__main__.Block.forward[backward]" == backward.kernel
    assert only(cold.graphs("training backward")).key == backward.key
    assert of(only(cold.graphs("training backward")), "identity") == of(backward, "identity")
    assert [] == warm.trips("training backward")


def test_each_side_of_a_graph_break_is_a_frame_with_a_graph(cold: Report) -> None:
    names = [trip.kernel for trip in cold.graphs("graph break")]

    assert "__main__.broken[forward]" == names[0]
    assert names[1].startswith("__main__.torch_dynamo_resume_in_broken_at_")
    assert 2 == len(names)


def test_a_graph_of_library_calls_has_no_kernel(cold: Report) -> None:
    graph = only(cold.trips("no kernel"))

    assert COMPILED is graph.outcome
    assert of(graph, "members.count") is None


def test_a_graph_with_nothing_in_it_is_no_trip(cold: Report) -> None:
    assert [] == cold.trips("nothing to compile")
    assert 1 == len(cold.spans("nothing to compile", "dynamo.frame"))


def test_without_the_store_of_autograd_the_graph_is_loaded_by_itself(stores: Report) -> None:
    for part in ("autograd store wiped", "another frame, the same graph"):
        (autograd,) = stores.spans(part, "aot_autograd")

        assert LOADED is only(stores.trips(part)).outcome
        assert "miss" == autograd["attributes"]["compute.kernel.store.lookup"]
    assert only(stores.graphs("cold")).key == only(stores.graphs("another frame, the same graph")).key


def test_an_entry_of_autograd_without_its_graph_is_given_up(stores: Report) -> None:
    given_up, compiled = stores.graphs("graph store wiped, and the kernel")
    (autograd,) = stores.spans("graph store wiped, and the kernel", "aot_autograd")

    assert ["retry", "compiled"] == ends([given_up, compiled])
    assert "miss" == autograd["attributes"]["compute.kernel.store.lookup"]
    assert "names a graph that the FX graph cache has not" in str(
        autograd["attributes"]["compute.kernel.compilation.reason"]
    )


@pytest.mark.parametrize(
    "part",
    [
        "graph store wiped, kernels in memory",
        "graph store wiped, kernels stored",
        "a setting that is part of the key",
    ],
)
def test_a_new_graph_whose_kernels_are_all_stored_is_rekeyed(stores: Report, part: str) -> None:
    graph = stores.graphs(part)[-1]

    assert REKEYED is graph.outcome
    assert ("miss", True, 1) == (
        of(graph, "store.lookup"),
        of(graph, "store.stored"),
        of(graph, "members.count"),
    )
    assert all(trip.outcome is LOADED for trip in stores.kernels(part))


def test_a_graph_is_not_rekeyed_where_the_compiler_ran(stores: Report) -> None:
    part = "graph store wiped, and the kernel"

    assert COMPILED is stores.graphs(part)[-1].outcome
    assert COMPILED is only(stores.kernels(part)).outcome


@pytest.mark.parametrize("part", ["graph damaged", "large sizes"])
def test_a_graph_is_not_rekeyed_where_an_entry_lay_under_its_key(stores: Report, part: str) -> None:
    assert COMPILED is stores.graphs(part)[-1].outcome
    assert [] == stores.kernels(part)


def test_a_damaged_graph_is_rejected_and_compiled(stores: Report) -> None:
    graph = stores.graphs("graph damaged")[-1]

    assert "no entry under this key could be read" == of(graph, "store.rejected")
    assert "no entry of the FX graph cache under this key could be read" == of(graph, "compilation.reason")


def test_a_graph_can_be_loaded_while_its_kernel_is_compiled(stores: Report) -> None:
    assert LOADED is only(stores.graphs("library deleted")).outcome
    assert COMPILED is only(stores.kernels("library deleted")).outcome


def test_a_changed_setting_is_named_where_it_changes_the_key(stores: Report) -> None:
    before = only(stores.graphs("cold"))
    part_of_key = stores.graphs("a setting that is part of the key")[-1]
    not_part_of_key = only(stores.graphs("a setting that is not"))

    assert before.key != part_of_key.key
    assert "max_fusion_size=32" == of(part_of_key, "key.component.config_changed")
    assert of(before, "key.component.config") != of(part_of_key, "key.component.config")
    assert of(before, "key.component.graph") == of(part_of_key, "key.component.graph")
    assert of(before, "identity") == of(part_of_key, "identity")
    assert (before.key, LOADED) == (not_part_of_key.key, not_part_of_key.outcome)


@pytest.mark.parametrize("part", ["all caches disabled", "both stores of graphs off"])
def test_without_a_store_there_is_no_key(stores: Report, part: str) -> None:
    graph = only(stores.graphs(part))
    (autograd,) = stores.spans(part, "aot_autograd")

    assert (COMPILED, None) == (graph.outcome, graph.key)
    assert ("disabled", "disabled") == (of(graph, "key.absent_reason"), of(graph, "store.lookup"))
    assert "disabled" == autograd["attributes"]["compute.kernel.store.lookup"]


def test_a_kernel_in_a_throw_away_store_has_no_key(stores: Report) -> None:
    kernel = only(stores.kernels("all caches disabled"))

    assert (COMPILED, None, "disabled") == (kernel.outcome, kernel.key, of(kernel, "key.absent_reason"))


def test_a_graph_that_cannot_be_stored_says_why(stores: Report) -> None:
    graph = only(stores.graphs("a graph that cannot be stored"))

    assert (COMPILED, None, "bypassed") == (graph.outcome, graph.key, of(graph, "key.absent_reason"))
    assert "bypass" == of(graph, "store.lookup")
    assert of(graph, "compilation.reason")


def test_autograd_says_why_it_does_not_store(stores: Report) -> None:
    (autograd,) = stores.spans("a graph that AOTAutograd cannot store", "aot_autograd")

    assert "bypass" == autograd["attributes"]["compute.kernel.store.lookup"]
    assert "BypassAOTAutogradCache" in autograd["attributes"]["compute.kernel.compilation.reason"]
    assert only(stores.graphs("a graph that AOTAutograd cannot store")).key is not None


def test_equal_keys_of_inductor_with_other_guards_are_two_keys(stores: Report) -> None:
    small = only(stores.graphs("small sizes"))
    large = only(stores.graphs("large sizes"))
    again = only(stores.graphs("small sizes again"))

    assert str(of(small, "store.entry")).partition(":")[0] == str(of(large, "store.entry")).partition(":")[0]
    assert small.key != large.key
    assert (small.key, LOADED) == (again.key, again.outcome)
    assert "guard_miss" == of(large, "store.lookup")
    assert "hold for other sizes" in str(of(large, "compilation.reason"))


def test_a_bundled_graph_has_the_key_of_the_bundle(run: Run) -> None:
    report = run("roads.py", "bundled")

    forward = only(report.graphs("bundled, cold"))
    backward = only(report.graphs("bundled backward, cold"))
    loaded = report.graphs("bundled, warm")

    assert ["compiled", "compiled"] == ends([forward, backward])
    assert ["loaded", "loaded"] == ends(loaded)
    assert [forward.key, backward.key] == [trip.key for trip in loaded]
    assert forward.key is not None
    assert forward.key != backward.key
    assert "torch.aot_autograd" == of(forward, "store.kind")
    assert [] == report.trips("bundled backward, warm")


def test_a_forward_that_was_loaded_in_vain_is_given_up(run: Run) -> None:
    report = run("roads.py", "half_lost")

    assert ["retry", "retry", "loaded"] == ends(report.graphs("backward lost"))
    assert {None} == {trip.error_type for trip in report.trips()}


def test_graphs_from_portable_artifacts_are_loaded_and_their_kernels_compiled(run: Run) -> None:
    report = run("roads.py", "portable")

    assert ["loaded"] == ends(report.graphs("from artifacts"))
    assert ["compiled"] == ends(report.kernels("from artifacts"))


def test_a_whole_graph_in_cpp_is_one_kernel(run: Run) -> None:
    report = run("roads.py", "wrapper")

    assert [("inductor_entry", "compiled")] == [
        (trip.kernel, *ends([trip])) for trip in report.kernels("C++ wrapper")
    ]
    assert ["loaded"] == ends(report.graphs("C++ wrapper again"))


def test_at_level_basic_no_text_of_a_kernel_appears(run: Run) -> None:
    report = run("roads.py", "usual", "basic")

    assert [] == [line for line in map(str, report.lines) if "otk_secret_marker" in line]
    assert "miss" == of(only(report.graphs("first")), "store.lookup")
