"""A function over all devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import reporting
from jax.sharding import Mesh, NamedSharding, PartitionSpec

reporting.report()

mesh = Mesh(np.array(jax.devices()), ("rows",))


def sharded(x):  # type: ignore[no-untyped-def] # JAX's
    return jnp.sin(x) @ x.T


argument = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(mesh, PartitionSpec("rows")))
jax.jit(sharded).lower(argument).compile()
