"""One of several processes of a JAX job, which share what one of them compiles.

Arguments: its number, the number of processes, the coordinator's address.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import reporting
from jax._src import cache_key
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def same_for_all(hash_obj: object, devices: object) -> None:
    """Stand in for the one part of the key in which processes on CPUs differ, which keeps them from sharing."""


def main(number: int, processes: int, coordinator: str) -> None:
    jax.distributed.initialize(coordinator, num_processes=processes, process_id=number)
    devices = np.array(jax.devices())
    assert devices.size == processes
    sharded = NamedSharding(Mesh(devices, ("rows",)), PartitionSpec("rows"))
    argument = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=sharded)

    def shared(x):  # type: ignore[no-untyped-def] # JAX's
        return jnp.sin(x) * 2

    # Twice: JAX answers the second from what it has shared before.
    jax.jit(shared).lower(argument).compile()
    jax.clear_caches()
    jax.jit(shared).lower(argument).compile()
    jax.distributed.shutdown()


if __name__ == "__main__":
    reporting.report()
    cache_key._hash_accelerator_config = same_for_all
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
