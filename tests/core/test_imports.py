"""The import hook: awaited modules are told of, and importing stays what it is."""

from __future__ import annotations

import _imp
import importlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import otel_kernel
from otel_kernel import imports
from otel_kernel.imports import cancel, when_imported

ROOT = Path(otel_kernel.__file__).parents[1]


@pytest.fixture(autouse=True)
def fresh_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the test import modules from `tmp_path`, and forget them and all that waited for them."""
    monkeypatch.setattr(imports, "_waiting", dict[str, Any]())
    monkeypatch.setattr(imports, "_unannounced", set[str]())
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        del sys.modules[name]


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """A package `lib` with a module `lib.part`."""
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("VALUE = 1\n")
    (package / "part.py").write_text("import lib\nVALUE = 2\n")
    return package


def seen() -> tuple[list[Any], imports.Callback]:
    """Return a list, and a callback that adds to it the VALUE of each module it is called with."""
    values: list[Any] = []

    def callback(module: ModuleType) -> None:
        values.append(module.VALUE if hasattr(module, "VALUE") else module.__name__)

    return values, callback


def run(script: str, *arguments: str, path: Sequence[Path], options: Sequence[str] = ()) -> str:
    """Return what a script prints in a process of its own."""
    return subprocess.run(
        [sys.executable, *options, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@pytest.mark.usefixtures("lib")
def test_callback_runs_after_the_body_of_the_module() -> None:
    values, callback = seen()
    when_imported("lib.part", callback)

    assert "lib" not in sys.modules

    importlib.import_module("lib")

    assert [] == values

    importlib.import_module("lib.part")

    assert [2] == values


@pytest.mark.usefixtures("lib")
def test_callback_runs_at_once_for_an_imported_module() -> None:
    values, callback = seen()
    importlib.import_module("lib")
    when_imported("lib", callback)

    assert [1] == values


@pytest.mark.usefixtures("lib")
def test_callback_runs_before_the_importer_goes_on() -> None:
    values, callback = seen()
    when_imported("lib", callback)
    namespace: dict[str, Any] = {"values": values}
    exec("import lib\nafter = list(values)", namespace)

    assert [1] == namespace["after"]


@pytest.mark.usefixtures("lib")
def test_callbacks_run_once_each_and_in_order() -> None:
    order: list[str] = []
    when_imported("lib", lambda _: order.append("first"))
    when_imported("lib", lambda _: order.append("second"))
    importlib.import_module("lib")
    importlib.import_module("lib")
    del sys.modules["lib"]
    importlib.import_module("lib")

    assert ["first", "second"] == order


def test_awaiting_imports_nothing() -> None:
    before = set(sys.modules)
    when_imported("wave", lambda _: None)

    assert before == set(sys.modules)


@pytest.mark.usefixtures("lib")
def test_cancelled_callback_does_not_run() -> None:
    values, callback = seen()
    when_imported("lib", callback)
    cancel(callback)
    importlib.import_module("lib")

    assert [] == values


@pytest.mark.usefixtures("lib")
def test_callback_cancelled_by_an_earlier_one_does_not_run() -> None:
    values, callback = seen()
    when_imported("lib", lambda _: cancel(callback))
    when_imported("lib", callback)
    importlib.import_module("lib")

    assert [] == values


@pytest.mark.usefixtures("lib")
def test_callback_added_by_a_callback_runs() -> None:
    values, callback = seen()
    when_imported("lib", lambda module: when_imported(module.__name__, callback))
    importlib.import_module("lib")

    assert [1] == values


@pytest.mark.faults_logged
@pytest.mark.usefixtures("lib")
def test_raising_callback_is_logged_and_breaks_neither_the_import_nor_the_next_callback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    values, callback = seen()

    def broken(_module: ModuleType) -> None:
        raise LookupError("ours")

    when_imported("lib", broken)
    when_imported("lib", callback)

    assert 1 == importlib.import_module("lib").VALUE
    assert [1] == values
    assert ["otel_kernel"] == [record.name for record in caplog.records if record.levelno >= logging.WARNING]
    assert "instrumenting lib at its import failed in otel-kernel (LookupError" in caplog.text


def test_failing_import_raises_as_ever_and_the_next_one_that_succeeds_is_told_of(lib: Path) -> None:
    values, callback = seen()
    when_imported("lib", callback)
    (lib / "__init__.py").write_text("VALUE = 1\nraise ArithmeticError('theirs')\n")
    with pytest.raises(ArithmeticError, match="theirs"):
        importlib.import_module("lib")

    assert [] == values
    assert "lib" not in sys.modules

    (lib / "__init__.py").write_text("VALUE = 12345\n")
    importlib.invalidate_caches()
    importlib.import_module("lib")

    assert [12345] == values


def test_missing_module_raises_as_ever() -> None:
    when_imported("nowhere", lambda _: None)
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module("nowhere")

    assert "No module named 'nowhere'" == str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.usefixtures("lib")
def test_loader_and_spec_stay_what_they_are() -> None:
    plain = importlib.import_module("lib")
    loader, spec = plain.__loader__, plain.__spec__
    del sys.modules["lib"]
    when_imported("lib", lambda _: None)
    hooked = importlib.import_module("lib")

    assert type(hooked.__loader__) is SourceFileLoader
    assert loader == hooked.__loader__
    assert spec is not None
    assert hooked.__spec__ is not None
    assert hooked.__spec__.loader is hooked.__loader__
    assert repr(spec) == repr(hooked.__spec__).replace(repr(hooked.__loader__), repr(loader))
    assert "exec_module" not in vars(hooked.__loader__)


def test_module_sees_an_untouched_loader_in_its_body(lib: Path) -> None:
    (lib / "__init__.py").write_text("VALUE = 'exec_module' in vars(__loader__)\n")
    values, callback = seen()
    when_imported("lib", callback)
    importlib.import_module("lib")

    assert [False] == values


@pytest.mark.usefixtures("lib")
def test_looking_for_a_module_is_no_import() -> None:
    values, callback = seen()
    when_imported("lib", callback)

    assert importlib.util.find_spec("lib") is not None
    assert [] == values

    importlib.import_module("lib")

    assert [1] == values


@pytest.mark.usefixtures("lib")
def test_module_executed_aside_is_no_import() -> None:
    values, callback = seen()
    when_imported("lib", callback)
    spec = importlib.util.find_spec("lib")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))

    assert [] == values


def test_namespace_package_is_told_of_when_something_of_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "inner.py").write_text("VALUE = 3\n")
    values, callback = seen()
    when_imported("space", callback)
    when_imported("space.inner", callback)
    space = importlib.import_module("space")
    importlib.import_module("space.inner")

    assert ["space", 3] == values
    assert [str(tmp_path / "space")] == list(space.__path__)


@pytest.mark.usefixtures("lib")
def test_module_that_never_comes_harms_nothing() -> None:
    values, callback = seen()
    when_imported("nowhere", callback)

    assert 1 == importlib.import_module("lib").VALUE
    assert [] == values


@pytest.mark.usefixtures("lib")
def test_built_in_module_is_told_of_at_the_next_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "_symtable", raising=False)
    exec_module = BuiltinImporter.__dict__["exec_module"]
    values, callback = seen()
    when_imported("_symtable", callback)
    module = importlib.import_module("_symtable")
    importlib.import_module("lib")

    assert ["_symtable"] == values
    assert "built-in" == getattr(module.__spec__, "origin", None)
    assert BuiltinImporter.__dict__["exec_module"] is exec_module


@pytest.mark.usefixtures("lib")
def test_frozen_module_is_told_of_at_the_next_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "__hello__", raising=False)
    values, callback = seen()
    when_imported("__hello__", callback)
    module = importlib.import_module("__hello__")
    importlib.import_module("lib")

    assert ["__hello__"] == values
    assert "frozen" == getattr(module.__spec__, "origin", None)


def test_extension_module_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(
        name
        for name in ("_lsprof", "_crypt", "_xxtestfuzz", "ossaudiodev", "audioop", "_xxsubinterpreters")
        if name not in sys.modules
        and (spec := importlib.util.find_spec(name)) is not None
        and str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES))
    )
    monkeypatch.delitem(sys.modules, name, raising=False)
    values, callback = seen()
    when_imported(name, callback)
    importlib.import_module(name)

    assert [name] == values


def test_modules_of_one_zip_file_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("zip_a", "zip_b", "zip_c"):
            file.writestr(f"{name}.py", f"VALUE = {name!r}\n")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    values, callback = seen()
    when_imported("zip_a", callback)
    when_imported("zip_c", callback)
    importlib.util.find_spec("zip_a")  # one loader serves the whole file
    importlib.util.find_spec("zip_c")
    importlib.import_module("zip_b")

    assert [] == values

    importlib.import_module("zip_a")
    importlib.import_module("zip_c")

    assert ["zip_a", "zip_c"] == values


def test_lazy_module_of_a_zip_file_is_told_of_after_others_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("zip_a", "zip_b"):
            file.writestr(f"{name}.py", f"VALUE = {name!r}\n")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    values, callback = seen()
    when_imported("zip_a", callback)
    lazy = _load_lazily("zip_a")
    importlib.import_module("zip_b")

    assert [] == values
    assert "zip_a" == lazy.VALUE
    assert ["zip_a"] == values


class _Reading(Loader):
    """Loads by `exec_module`, and has slots."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def exec_module(self, module: ModuleType) -> None:
        exec(self.path.read_text(), module.__dict__)


class _ReadingFinder(MetaPathFinder):
    """Finds `lib` only, by a loader that is given."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self.loader) if fullname == "lib" else None


def test_module_of_a_loader_with_slots_is_told_of_at_the_next_import(lib: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    values, callback = seen()
    when_imported("lib", callback)
    sys.meta_path.insert(0, _ReadingFinder(_Reading(lib / "__init__.py")))
    module = importlib.import_module("lib")
    importlib.import_module("other")

    assert [1] == values
    assert type(module.__loader__) is _Reading


class _AskingFinder(MetaPathFinder):
    """Asks all finders again, as tools do that want to know what the others find."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "lib" or self in self.asking:
            return None
        self.asking.append(self)
        try:
            return importlib.util.find_spec(fullname)
        finally:
            self.asking.remove(self)

    def __init__(self) -> None:
        self.asking: list[object] = []


class _LoopingFinder(MetaPathFinder):
    """Lets the other finders find, as ours does, and relies on them not to ask it again."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "lib":
            return None
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        return next((spec for spec in specs if spec is not None), None)


@pytest.mark.usefixtures("lib")
@pytest.mark.parametrize("first", [True, False])
def test_finder_that_asks_the_others_itself_ends_and_is_told_of_once(first: bool) -> None:
    values, callback = seen()
    when_imported("lib", callback)
    sys.meta_path.insert(0 if first else 1, _LoopingFinder())
    importlib.import_module("lib")

    assert [1] == values


@pytest.mark.usefixtures("lib")
@pytest.mark.parametrize("first", [True, False])
def test_finder_that_asks_all_finders_again_ends_and_is_told_of_once(first: bool) -> None:
    values, callback = seen()
    when_imported("lib", callback)
    sys.meta_path.insert(0 if first else 1, _AskingFinder())
    importlib.import_module("lib")

    assert [1] == values


BESIDE_WRAPT = """
import importlib, sys, wrapt
from otel_kernel.imports import when_imported

told = []
hooks = [
    lambda: when_imported("lib", lambda module: told.append(("ours", module.VALUE))),
    lambda: wrapt.register_post_import_hook(lambda module: told.append(("wrapt's", module.VALUE)), "lib"),
]
for hook in hooks if sys.argv[1] == "True" else reversed(hooks):
    hook()
module = importlib.import_module("lib")
print(sorted(told), type(module.__loader__).__name__, vars(module.__loader__).get("exec_module"))
"""


@pytest.mark.parametrize("ours_first", [True, False])
def test_wrapts_hook_on_a_module_of_a_zip_file_runs_too(tmp_path: Path, ours_first: bool) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("lib.py", "VALUE = 1\n")
    output = run(BESIDE_WRAPT, str(ours_first), path=[ROOT, archive])

    assert output.startswith("[('ours', 1), (\"wrapt's\", 1)] zipimporter ")


@pytest.mark.parametrize("ours_first", [True, False])
def test_wrapts_hook_on_the_same_module_runs_too(lib: Path, ours_first: bool) -> None:
    output = run(BESIDE_WRAPT, str(ours_first), path=[ROOT, lib.parent])

    assert "[('ours', 1), (\"wrapt's\", 1)] SourceFileLoader None\n" == output


@pytest.mark.usefixtures("lib")
@pytest.mark.parametrize("name", ["lib", "_symtable"])
def test_no_import_lock_is_held_while_callbacks_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "_symtable", raising=False)
    held: list[bool] = []
    when_imported(name, lambda _: held.append(_imp.lock_held()))
    importlib.import_module(name)
    importlib.import_module("lib.part")

    assert [False] == held


def test_module_that_puts_another_in_its_place_is_told_of_as_what_importers_get(lib: Path) -> None:
    (lib / "__init__.py").write_text(
        "import sys, types\nsys.modules['lib'] = types.SimpleNamespace(VALUE=7)\n"
    )
    values, callback = seen()
    when_imported("lib", callback)

    assert 7 == importlib.import_module("lib").VALUE
    assert [7] == values


@pytest.mark.usefixtures("lib")
def test_reloading_works_and_tells_nobody_again() -> None:
    values, callback = seen()
    when_imported("lib", callback)
    module: Any = importlib.import_module("lib")
    module.VALUE = 5
    importlib.reload(module)

    assert 1 == module.VALUE
    assert [1] == values


@pytest.mark.usefixtures("lib")
def test_importing_inside_a_callback_works() -> None:
    values, callback = seen()
    when_imported("lib.part", callback)
    when_imported("lib", lambda _: exec("import lib.part"))
    importlib.import_module("lib")

    assert [2] == values


def _load_lazily(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("awaited_first", [True, False])
def test_lazy_module_is_told_of_when_its_body_has_run(lib: Path, tmp_path: Path, awaited_first: bool) -> None:
    ran = tmp_path / "ran"
    (lib / "__init__.py").write_text(f"open({str(ran)!r}, 'x').close()\nVALUE = 1\n")
    (tmp_path / "other.py").write_text("")
    values, callback = seen()
    if awaited_first:
        when_imported("lib", callback)
    module = _load_lazily("lib")
    if not awaited_first:
        when_imported("lib", callback)
    importlib.import_module("other")

    assert not ran.exists()
    assert [] == values
    assert 1 == module.VALUE
    assert [1] == values


class _LazyFinder(MetaPathFinder):
    """Makes every module of the path lazy, as some start-up tools do."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


@pytest.mark.parametrize("ours_first", [True, False])
def test_module_found_lazy_is_told_of_when_its_body_has_run(
    lib: Path, tmp_path: Path, ours_first: bool
) -> None:
    ran = tmp_path / "ran"
    (lib / "__init__.py").write_text(f"open({str(ran)!r}, 'x').close()\nVALUE = 1\n")
    (tmp_path / "other.py").write_text("")
    values, callback = seen()
    when_imported("lib", callback)
    sys.meta_path.insert(1 if ours_first else 0, _LazyFinder())
    module = importlib.import_module("lib")
    sys.meta_path.remove(next(finder for finder in sys.meta_path if type(finder) is _LazyFinder))
    importlib.import_module("other")

    assert not ran.exists()
    assert [] == values
    assert 1 == module.VALUE
    assert [1] == values


def test_module_that_awaits_itself_in_its_body_is_told_of_when_it_is_whole(lib: Path, tmp_path: Path) -> None:
    (lib / "__init__.py").write_text("import hook\nhook.wait()\nVALUE = 1\n")
    (tmp_path / "other.py").write_text("")
    values, callback = seen()
    hook: Any = ModuleType("hook")
    hook.wait = lambda: when_imported("lib", callback)
    sys.modules["hook"] = hook
    importlib.import_module("lib")
    importlib.import_module("other")

    assert [1] == values


def test_module_that_another_thread_is_importing_is_told_of_when_it_is_whole(
    lib: Path, tmp_path: Path
) -> None:
    (lib / "__init__.py").write_text("import hook\nhook.started.set()\nhook.go_on.wait(60)\nVALUE = 1\n")
    (tmp_path / "other.py").write_text("")
    hook: Any = ModuleType("hook")
    hook.started, hook.go_on = threading.Event(), threading.Event()
    sys.modules["hook"] = hook
    values, callback = seen()
    importer = threading.Thread(target=importlib.import_module, args=("lib",))
    importer.start()

    assert hook.started.wait(60)

    when_imported("lib", callback)

    assert [] == values

    hook.go_on.set()
    importer.join()
    importlib.import_module("other")

    assert [1] == values


def test_threads_that_import_while_others_await_lose_nothing(tmp_path: Path) -> None:
    names = [f"many_{index}" for index in range(60)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("VALUE = __name__\n")
    (tmp_path / "last.py").write_text("")
    importlib.invalidate_caches()
    values, callback = seen()
    start = threading.Barrier(4)

    def import_all(order: Sequence[str]) -> None:
        start.wait()
        for name in order:
            importlib.import_module(name)

    def await_all() -> None:
        start.wait()
        for name in names:
            when_imported(name, callback)

    threads = [
        threading.Thread(target=import_all, args=(names,)),
        threading.Thread(target=import_all, args=(names[::-1],)),
        threading.Thread(target=await_all),
        threading.Thread(target=await_all),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    importlib.import_module("last")

    assert not any(thread.is_alive() for thread in threads)
    assert sorted(names * 2) == sorted(values)


def test_hook_imports_nothing_that_a_bare_interpreter_has_not() -> None:
    script = "import sys, otel_kernel; before = set(sys.modules); import otel_kernel.imports; print(*set(sys.modules) - before)"
    output = run(script, options=["-S"], path=[ROOT])
    heavy = {"wrapt", "opentelemetry", "threading", "importlib.util", "contextlib", "typing", "logging", "re"}

    assert "otel_kernel.imports" in output.split()
    assert set() == heavy & set(output.split())
