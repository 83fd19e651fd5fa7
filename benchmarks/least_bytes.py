#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that small graphs with odd shapes move, beside the least that is possible, and whether each is right.

  .venv/bin/python benchmarks/least_bytes.py [--only PATTERN] [--json FILE]

A figure is the most that a rank sends or gets in a collective of its group, summed over collectives, as `shardc explain` reports it; an all-gather of B bytes
is (n-1)/n B to each rank, and an all-reduce twice that. There are two kinds of graphs:

- those that move elements. Their least is found by brute force: the function is run on the numbers of the elements; a rank that is to have an element of
  the result needs the elements that it is made of, and gets each that it does not have from the one rank that has it. The most that a rank gets or gives is
  the least possible.
- those that compute. Each has a formula and its reason: `B(shape)` are the bytes of a tensor of f32."""
import argparse
import fnmatch
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/export"))

import shardc_export  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


def B(*shape):
    return 4 * math.prod(shape)


def all_gather(n, size):
    return (n - 1) / n * size


def all_reduce(n, size):
    return 2 * all_gather(n, size)


# Name: (function, shapes of inputs, {input number: dim that is sharded}, dim that outputs are sharded on or None where they are replicated).
MOVED = {
    "slice, first row cut off": (lambda x: x[1:], [(13, 5)], {0: 0}, 0),
    "slice, last row cut off": (lambda x: x[:-1], [(13, 5)], {0: 0}, 0),
    "slice, last three cut off": (lambda x: x[:-3], [(14, 5)], {0: 0}, 0),
    "slice from the middle": (lambda x: x[3:10], [(13, 5)], {0: 0}, 0),
    "slice of columns, rows sharded": (lambda x: x[:, 1:4], [(13, 5)], {0: 0}, 0),
    "slice, first columns": (lambda x: x[:, 2:], [(5, 13)], {0: 1}, 1),
    "differences": (lambda x: x[1:] - x[:-1], [(12, 5)], {0: 0}, 0),
    "second differences": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], [(15, 5)], {0: 0}, 0),
    "pad before": (lambda x: F.pad(x, (0, 0, 1, 0)), [(13, 5)], {0: 0}, 0),
    "pad after": (lambda x: F.pad(x, (0, 0, 0, 3)), [(13, 5)], {0: 0}, 0),
    "pad on both sides": (lambda x: F.pad(x, (0, 0, 2, 2)), [(13, 5)], {0: 0}, 0),
    "pad with a value": (lambda x: F.pad(x, (2, 1), value=1.0), [(5, 13)], {0: 1}, 1),
    "pad of the other dim": (lambda x: F.pad(x, (1, 2)), [(13, 5)], {0: 0}, 0),
    "pad and cut": (lambda x: F.pad(x, (0, 0, 1, -1)), [(13, 5)], {0: 0}, 0),
    "roll by one": (lambda x: x.roll(1, 0), [(13, 5)], {0: 0}, 0),
    "roll back by two": (lambda x: x.roll(-2, 0), [(13, 5)], {0: 0}, 0),
    "roll of the other dim": (lambda x: x.roll(2, 1), [(13, 5)], {0: 0}, 0),
    "flip of the other dim": (lambda x: x.flip(1), [(13, 5)], {0: 0}, 0),
    "flip": (lambda x: x.flip(0), [(13, 5)], {0: 0}, 0),
    "cat of a tensor and a few rows": (lambda x, y: torch.cat([x, y]), [(13, 5), (3, 5)], {0: 0, 1: 0}, 0),
    "cat, few rows first": (lambda x, y: torch.cat([y, x]), [(13, 5), (3, 5)], {0: 0, 1: 0}, 0),
    "cat of the other dim": (lambda x, y: torch.cat([x, y], 1), [(13, 5), (13, 3)], {0: 0, 1: 0}, 0),
    "cat of replicated rows": (lambda x, y: torch.cat([y, x]), [(13, 5), (2, 5)], {0: 0}, 0),
    "stack": (lambda x, y: torch.stack([x, y], 1), [(13, 5), (13, 5)], {0: 0, 1: 0}, 0),
    "split of the other dim": (lambda x: x.split([2, 3], 1)[1], [(13, 5)], {0: 0}, 0),
    "view, split": (lambda x: x.view(6, 2, 5), [(12, 5)], {0: 0}, 0),
    "view, merge": (lambda x: x.flatten(0, 1), [(6, 2, 5)], {0: 0}, 0),
    "view, heads": (lambda x: x.view(5, 6, 3).transpose(0, 1), [(5, 18)], {0: 1}, 0),
    "view, merge and split": (lambda x: x.reshape(4, 3, 5), [(12, 5)], {0: 0}, 0),
    "transpose": (lambda x: x.t(), [(13, 5)], {0: 0}, 1),
    "transpose to the other dim": (lambda x: x.t(), [(12, 6)], {0: 0}, 0),
    "unsqueeze and expand": (lambda x: x[:, None].expand(13, 3, 5), [(13, 5)], {0: 0}, 0),
    "repeat of the other dim": (lambda x: x.repeat(1, 2), [(13, 5)], {0: 0}, 0),
    "index_select of the other dim": (lambda x: x.index_select(1, torch.tensor([0, 3, 3])), [(13, 5)], {0: 0}, 0),
    "gather everything": (lambda x: x * 1.5, [(13, 5)], {0: 0}, None),
    "select": (lambda x: x[:, 2], [(13, 5)], {0: 0}, 0),
    "triangle": (lambda x: x.tril(), [(13, 13)], {0: 0}, 0),
}
# Name: (function, shapes, {input: dim}, output dim, least(n), why).
COMPUTED = {
    "product, columns then rows": (lambda x, v, w: (x @ v).relu() @ w, [(5, 7), (7, 12), (12, 3)], {1: 1, 2: 0}, None,
                                   lambda n: all_reduce(n, B(5, 3)), "the sum over the hidden features is of all ranks"),
    "product to shards": (lambda x, w: x @ w, [(6, 12), (12, 5)], {0: 1, 1: 0}, 0, lambda n: all_gather(n, B(6, 5)), "reduce-scatter of the product"),
    "product, rows sharded": (lambda x, w: x @ w, [(13, 7), (7, 5)], {0: 0}, 0, lambda n: 0, "each row is its rank's own"),
    "product, columns sharded": (lambda x, w: x @ w, [(13, 7), (7, 6)], {1: 1}, 1, lambda n: 0, "each column is its rank's own"),
    "batched product": (lambda x, w: x @ w, [(6, 3, 7), (6, 7, 5)], {0: 0, 1: 0}, 0, lambda n: 0, "each matrix is its rank's own"),
    "outer product": (lambda x, y: x[:, None] * y, [(13,), (5,)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "sum to a number": (lambda x: x.sum(), [(13, 5)], {0: 0}, None, lambda n: all_reduce(n, 4), "one number"),
    "mean over the sharded dim": (lambda x: x.mean(0), [(13, 5)], {0: 0}, None, lambda n: all_reduce(n, B(5)), "a sum of five"),
    "sum over the other dim": (lambda x: x.sum(1), [(13, 5)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "sum to shards": (lambda x: x.sum(0), [(13, 6)], {0: 0}, 0, lambda n: all_gather(n, B(6)), "reduce-scatter of the sums"),
    "largest": (lambda x: x.amax(0), [(13, 5)], {0: 0}, None, lambda n: all_reduce(n, B(5)), "the largest of all ranks"),
    "softmax over the other dim": (lambda x: x.softmax(1), [(13, 5)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "softmax over the sharded dim": (lambda x: x.softmax(0), [(13, 5)], {0: 0}, 0, lambda n: 2 * all_reduce(n, B(5)), "a maximum and a sum of each column"),
    "layer norm": (lambda x: F.layer_norm(x, (5,)), [(13, 5)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "rms norm over the sharded dim": (lambda x: x * (x.pow(2).mean(0, keepdim=True) + 1e-3).rsqrt(), [(13, 5)], {0: 0}, 0,
                                      lambda n: all_reduce(n, B(5)), "one sum of squares for each column"),
    "norm of columns": (lambda x: x.norm(dim=0), [(13, 5)], {0: 0}, None, lambda n: all_reduce(n, B(5)), "one sum of squares for each column"),
    "embedding, rows sharded": (lambda t: F.embedding(torch.tensor([0, 5, 11, 3]), t), [(12, 5)], {0: 0}, None,
                                lambda n: all_reduce(n, B(4, 5)), "each row is looked up by its owner and needed by all"),
    "embedding, columns sharded": (lambda t: F.embedding(torch.tensor([0, 5, 11, 3]), t), [(12, 6)], {0: 1}, 1, lambda n: 0, "each rank looks up its columns"),
    "lookups sharded": (lambda x: x.gather(1, torch.zeros(13, 2, dtype=torch.int64)), [(13, 5)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "attention, heads sharded": (lambda q: F.scaled_dot_product_attention(q, q, q), [(2, 6, 5, 3)], {0: 1}, 1, lambda n: 0, "heads are a rank's own"),
    "cumulative sum of the other dim": (lambda x: x.cumsum(1), [(13, 5)], {0: 0}, 0, lambda n: 0, "rows are a rank's own"),
    "bias and activation": (lambda x, b: F.gelu(x + b), [(13, 6), (6,)], {0: 1, 1: 0}, 1, lambda n: 0, "elements are a rank's own"),
    "standardised columns": (lambda x: (x - x.mean(0)) / 2, [(13, 5)], {0: 0}, 0, lambda n: all_reduce(n, B(5)), "one sum for each column"),
    "masked sum": (lambda x: torch.where(x > 0, x, 0).sum(0), [(13, 5)], {0: 0}, None, lambda n: all_reduce(n, B(5)), "a sum of five"),
}
RANKS = (2, 3, 4)


def chunk(size, rank, n):
    length = -(-size // n)
    return min(rank * length, size), min((rank + 1) * length, size)


def held(shape, dim, rank, n):
    """Which elements of a tensor a rank has."""
    mask = torch.zeros(shape, dtype=torch.bool)
    begin, end = chunk(shape[dim], rank, n)
    mask.narrow(dim, begin, end - begin).fill_(True)
    return mask


def least_moved(function, shapes, sharded, out, n):
    """By brute force: which elements of the inputs an element of the result is made of is read from derivatives."""
    inputs = [torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    result = function(*inputs)
    gets, gives = [0] * n, [0] * n
    for rank in range(n):
        mine = torch.ones(result.shape, dtype=torch.bool) if out is None else held(result.shape, out, rank, n)
        if not mine.any():
            continue
        weights = torch.where(mine, torch.rand(result.shape, dtype=torch.float64) + 0.5, 0)  # random, so that no two parts cancel
        gradients = torch.autograd.grad((result * weights).sum(), inputs, retain_graph=True, allow_unused=True)
        for i, gradient in enumerate(gradients):
            for owner in range(n) if i in sharded and gradient is not None else ():
                if owner != rank:
                    count = int(((gradient != 0) & held(shapes[i], sharded[i], owner, n)).sum())
                    gets[rank] += count
                    gives[owner] += 0 if out is None else count  # what all need goes around
    return 4 * max(gets + gives)


class Graph(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def run(*words):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True)


def ours(case, n, folder, build):
    """(bytes, collectives, what is wrong)."""
    function, shapes, sharded, out = case[:4]
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    program = shardc_export.export(Graph(function), tuple(inputs))
    torch.export.save(program, folder / "model.pt2")
    names = program.graph_signature.user_inputs
    save_file(dict(zip(names, inputs)), folder / "in.safetensors")
    specs = [f"input:{i}=tp:{'R' if i not in sharded else f'S({sharded[i]})'}" for i in range(len(inputs))] + [
        "output:0=tp:" + ("R" if out is None else f"S({out})")]
    plan = ["--mesh", f"tp={n}", *(word for spec in specs for word in ("--place", spec))]
    done = run(build / "bin/shardc", "compile", folder / "model.pt2", *plan, "-o", folder / "model.so")
    if done.returncode == 0:
        done = run(build / "bin/shard-run", folder / "model.so", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--timeout", 60)
    if done.returncode:
        return 0, [], done.stderr[-600:]
    got, want = next(iter(load_file(folder / "out.safetensors").values())), function(*inputs)
    right = got.shape == want.shape and torch.allclose(got, want, 1e-4, 1e-5)
    report = json.loads(run(build / "bin/shardc", "explain", folder / "model.pt2", *plan, "--format", "json").stdout)["collectives"]
    return sum(c["bytes_per_rank"] for c in report), [c["kind"] for c in report], "" if right else "differs from PyTorch"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="*", help="a pattern of names")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    shardc_export.hide_warnings()
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in (MOVED | COMPUTED).items():
            for n in map(int, options.ranks.split(",")):
                if not fnmatch.fnmatch(name, options.only):
                    continue
                least = case[4](n) if name in COMPUTED else least_moved(*case, n)
                moved, kinds, problem = ours(case, n, pathlib.Path(folder), options.build)
                wrong += bool(problem)
                rows.append({"graph": name, "ranks": n, "least": least, "moved": moved, "collectives": kinds, "problem": problem})
                mark = "WRONG " + problem if problem else "more" if moved > least + len(kinds) else ""
                print(f"{name:36} n={n} {least:9.1f} {moved:9.1f}  {', '.join(kinds):36} {mark}", flush=True)
    least, moved = (sum(row[key] for row in rows) for key in ("least", "moved"))
    more = [row for row in rows if row["moved"] > row["least"] + len(row["collectives"])]
    print(f"\n{len(rows)} graphs, {wrong} wrong, {len(rows) - len(more)} move the least possible; in all {moved:.0f} of {least:.0f} bytes ({moved / least if least else 1:.3f})")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
