"""A Python child in a cleaned environment is noticed, and `subprocess.Popen` is what it was."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_kernel import boot, children

CLEAN = {"PATH": os.environ["PATH"]}
BOOTING = {**CLEAN, boot.BOOT_VARIABLE: "1"}
NOTHING = [sys.executable, "-S", "-c", "pass"]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where words are left; `Popen` is watched, in a process that has booted."""
    monkeypatch.setenv(boot.BOOT_VARIABLE, "1")
    monkeypatch.setattr(boot, "_folder", str(tmp_path))
    monkeypatch.setattr(subprocess.Popen, "__init__", subprocess.Popen.__init__)
    children.watch()
    return tmp_path


def _word(words: Path) -> str | None:
    word = words / boot.STRIPPED
    return word.read_text() if word.exists() else None


@pytest.mark.parametrize(
    ("args", "options", "word"),
    [
        (NOTHING, {"env": CLEAN}, sys.executable),
        (NOTHING, {"env": {}}, sys.executable),
        (NOTHING, {"env": BOOTING}, None),
        (NOTHING, {"env": {os.fsencode(name): value for name, value in BOOTING.items()}}, None),
        (NOTHING, {}, None),
        (["python3.11", "-S", "-c", "pass"], {"env": CLEAN, "executable": "/usr/bin/true"}, None),
        (["anything", "-S", "-c", "pass"], {"env": CLEAN, "executable": sys.executable}, sys.executable),
        ("true", {"env": CLEAN}, None),
        (b"true", {"env": CLEAN}, None),
        (Path("/usr/bin/true"), {"env": CLEAN}, None),
        (f"{sys.executable} -S -c pass", {"env": CLEAN, "shell": True}, sys.executable),
        (f"{sys.executable} -S -c pass".encode(), {"env": CLEAN, "shell": True}, sys.executable),
        (iter(NOTHING), {"env": BOOTING}, None),
    ],
)
def test_child_is_noticed_when_it_cannot_boot(
    args: Any, options: dict[str, Any], word: str | None, words: Path
) -> None:
    subprocess.run(args, check=True, **options)

    assert word == _word(words)


def test_environment_by_position_is_noticed(words: Path) -> None:
    with subprocess.Popen(NOTHING, -1, None, None, None, None, None, True, False, None, CLEAN) as process:
        assert 0 == process.wait()
    assert sys.executable == _word(words)


def test_environment_that_the_program_has_cleaned_for_itself_is_noticed(
    words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(boot.BOOT_VARIABLE)
    subprocess.run(NOTHING, check=True)

    assert sys.executable == _word(words)


def test_child_of_asyncio_is_noticed(words: Path) -> None:
    async def start() -> int:
        process = await asyncio.create_subprocess_exec(*NOTHING, env=CLEAN)
        return await process.wait()

    assert 0 == asyncio.run(start())
    assert sys.executable == _word(words)


@pytest.mark.parametrize("name", ["python", "python3", "python3.14t", "pypy3.11", "/usr/bin/python3.9"])
def test_names_of_python(name: str, words: Path) -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.Popen([name], env={}, cwd="/no/such/folder")

    assert name == _word(words)


@pytest.mark.parametrize("name", ["pythonista", "ipython-like", "python3-config", "bash", "", "/"])
def test_names_of_other_programs(name: str, words: Path) -> None:
    with pytest.raises(OSError):
        subprocess.Popen([name], env={}, cwd="/no/such/folder")

    assert _word(words) is None


_REFUSED: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((None,), {"env": {}}),
    (([],), {"env": {}}),
    ((5,), {"env": {}}),
    ((NOTHING,), {"env": 5}),
    ((NOTHING,), {"no_such_option": 1}),
    ((["/no/such/program"],), {"env": {}}),
    ((NOTHING, "not a size"), {}),
]


@pytest.mark.parametrize(("args", "options"), _REFUSED)
def test_popen_refuses_what_it_refused_in_its_own_words(
    args: tuple[Any, ...], options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    refused: list[tuple[type, str]] = []
    for _ in range(2):
        with pytest.raises(Exception) as caught:
            subprocess.Popen(*args, **options)
        refused.append((type(caught.value), str(caught.value)))
        request.getfixturevalue("words")

    assert refused[0] == refused[1]


def test_popen_keeps_its_signature_and_its_subclasses(words: Path) -> None:
    class Mine(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    with Mine(NOTHING, env=CLEAN) as process:
        assert 0 == process.wait()
    original = inspect.unwrap(subprocess.Popen.__init__)
    assert original is not subprocess.Popen.__init__
    assert inspect.signature(original) == inspect.signature(subprocess.Popen.__init__)
    assert "subprocess" == subprocess.Popen.__init__.__module__
    assert sys.executable == _word(words)


def test_only_the_first_child_is_told_of(words: Path) -> None:
    subprocess.run(NOTHING, check=True, env=CLEAN)
    subprocess.run(["python3", "-S", "-c", "pass"], check=False, env=CLEAN)

    assert sys.executable == _word(words)
