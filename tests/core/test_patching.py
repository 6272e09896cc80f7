"""Wrapping a point, and leaving everything as it was."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import wrapt

from otel_kernel import patching
from otel_kernel.patching import MissingPointError, Point, Shape, WrapperFunction, install

Use = Callable[[Any], Any]

# One point for each way in which Python keeps a function, and a call of it through an instance.
PLACES: dict[str, tuple[str, Use]] = {
    "function": ("build", lambda acme: acme.compiler.build("k").name),
    "method": ("Compiler.compile", lambda acme: acme.compiler.Compiler().compile("k").name),
    "inherited": ("TunedCompiler.compile", lambda acme: acme.compiler.TunedCompiler().compile("k").name),
    "static method": ("Compiler.link", lambda acme: acme.compiler.TunedCompiler().link("k", "a", flags="b")),
    "class method": ("Compiler.load", lambda acme: acme.compiler.TunedCompiler().load("k")),
}
CASES = [
    *(pytest.param(*place, False, id=kind) for kind, place in PLACES.items()),
    *(
        pytest.param(*PLACES[kind], True, id=f"{kind}, copied")
        for kind in ("function", "method", "inherited")
    ),
]


class Counting:
    """A shape whose wrapper notes each call and lets it pass."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self.positions: Mapping[str, int] = {}

    def __call__(self, _runtime: str, _point: Point, positions: Mapping[str, int]) -> WrapperFunction:
        self.positions = positions

        def wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            self.calls.append((instance, args, kwargs))
            return wrapped(*args, **kwargs)

        return wrapper


def point(
    name: str, shape: Shape, *parameters: str, module: str = "acme.compiler", copied: bool = False
) -> Point:
    return Point(module, name, shape, parameters, copied=copied)


def namespace(holder: Any) -> dict[str, Any]:
    """Return what a module or a class itself holds, as it is now."""
    return dict(holder.__dict__)


def defined_in(acme: Any, name: str) -> tuple[Any, str]:
    """Return the module or the class that itself holds what `name` finds."""
    *path, attribute = name.split(".")
    holder = acme.compiler
    for part in path:
        holder = getattr(holder, part)
    if isinstance(holder, type):
        holder = next(base for base in holder.__mro__ if attribute in namespace(base))
    return holder, attribute


@pytest.mark.parametrize(("name", "use", "copied"), CASES)
def test_wrapper_is_called_through_an_instance_and_changes_no_result(
    acme: Any, name: str, use: Use, copied: bool
) -> None:
    before = use(acme)
    counting = Counting()
    install("acme", point(name, counting, copied=copied))

    assert before == use(acme)
    assert 1 == len(counting.calls)


@pytest.mark.parametrize(("name", "use", "copied"), CASES)
def test_restoring_puts_the_very_same_object_back(acme: Any, name: str, use: Use, copied: bool) -> None:
    holder, attribute = defined_in(acme, name)
    original = inspect.getattr_static(holder, attribute)
    before = use(acme)
    counting = Counting()
    install("acme", point(name, counting, copied=copied)).restore()

    assert inspect.getattr_static(holder, attribute) is original
    assert before == use(acme)
    assert [] == counting.calls
    assert {} == vars(patching)["_patches"]


def test_restoring_an_inherited_method_leaves_no_shadow_in_the_subclass(acme: Any) -> None:
    tuned = acme.compiler.TunedCompiler
    before = namespace(tuned)
    patch = install("acme", point("TunedCompiler.compile", Counting()))

    assert before == namespace(tuned)
    assert patch.holder is acme.compiler.Compiler

    patch.restore()

    assert before == namespace(tuned)


@pytest.mark.parametrize(("name", "use", "copied"), CASES)
def test_second_installation_puts_no_second_wrapper(acme: Any, name: str, use: Use, copied: bool) -> None:
    counting, second = Counting(), Counting()
    patch = install("acme", point(name, counting, copied=copied))
    again = install("acme", point(name, second, copied=copied))
    use(acme)

    assert patch is again
    assert (1, 0) == (len(counting.calls), len(second.calls))


def test_method_that_two_points_name_by_class_and_subclass_is_wrapped_once(acme: Any) -> None:
    counting = Counting()
    install("acme", point("Compiler.compile", counting))
    install("acme", point("TunedCompiler.compile", counting))
    acme.compiler.TunedCompiler().compile("k")

    assert 1 == len(counting.calls)


def test_override_that_calls_the_wrapped_method_passes_one_wrapper(acme: Any) -> None:
    counting = Counting()
    install("acme", point("Compiler.compile", counting))
    acme.compiler.CheckedCompiler().compile("k")

    assert 1 == len(counting.calls)


def _wrapt_on_top(function: Any, calls: list[str]) -> Any:
    def wrapper(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        calls.append("theirs")
        return wrapped(*args, **kwargs)

    return wrapt.FunctionWrapper(function, wrapper)


def _wraps_on_top(function: Any, calls: list[str]) -> Any:
    @functools.wraps(function)
    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("theirs")
        return function.__get__(self)(*args, **kwargs)

    return theirs


def _plain_on_top(function: Any, calls: list[str]) -> Any:
    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("theirs")
        return function.__get__(self)(*args, **kwargs)

    return theirs


ON_TOP = [_wrapt_on_top, _wraps_on_top, _plain_on_top]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("put_on_top", ON_TOP)
def test_another_tools_wrapper_on_top_survives_and_ours_lets_pass(
    acme: Any, put_on_top: Any, copied: bool
) -> None:
    compiler, counting = acme.compiler.Compiler, Counting()
    their_calls: list[str] = []
    patch = install("acme", point("Compiler.compile", counting, copied=copied))
    theirs = put_on_top(namespace(compiler)["compile"], their_calls)
    compiler.compile = theirs
    patch.restore()
    made = compiler()

    assert "k" == made.compile("k").name
    assert namespace(compiler)["compile"] is theirs
    assert (["theirs"], 0, 1) == (their_calls, len(counting.calls), made.calls)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("put_on_top", ON_TOP)
def test_installing_again_under_another_tools_wrapper_does_not_stack(
    acme: Any, put_on_top: Any, copied: bool
) -> None:
    compiler, counting = acme.compiler.Compiler, Counting()
    their_calls: list[str] = []
    patch = install("acme", point("Compiler.compile", counting, copied=copied))
    theirs = put_on_top(namespace(compiler)["compile"], their_calls)
    compiler.compile = theirs
    for _ in range(3):
        patch.restore()
        patch = install("acme", point("Compiler.compile", counting, copied=copied))
    compiler().compile("k")

    assert (1, 1) == (len(counting.calls), len(their_calls))
    assert (put_on_top is _plain_on_top) == (namespace(compiler)["compile"] is not theirs)

    patch.restore()
    compiler().compile("k")

    assert (1, 2) == (len(counting.calls), len(their_calls))
    assert namespace(compiler)["compile"] is theirs


@pytest.mark.parametrize("put_on_top", ON_TOP)
def test_installing_twice_around_another_tools_wrapper_counts_once(acme: Any, put_on_top: Any) -> None:
    compiler, counting = acme.compiler.Compiler, Counting()
    install("acme", point("Compiler.compile", counting))
    compiler.compile = put_on_top(namespace(compiler)["compile"], [])
    install("acme", point("Compiler.compile", counting))
    compiler().compile("k")

    assert 1 == len(counting.calls)


@pytest.mark.parametrize("put_on_top", ON_TOP)
def test_another_tool_that_leaves_after_us_can_and_we_can_come_back(acme: Any, put_on_top: Any) -> None:
    compiler, counting = acme.compiler.Compiler, Counting()
    patch = install("acme", point("Compiler.compile", counting))
    ours = namespace(compiler)["compile"]
    compiler.compile = put_on_top(ours, [])
    patch.restore()
    install("acme", point("Compiler.compile", counting))
    compiler.compile = ours  # what they found when they came
    patch = install("acme", point("Compiler.compile", counting))
    compiler().compile("k")

    assert 1 == len(counting.calls)

    patch.restore()
    compiler().compile("k")

    assert 1 == len(counting.calls)


def test_function_that_a_reload_made_anew_is_wrapped_again(acme: Any) -> None:
    counting = Counting()
    install("acme", point("build", counting))
    importlib.reload(acme.compiler)
    acme.compiler.build("k")

    assert 0 == len(counting.calls)

    patch = install("acme", point("build", counting))
    acme.compiler.build("k")

    assert 1 == len(counting.calls)

    patch.restore()

    assert not hasattr(acme.compiler.build, "__wrapped__")


def test_function_that_was_replaced_by_somebody_stays_replaced(acme: Any) -> None:
    patch = install("acme", point("build", Counting()))
    theirs = object()
    acme.compiler.build = theirs
    patch.restore()

    assert acme.compiler.build is theirs


def test_name_imported_early_calls_the_original_and_methods_are_found_all_the_same(acme: Any) -> None:
    from_early = acme.build  # `from acme.compiler import build` in acme's __init__
    counting = Counting()
    install("acme", point("Compiler.compile", counting))

    assert "k" == from_early("k").name
    assert 1 == len(counting.calls)


def test_name_imported_early_is_reached_as_a_copy_and_given_back(acme: Any) -> None:
    original = acme.build
    counting = Counting()
    copies = [(acme, "build"), (acme, "absent")]
    patch = install("acme", Point("acme.compiler", "build", counting, copies=lambda: copies))
    acme.build("k")

    assert 1 == len(counting.calls)

    patch.restore()

    assert acme.build is original
    assert not hasattr(acme, "absent")


def test_name_imported_from_where_it_is_wrapped_lets_pass_after_restoring(acme: Any) -> None:
    counting = Counting()
    patch = install("acme", point("build", counting))
    late = acme.compiler.build
    patch.restore()

    assert "k" == late("k").name
    assert [] == counting.calls


def test_second_name_of_a_wrapped_function_is_refused(acme: Any) -> None:
    install("acme", point("build", Counting()))
    acme.build = acme.compiler.build
    with pytest.raises(
        MissingPointError, match=r"acme\.build is wrapped by otel-kernel under another name already"
    ):
        install("acme", point("build", Counting(), module="acme"))


@pytest.mark.parametrize("copied", [False, True])
def test_name_doc_and_signature_stay_what_they_are(acme: Any, copied: bool) -> None:
    compile_ = acme.compiler.Compiler.compile
    before = (compile_.__name__, compile_.__qualname__, compile_.__doc__, inspect.signature(compile_))
    install("acme", point("Compiler.compile", Counting(), copied=copied))
    compile_ = acme.compiler.Compiler.compile

    assert before == (
        compile_.__name__,
        compile_.__qualname__,
        compile_.__doc__,
        inspect.signature(compile_),
    )
    assert inspect.isfunction(compile_)


def test_classes_and_results_keep_their_type(acme: Any) -> None:
    compiler, kernel = acme.compiler.Compiler, acme.compiler.Kernel
    install("acme", point("Compiler.compile", Counting()))
    result = acme.compiler.TunedCompiler().compile("k")

    assert acme.compiler.Compiler is compiler
    assert type(result) is kernel
    assert issubclass(acme.compiler.TunedCompiler, compiler)


@pytest.mark.parametrize("copied", [False, True])
def test_holder_and_its_instances_can_be_pickled_and_copied(acme: Any, copied: bool) -> None:
    install("acme", point("Compiler.compile", Counting(), copied=copied))
    made = acme.compiler.Compiler()
    made.compile("k")

    assert pickle.loads(pickle.dumps(acme.compiler.Compiler)) is acme.compiler.Compiler
    assert ["k"] == list(pickle.loads(pickle.dumps(made)).kernels)
    assert ["k"] == list(copy.deepcopy(made).kernels)


@pytest.mark.parametrize("name", ["build", "Compiler.compile"])
def test_copied_target_can_be_pickled_and_copied(acme: Any, name: str) -> None:
    install("acme", point(name, Counting(), copied=True))
    holder, attribute = defined_in(acme, name)
    target = getattr(holder, attribute)

    assert pickle.loads(pickle.dumps(target)) is target
    assert copy.copy(target) is target
    assert copy.deepcopy(target) is target


def test_bound_method_of_a_copied_target_can_be_pickled_and_counts(acme: Any) -> None:
    counting = Counting()
    install("acme", point("Compiler.compile", counting, copied=True))
    bound = pickle.loads(pickle.dumps(acme.compiler.Compiler().compile))

    assert "k" == bound("k").name
    assert 1 == len(counting.calls)


@pytest.mark.parametrize("copied", [False, True])
def test_instance_and_arguments_arrive_apart_however_the_method_is_called(acme: Any, copied: bool) -> None:
    counting = Counting()
    install("acme", point("Compiler.compile", counting, copied=copied))
    made = acme.compiler.Compiler()
    made.compile("a")
    acme.compiler.Compiler.compile(made, "b")
    made.compile(name="c", unknown=1)

    assert [(made, ("a",), {}), (made, ("b",), {}), (made, (), {"name": "c", "unknown": 1})] == counting.calls
    assert {"unknown": 1} == made.extra


def test_copied_method_called_with_its_instance_by_keyword_still_works(acme: Any) -> None:
    install("acme", point("Compiler.compile", Counting(), copied=True))

    assert "k" == acme.compiler.Compiler.compile(self=acme.compiler.Compiler(), name="k").name


@pytest.mark.parametrize("copied", [False, True])
def test_wrong_call_raises_what_it_always_has(acme: Any, copied: bool) -> None:
    made = acme.compiler.Compiler()
    with pytest.raises(TypeError) as before:
        made.compile()
    install("acme", point("Compiler.compile", Counting(), copied=copied))
    with pytest.raises(TypeError) as after:
        made.compile()

    assert str(before.value) == str(after.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("build", {"name": 0, "body": 1}),
        ("Compiler.compile", {"self": -1, "name": 0, "body": 1}),
        ("Compiler.load", {"cls": -1, "name": 0}),
        ("Compiler.link", {"name": 0}),
    ],
)
def test_only_parameters_with_a_place_have_a_position(acme: Any, name: str, expected: dict[str, int]) -> None:
    counting = Counting()
    install("acme", point(name, counting))

    assert expected == counting.positions
    assert acme is not None


def test_function_of_a_module_inside_a_module_has_no_instance(acme: Any) -> None:
    counting = Counting()
    install("acme", point("compiler.build", counting, "name", module="acme"))
    acme.compiler.build("k")

    assert {"name": 0, "body": 1} == counting.positions
    assert [(None, ("k",), {})] == counting.calls


class _NoSignature:
    """Callable, and with a signature that cannot be read."""

    __signature__ = "none"

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (point("absent", Counting()), "acme.compiler.absent does not exist"),
        (point("Absent.compile", Counting()), "acme.compiler.Absent.compile does not exist"),
        (point("Compiler.absent", Counting()), "acme.compiler.Compiler.absent does not exist"),
        (point("Compiler.compile.inner", Counting()), "acme.compiler.Compiler.compile.inner does not exist"),
        (point("compile", Counting(), module="acme.moved"), "module acme.moved is not imported"),
        (
            point("Compiler.compile", Counting(), "name", "target"),
            "acme.compiler.Compiler.compile has no parameter target; it takes (self, name, body, extra)",
        ),
        (point("odd", Counting()), "acme.compiler.odd has no signature that can be read"),
        (point("Compiler.link", Counting(), copied=True), "acme.compiler.Compiler.link is no plain function"),
        (point("Compiler.load", Counting(), copied=True), "acme.compiler.Compiler.load is no plain function"),
        (point("Number.bit_count", Counting()), "acme.compiler.Number.bit_count cannot be replaced: "),
    ],
    ids=lambda value: str(value) if isinstance(value, Point) else "",
)
def test_missing_point_is_named_and_nothing_is_changed(acme: Any, missing: Point, message: str) -> None:
    acme.compiler.odd = _NoSignature()
    acme.compiler.Number = int  # written in C
    before = namespace(acme.compiler), namespace(acme.compiler.Compiler)
    with pytest.raises(MissingPointError) as raised:
        install("acme", missing)

    assert str(raised.value).startswith(message)
    assert before == (namespace(acme.compiler), namespace(acme.compiler.Compiler))
    assert {} == vars(patching)["_patches"]
