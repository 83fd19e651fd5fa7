# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's side of least_bytes.py, for an interpreter that has jax: python benchmarks/least_bytes_jax.py RANKS GRAPH ... prints {graph: [bytes, what is wrong]}.

The functions of small_graphs.py in jax.numpy, and those of spatial_jax.py. Each is compiled for host devices with the shardings of the list (Shardy), its
collectives are read from the optimised HLO, and its values are compared with those of one device. Of what goes from rank to rank the larger of what a rank
sends and what it gets counts, over the whole program. JAX takes shardings only of dims that the axis divides: others are refused."""
import json
import os
import re
import sys

RANKS = int(sys.argv[1])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={RANKS}"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.nn import gelu, log_softmax, relu, softmax  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402
from redistribution import collectives  # noqa: E402
from spatial_jax import FUNCTIONS as SPATIAL  # noqa: E402

LOOKED_UP = numpy.array([0, 5, 11, 3])


def norm_rows(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def rows(before, after=0):
    return lambda x: jnp.pad(x, ((before, after), (0, 0)))


FUNCTIONS = {
    "slice, first row cut off": lambda x: x[1:],
    "slice, last row cut off": lambda x: x[:-1],
    "slice, last three cut off": lambda x: x[:-3],
    "slice from the middle": lambda x: x[3:10],
    "slice of a third": lambda x: x[:4],
    "slice of columns, rows sharded": lambda x: x[:, 1:4],
    "slice, first columns": lambda x: x[:, 2:],
    "every second row": lambda x: x[::2],
    "every third row": lambda x: x[1::3],
    "rows to all": lambda x: x[2:7],
    "one row to all": lambda x: x[4],
    "differences": lambda x: x[1:] - x[:-1],
    "second differences": lambda x: x[2:] - 2 * x[1:-1] + x[:-2],
    "pad before": rows(1),
    "pad after": rows(0, 3),
    "pad on both sides": rows(2, 2),
    "pad with a value": lambda x: jnp.pad(x, ((0, 0), (2, 1)), constant_values=1.0),
    "pad of the other dim": lambda x: jnp.pad(x, ((0, 0), (1, 2))),
    "pad and cut": lambda x: jnp.pad(x, ((1, 0), (0, 0)))[:-1],
    "roll by one": lambda x: jnp.roll(x, 1, 0),
    "roll back by two": lambda x: jnp.roll(x, -2, 0),
    "roll of the other dim": lambda x: jnp.roll(x, 2, 1),
    "rolled and cut": lambda x: jnp.roll(x, 3, 0)[2:9],
    "flip of the other dim": lambda x: jnp.flip(x, 1),
    "flip": lambda x: jnp.flip(x, 0),
    "flip of even parts": lambda x: jnp.flip(x, 0),
    "flip and cut": lambda x: jnp.flip(x, 0)[3:],
    "flip to all": lambda x: jnp.flip(x, 0),
    "cat of a tensor and a few rows": lambda x, y: jnp.concatenate([x, y]),
    "cat, few rows first": lambda x, y: jnp.concatenate([y, x]),
    "cat of three": lambda x, y, z: jnp.concatenate([y, x, z]),
    "cat of equal parts": lambda x, y: jnp.concatenate([x, y]),
    "cat of the other dim": lambda x, y: jnp.concatenate([x, y], 1),
    "cat of replicated rows": lambda x, y: jnp.concatenate([y, x]),
    "cat to all": lambda x, y: jnp.concatenate([x, y]),
    "halves change places": lambda x: jnp.concatenate([x[7:], x[:7]]),
    "a row before, a row less": lambda x, y: jnp.concatenate([y, x[:-1]]),
    "stack": lambda x, y: jnp.stack([x, y], 1),
    "split of the other dim": lambda x: jnp.split(x, [2], 1)[1],
    "split into unequal parts": lambda x: jnp.split(x, [3, 11]),
    "chunks": lambda x: jnp.split(x, [5, 10]),
    "chunks of equal parts": lambda x: jnp.split(x, 2),
    "view, split": lambda x: x.reshape(6, 2, 5),
    "view, merge": lambda x: x.reshape(12, 5),
    "view, merge of a short dim": lambda x: x.reshape(35),
    "view, heads": lambda x: x.reshape(5, 6, 3).swapaxes(0, 1),
    "view, merge and split": lambda x: x.reshape(4, 3, 5),
    "view, other rows": lambda x: x.reshape(12, 5),
    "view, long rows": lambda x: x.reshape(7, 9),
    "view, rows to columns": lambda x: x.reshape(3, 4, 5).swapaxes(0, 1).reshape(12, 5),
    "transpose": lambda x: x.T,
    "transpose to the other dim": lambda x: x.T,
    "permutation of three dims": lambda x: x.transpose(2, 0, 1),
    "unsqueeze and expand": lambda x: jnp.broadcast_to(x[:, None], (13, 3, 5)),
    "repeat": lambda x: jnp.tile(x, (2, 1)),
    "repeat of the other dim": lambda x: jnp.tile(x, (1, 2)),
    "each row twice": lambda x: jnp.repeat(x, 2, 0),
    "rows of two in turn": lambda x, y: jnp.stack([x, y], 1).reshape(26, 5),
    "index_select of the other dim": lambda x: x[:, numpy.array([0, 3, 3])],
    "index_select": lambda x: x[numpy.array([12, 0, 3, 3, 7])],
    "gather everything": lambda x: x * 1.5,
    "select": lambda x: x[:, 2],
    "lower triangle": lambda x: jnp.tril(x),
    "upper triangle": lambda x: jnp.triu(x, 1),
    "slice, 2 x 2": lambda x: x[1:, 2:],
    "pad, 2 x 2": lambda x: jnp.pad(x, ((2, 0), (1, 2))),
    "flip, 2 x 2": lambda x: jnp.flip(x, 0),
    "flip of both dims, 2 x 2": lambda x: jnp.flip(x),
    "roll, nested": lambda x: jnp.roll(x, 1, 0),
    "cat, nested": lambda x, y: jnp.concatenate([y, x]),
    "flip, nested": lambda x: jnp.flip(x, 0),
    "slice with a copy": lambda x: x[1:],
    "split, 2 x 2": lambda x: jnp.split(x, [3]),
    "transpose, 2 x 2": lambda x: x.T,
    "product, columns then rows": lambda x, v, w: relu(x @ v) @ w,
    "linear with a bias": lambda x, w, b: x @ w.T + b,
    "outer product": lambda x, y: x[:, None] * y,
    "sum to a number": lambda x: x.sum(),
    "sum to a number, 2 x 2": lambda x: x.sum(),
    "mean over the sharded dim": lambda x: x.mean(0),
    "sum over the other dim": lambda x: x.sum(1),
    "sum to shards": lambda x: x.sum(0),
    "largest": lambda x: x.max(0),
    "place of the largest": lambda x: x.argmax(0),
    "variance": lambda x: x.var(0, ddof=1),
    "softmax over the other dim": lambda x: softmax(x, 1),
    "softmax over the sharded dim": lambda x: softmax(x, 0),
    "logarithm of sums": lambda x: jax.nn.logsumexp(x, 0),
    "layer norm": norm_rows,
    "layer norm of a sharded dim": norm_rows,
    "rms norm over the sharded dim": lambda x: x * jax.lax.rsqrt((x * x).mean(0, keepdims=True) + 1e-3),
    "norm of columns": lambda x: jnp.sqrt((x * x).sum(0)),
    "embedding, rows sharded": lambda t: t[LOOKED_UP],
    "embedding, columns sharded": lambda t: t[LOOKED_UP],
    "lookups sharded": lambda x: jnp.take_along_axis(x, numpy.zeros((13, 2), int), 1),
    "attention, heads sharded": lambda q: softmax(q @ q.swapaxes(2, 3) / 3**0.5) @ q,
    "cumulative sum of the other dim": lambda x: x.cumsum(1),
    "cumulative sum": lambda x: x.cumsum(0),
    "bias and activation": lambda x, b: gelu(x + b, approximate=False),
    "standardised columns": lambda x: (x - x.mean(0)) / 2,
    "masked sum": lambda x: jnp.where(x > 0, x, 0).sum(0),
    "largest three of each row": lambda x: jax.lax.top_k(x, 3)[0],
    "sorted rows": lambda x: jnp.sort(x, 1),
    "mean square error": lambda x, y: ((x - y) ** 2).mean(),
    "cross entropy, rows sharded": lambda x: -jnp.take_along_axis(log_softmax(x), (numpy.arange(13) % 5)[:, None], 1).mean(),
    "cross entropy, classes sharded": lambda x: -jnp.take_along_axis(log_softmax(x), (numpy.arange(5) * 3)[:, None], 1).mean(),
}
FUNCTIONS |= dict.fromkeys(("product to shards", "product, rows sharded", "product, columns sharded", "product, all of both", "product, inner dim of one",
                            "batched product", "product, 2 x 2", "product of inner parts, 2 x 2"), lambda x, w: x @ w)


def leaves(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def measure(case):
    mesh = tuple(case["mesh"])
    names = ("dp", "tp")[-len(mesh):]
    devices = jax.make_mesh(mesh, names, axis_types=(jax.sharding.AxisType.Auto,) * len(mesh))

    def sharding(dims):
        by_dim = {}
        for name, dim in zip(names, dims, strict=True):
            by_dim.setdefault(dim, []).append(name)
        most = max((dim for dim in by_dim if dim is not None), default=-1)
        return NamedSharding(devices, PartitionSpec(*(tuple(by_dim.get(dim, ())) or None for dim in range(most + 1))))

    name = case["graph"].removeprefix("backward of: ")
    if not case["spatial"]:
        return compiled(case, FUNCTIONS[name], mesh, sharding)
    ways = SPATIAL[name.rpartition(" (")[0]]
    tried = [attempt(compiled, case, way, mesh, sharding) for way in (ways if isinstance(ways, tuple) else (ways,))]
    return min(tried, key=lambda figures: (bool(figures[1]), figures[0]))


def compiled(case, function, mesh, sharding):
    draw = numpy.random.default_rng(0)
    values = [draw.standard_normal(shape, "float32") for shape in case["shapes"]]
    given, out = [sharding(dims) for dims in case["given"]], sharding(case["out"])
    spatial = case["spatial"]
    if case["backward"]:
        weights = [draw.standard_normal(y.shape, "float32") for y in leaves(jax.eval_shape(function, *values))]

        def program(x, w):
            def loss(*x):
                results = leaves(function(*x))
                return sum(((jnp.sin(y) if spatial else y) * v).sum() for y, v in zip(results, w)), results if spatial else []
            return jax.value_and_grad(loss, tuple(range(len(x))), has_aux=True)(*x)
        arguments, shardings = (values, weights), (given, [out] * len(weights))
        outs = ((sharding([None] * len(mesh)), [out] * len(weights) if spatial else []), tuple(given))
    else:
        def program(*x):
            return leaves(function(*x))
        arguments, shardings, outs = values, tuple(given), out
    made = jax.jit(program, in_shardings=shardings, out_shardings=outs).lower(*arguments).compile()
    at_places = jax.device_put(arguments, shardings if case["backward"] else list(shardings))
    wants, got = (jax.tree.leaves(results) for results in (jax.jit(program)(*arguments), made(*at_places)))
    right = all(numpy.allclose(numpy.asarray(g), numpy.asarray(w), 1e-4, 1e-5) for g, w in zip(got, wants, strict=True))
    return moved(made.as_text(), mesh), "" if right else "differs"


def moved(hlo, mesh):
    """Bytes of the rank that has most."""
    lines = hlo.splitlines()
    permutes = [line for line in lines if re.search(r" collective-permute(-start)?\(", line)]
    total = sum(size for size, _ in collectives("\n".join(line for line in lines if line not in permutes), mesh))
    sent, come = {}, {}
    for line in permutes:
        size = sum(size for size, _ in collectives(line, mesh))
        for source, target in re.findall(r"(\d+),(\d+)", re.search(r"source_target_pairs=\{(.*?)\}\}", line).group(1)):
            if source != target:
                sent[source], come[target] = sent.get(source, 0) + size, come.get(target, 0) + size
    return total + max([0, *sent.values(), *come.values()])


def attempt(measured, case, *arguments):
    try:
        return measured(case, *arguments)
    except Exception as error:
        why = re.search(r"axis \d+ is partitioned \d+ times, but the dimension size is \d+", str(error))
        return 0, "refused: " + (why.group(0) if why else (str(error).strip().splitlines() or [type(error).__name__])[0])[:120]


def main():
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_use_shardy_partitioner", True)
    found = {}
    for case in json.load(sys.stdin):
        found[case["graph"]] = attempt(measure, case)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
