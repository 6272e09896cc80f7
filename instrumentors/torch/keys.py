"""The keys of Inductor's stores, in texts that can be compared."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

torch: Any = import_module("torch")  # by its own name this folder would be meant, to a type checker

_LINE = re.compile(r"\[(?P<digest>\w+)\] (?P<name>[^:]*): ?(?P<value>.*)", re.DOTALL)
_SHORT = 64
_UNSET = ("", "None", "()", "{}")

_FORWARD = re.compile(r"^    def forward\(self(?:, )?(.*)\):", re.MULTILINE)
_INPUT = re.compile(r'\w+: "([^"]*)"')
_COMMENT = re.compile(r"^\s*#.*\n", re.MULTILINE)


def build_text(compiler: str) -> str:
    """Return the build text of a key.

    Args:
        compiler: what names the backend's compiler, or torch's own sources.
    """
    return f"torch {torch.__version__}\n{torch.version.git_version}\n{compiler}"


def build_name(compiler: str) -> str:
    """Return torch and a compiler in a readable line."""
    return f"torch {torch.__version__}; {compiler}"


def compiler_of(command: str) -> str:
    """Return the compiler of a command line with its version, which torch has asked it for."""
    from torch._inductor.cpp_builder import get_compiler_version_info

    name = command.partition(" ")[0]
    version = re.search(r"(?:gcc|clang|icpx?) version [^ _]+", str(get_compiler_version_info(name)))
    return f"{name} ({version[0]})" if version is not None else name


def graph_build() -> str:
    """Return what names the build that Inductor lowers a graph with; its own key has asked for it."""
    from torch._inductor.codecache import torch_key

    return build_text(torch_key().hex())


def graph_entry(key: str, guards: str | None) -> str:
    """Return what names one artifact: several of them, for other sizes, share Inductor's own key.

    Args:
        key: Inductor's.
        guards: the condition on sizes under which the artifact holds.
    """
    return key if not guards else f"{key}:{hashlib.sha256(guards.encode()).hexdigest()[:16]}"


def graph_components(lines: Iterable[str], guards: str | None) -> dict[str, str]:
    """Return the parts of the key of a graph by name, those that change most often first.

    Args:
        lines: as Inductor writes them for its log: a digest, a name and a value.
        guards: the condition on sizes under which the artifact holds.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            name = match["name"]
            top = name.partition("[")[0].partition(".")[0]
            groups.setdefault(top, []).append((match["digest"], match["value"]))
    parts: dict[str, str] = {
        "graph": _group(groups.pop("gm", ())),
        "inputs": _group(groups.pop("example_inputs", ())),
        "guards": guards or "",
        "options": _group(groups.pop("fx_kwargs", ())),
        "config_changed": changed_config(),
        "config": _group(groups.pop("inductor_config", ())),
    }
    for name, members in groups.items():
        value = members[0][1]
        readable = len(members) == 1 and len(value) <= _SHORT and value.isprintable()
        parts[name] = value if readable else _group(members)
    return {name: value for name, value in parts.items() if value not in _UNSET}


def _group(members: Iterable[tuple[str, str]]) -> str:
    digests = [digest for digest, _ in members]
    if len(digests) == 1:
        return digests[0][:24]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:24]


def changed_config() -> str:
    """Return the settings of Inductor that are part of its key and not as they come, as `name=value`."""
    import torch._inductor.config as settings

    config: Any = settings
    others: list[str] = getattr(config, "_cache_config_ignore_prefix", [])
    changed: dict[str, Any] = config._get_dict(skip_default=True, ignored_prefixes=others)
    return ", ".join(
        f"{name}={value}"
        for name, value in sorted(changed.items())
        if isinstance(value, (bool, int, float, str, type(None))) and value != config._config[name].default
    )


def specialization(graph: str) -> str:
    """Return the kinds, sizes and devices of the inputs of a graph.

    Args:
        graph: the lowered graph, as Inductor keeps it with the artifact.
    """
    match = _FORWARD.search(graph)
    inputs = _INPUT.findall(match[1]) if match is not None else []
    runs = ((kind, len(list(run))) for kind, run in itertools.groupby(inputs))
    return ", ".join(kind if count == 1 else f"{kind} x{count}" for kind, count in runs)


def graph_digest(graph: str) -> str:
    """Return the digest of a lowered graph without its comments, which hold paths of the host."""
    return hashlib.sha256(_COMMENT.sub("", graph).encode()).hexdigest()


def command_components(command: str) -> dict[str, str]:
    """Return the parts of a compiler's command line: definitions, flags, libraries.

    Args:
        command: as Inductor hashes it.
    """
    words = command.split()
    parts: dict[str, list[str]] = {"definitions": [], "flags": [], "libraries": []}
    for before, word in itertools.pairwise(words):
        if before == "-D":
            parts["definitions"].append(word)
        elif word.startswith(("-l", "-L")):
            parts["libraries"].append(word)
        elif word.startswith("-") and word not in ("-D", "-o") and not word.startswith("-I"):
            parts["flags"].append(word)
    return {name: " ".join(values) for name, values in parts.items()}


def cpu_target(command: str) -> str:
    """Return `cpu:` and the vector instructions that a command line asks for."""
    capability = re.search(r"CPU_CAPABILITY_(\w+)", command)
    return f"cpu:{capability[1].lower()}" if capability is not None else "cpu:scalar"
