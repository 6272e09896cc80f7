"""The key of an executable in JAX's store, and what goes into it."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import Any

import jaxlib.version
from jax._src import cache_key, config

# Folders below the cache folder, which come with it and not from the program.
_FOLDER_OPTIONS = ("xla_gpu_per_fusion_autotune_cache_dir", "xla_gpu_kernel_cache_file")


class _Fed:
    """Stands in for a hash and keeps what JAX feeds into it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def update(self, part: bytes) -> None:
        self.parts.append(part)

    def text(self) -> str:
        return " ".join(part.decode("utf-8", "backslashreplace") for part in self.parts)

    def digest(self) -> str:
        return hashlib.sha256(b"".join(self.parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class Inputs:
    """What went into one of the keys of a trip, of which JAX looks up only one."""

    options: Any
    compression: str


def build(backend: Any) -> str:
    """Return jaxlib's version and commit, the platform and its version."""
    commit = getattr(jaxlib.version, "_git_hash", None)
    jaxlib_version = jaxlib.version.__version__ + (f" ({commit[:12]})" if commit else "")
    return f"jaxlib {jaxlib_version}; {backend.platform}; {backend.platform_version}"


def components(
    module: Any, devices: Any, backend: Any, module_digest: str | None, inputs: Inputs | None
) -> dict[str, str]:
    """Return the parts of a key, as JAX's own functions read them.

    Args:
        module: the StableHLO module.
        devices: an array of devices.
        backend: the client.
        module_digest: of the module, where JAX has let us see it.
        inputs: what else went into the key, where JAX has let us see it.
    """
    flags, topology = _Fed(), _Fed()
    cache_key._hash_xla_flags(flags, cache_key.get_flag_prefixes())
    cache_key._hash_accelerator_config(topology, devices)
    kinds = dict.fromkeys(device.device_kind for device in devices.flat)
    found = {
        "name": module_name(module),
        "module": module_digest or "",
        "jaxlib": jaxlib.version.__version__,
        "platform": f"{backend.platform} {backend.platform_version}",
        "xla_flags": flags.text(),
        **(_of_options(inputs.options, backend) if inputs is not None else {}),
        "devices": f"{devices.size} x {', '.join(kinds)}",
        "topology": topology.digest(),
        "compression": inputs.compression if inputs is not None else "",
        "custom_hook": cache_key.custom_hook(),
    }
    return {name: value for name, value in found.items() if value}


def _of_options(options: Any, backend: Any) -> dict[str, str]:
    """Return the compiler's options of this function, those that name cache folders, and all others."""
    options = copy.deepcopy(options)
    own = " ".join(f"{name}={value}" for name, value in options.env_option_overrides)
    options.env_option_overrides = []
    with_folders = _fed_options(options, backend)
    folders = _take_folders(options)
    without_folders = _fed_options(options, backend)
    return {
        "options": own,
        "compile_options": without_folders.digest(),
        "cache_folders": folders if with_folders.parts != without_folders.parts else "",
    }


def _fed_options(options: Any, backend: Any) -> _Fed:
    fed = _Fed()
    cache_key._hash_serialized_compile_options(
        fed, options, strip_device_assignment=backend.platform == "gpu"
    )
    return fed


def _take_folders(options: Any) -> str:
    """Take the folders out of the options and return them."""
    debug_options = options.executable_build_options.debug_options
    folders: list[str] = []
    for name in _FOLDER_OPTIONS:
        folder = getattr(debug_options, name, "")
        if folder:
            folders.append(folder)
            setattr(debug_options, name, "")
    return " ".join(folders)


def module_name(module: Any) -> str:
    """Return the name of a module, which is XLA's name of the kernel too."""
    return str(module.operation.attributes["sym_name"].value)


def code_digest(module: Any, module_digest: str | None) -> str:
    """Return the digest of a module without locations: JAX's own, unless that holds locations or there is none."""
    if module_digest is not None and not config.compilation_cache_include_metadata_in_key.value:
        return module_digest
    # The second parameter says which callbacks to leave out: none, by an enum up to 0.10 and a bool later.
    canonicalize: Any = cache_key._canonicalize_ir
    return hashlib.sha256(canonicalize(module, False)).hexdigest()
