# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's side of training_bytes.py, for an interpreter that has jax: python benchmarks/training_jax.py ROW ... prints {row: bytes}.

The models of models.py as functions of their weights, with shardings of weights, batch, residual stream and logits; XLA partitions the
loss and its gradients for four devices of the CPU. Bytes are those of the collectives in the compiled program."""
import json
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from redistribution import collectives  # noqa: E402

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, SEQUENCE = 4, 256, 8, 1024, 4, 128
MESHES = {"tp4": (1, 4), "dp4": (4, 1), "dp2-tp2": (2, 2), "fully-sharded": (4, 1), "tp4-sequence": (1, 4),
          "dp2-tp2-sequence": (2, 2)}


def weights(kind):
    """{name: (shape, dim that tensor parallelism shards, or None)}; linears are [in, out]."""
    table = {"wte": ((VOCABULARY, WIDTH), 0), "head": ((WIDTH, VOCABULARY), 1)}
    norm = {"": ((WIDTH,), None)} | ({".bias": ((WIDTH,), None)} if kind == "gpt" else {})
    linears = {"q": (WIDTH, WIDTH, 1), "k": (WIDTH, WIDTH, 1), "v": (WIDTH, WIDTH, 1), "o": (WIDTH, WIDTH, 0)}
    if kind == "gpt":
        table["wpe"] = ((SEQUENCE, WIDTH), None)
        linears |= {"up": (WIDTH, 4 * WIDTH, 1), "down": (4 * WIDTH, WIDTH, 0)}
    else:
        linears |= {"k": (WIDTH, WIDTH // 2, 1), "v": (WIDTH, WIDTH // 2, 1), "gate": (WIDTH, 768, 1), "up": (WIDTH, 768, 1),
                    "down": (768, WIDTH, 0)}
    table |= {"norm" + end: w for end, w in norm.items()}
    for layer in range(LAYERS):
        for name in ("norm_1", "norm_2"):
            table |= {f"{layer}.{name}{end}": w for end, w in norm.items()}
        for name, (rows, columns, dim) in linears.items():
            table[f"{layer}.{name}"] = ((rows, columns), dim)
            if kind == "gpt":
                table[f"{layer}.{name}.bias"] = ((columns,), 0 if dim == 1 else None)
    return table


def rotate(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[2], dtype=jnp.float32)[:, None] * 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    cos, sin, first, second = jnp.cos(angle), jnp.sin(angle), x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def loss(kind, w, ids, labels, residual, logits_are):
    def norm(x, name):
        if kind == "gpt":
            x = x - x.mean(-1, keepdims=True)
        y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name]
        return residual(y + w[name + ".bias"] if kind == "gpt" else y)

    def linear(x, name):
        return x @ w[name] + (w[name + ".bias"] if name + ".bias" in w else 0.0)

    def heads(x):
        return x.reshape(*x.shape[:2], -1, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def attention(x, layer):
        q, k, v = (heads(linear(x, f"{layer}.{name}")) for name in "qkv")
        if kind == "llama":
            q, k = rotate(q), rotate(k)
            k, v = (jnp.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / (WIDTH // HEADS) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((SEQUENCE, SEQUENCE), bool)), scores, -jnp.inf)
        y = jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores), v)
        return linear(y.transpose(0, 2, 1, 3).reshape(x.shape), f"{layer}.o")

    x = w["wte"][ids]
    x = residual(x + w["wpe"] if kind == "gpt" else x)
    for layer in range(LAYERS):
        x = residual(x + residual(attention(norm(x, f"{layer}.norm_1"), layer)))
        y = norm(x, f"{layer}.norm_2")
        hidden = jax.nn.gelu(linear(y, f"{layer}.up")) if kind == "gpt" else jax.nn.silu(y @ w[f"{layer}.gate"]) * (y @ w[f"{layer}.up"])
        x = residual(x + residual(linear(hidden, f"{layer}.down")))
    logits = logits_are(norm(x, "norm") @ w["head"])
    at_label = (logits * jax.nn.one_hot(labels, VOCABULARY, dtype=logits.dtype)).sum(-1)
    return (jax.nn.logsumexp(logits, axis=-1) - at_label).mean()


def measure(case):
    kind, rest = case.split("-", 1)
    mesh = jax.make_mesh(MESHES[rest], ("dp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def sharded(*dims):
        return NamedSharding(mesh, PartitionSpec(*dims))

    def of_weight(shape, dim):
        if rest == "fully-sharded":
            return sharded("dp")
        return sharded(*("tp" if d == dim else None for d in range(len(shape))))

    table = weights(kind)
    shardings = {name: of_weight(*w) for name, w in table.items()}
    stream = sharded("dp", "tp" if rest.endswith("sequence") else None, None)
    data = sharded("dp", None)

    def run(w, ids, labels):
        if rest == "fully-sharded":  # gathered for use; left to itself, XLA moves activations instead, and more of them
            w = {name: jax.lax.with_sharding_constraint(x, sharded()) for name, x in w.items()}
        return loss(kind, w, ids, labels, lambda x: jax.lax.with_sharding_constraint(x, stream),
                    lambda x: jax.lax.with_sharding_constraint(x, sharded("dp", None, "tp")))

    step = jax.jit(jax.value_and_grad(run), in_shardings=(shardings, data, data), out_shardings=(sharded(), shardings))
    shapes = {name: jax.ShapeDtypeStruct(shape, "float32") for name, (shape, _) in table.items()}
    ids = jax.ShapeDtypeStruct((BATCH, SEQUENCE), "int32")
    text = step.lower(shapes, ids, ids).compile().as_text()
    return sum(size for size, _ in collectives(text, MESHES[rest]))


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_use_shardy_partitioner", True)
    print(json.dumps({case: measure(case) for case in sys.argv[1:]}))
