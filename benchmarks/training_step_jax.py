# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's side of the section `training` of run.py, for an interpreter that has jax: python benchmarks/training_step_jax.py CASE STEPS.

The programs are those of training_jax.py, with AdamW behind the gradients and the state donated. Weights are random: only times are compared.
Prints the losses and the sorted times in ms, as JSON."""
import json
import sys
import time

import training_jax  # first: it tells XLA how many devices there are

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from run_training import OPTIMIZER


def main():
    case, steps = sys.argv[1], int(sys.argv[2])
    kind, rest = case.split("-", 1)
    mesh = jax.make_mesh(training_jax.MESHES[rest], ("dp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    fully = rest == "fully-sharded"

    def sharded(*dims):
        return NamedSharding(mesh, PartitionSpec(*dims))

    table = training_jax.weights(kind)
    shardings = {name: sharded("dp") if fully else sharded(*("tp" if d == dim else None for d in range(len(shape))))
                 for name, (shape, dim) in table.items()}
    stream, data, whole = sharded("dp", None, None), sharded("dp", None), sharded()

    def loss(w, ids, labels):
        if fully:  # gathered for use
            w = {name: jax.lax.with_sharding_constraint(x, whole) for name, x in w.items()}
        return training_jax.loss(kind, w, ids, labels, lambda x: jax.lax.with_sharding_constraint(x, stream),
                                 lambda x: jax.lax.with_sharding_constraint(x, sharded("dp", None, "tp")))

    lr, decay = OPTIMIZER["lr"], OPTIMIZER["weight_decay"]

    def step(w, m, v, t, ids, labels):
        value, gradients = jax.value_and_grad(loss)(w, ids, labels)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
        first, second = 1 - 0.9 ** t, 1 - 0.999 ** t
        w = jax.tree.map(lambda w, m, v: w * (1 - lr * decay) - lr * (m / first) / (jnp.sqrt(v / second) + 1e-8), w, m, v)
        return value, w, m, v, t

    program = jax.jit(step, in_shardings=(shardings, shardings, shardings, whole, data, data),
                      out_shardings=(whole, shardings, shardings, shardings, whole), donate_argnums=(0, 1, 2, 3))
    keys = jax.random.split(jax.random.key(0), len(table) + 1)
    w = {name: jnp.ones(shape) if len(shape) == 1 and not name.endswith("bias") else 0.02 * jax.random.normal(key, shape)
         for (name, (shape, _)), key in zip(table.items(), keys)}
    m, v = (jax.tree.map(jnp.zeros_like, w) for _ in range(2))
    state = [jax.device_put(x, shardings) for x in (w, m, v)] + [jnp.float32(0)]
    ids = jax.random.randint(keys[-1], (training_jax.BATCH, training_jax.SEQUENCE + 1), 0, training_jax.VOCABULARY)
    batch = [jax.device_put(x, data) for x in (ids[:, :-1], ids[:, 1:])]
    times, losses = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        value, *state = jax.block_until_ready(program(*state, *batch))
        times.append((time.perf_counter() - begin) * 1e3)
        losses.append(float(value))
    print(json.dumps({"step_ms": sorted(times[3:]), "losses": losses}))


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_use_shardy_partitioner", True)
    main()
