# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks sharding rules by brute force, on random ops (pytorch_cases.py) and PyTorch's values.

For every factor that a rule lets a mesh shard: cut the factor into chunks, cut all operands that have it,
compute each chunk, and put the results together: concatenated where a result has the factor, reduced
where the factor is reducing. That must be what the op computes of the whole. And for every set of
operands in which the op is said to be linear: f(a + b) = f(a) + f(b).
"""

import json
import random
import sys

import torch

from families import FAMILIES
from mlir_text import function, mlir_type, shard_opt

REDUCE = {"sum": lambda x: x.sum(0), "prod": lambda x: x.prod(0), "max": lambda x: x.amax(0),
          "min": lambda x: x.amin(0)}


def values(s, dtype, bound):
    if bound is not None:
        return torch.randint(0, max(bound, 1), s, dtype=dtype)
    if dtype == torch.bool:
        return torch.rand(s) < 0.7
    return torch.randn(s, dtype=dtype) if dtype.is_floating_point else torch.randint(1, 5, s, dtype=dtype)


class Chunks:
    """One factor of a rule, cut as torch.chunk does (chunks may be empty)."""

    def __init__(self, rule, factor, count):
        self.rule, self.factor, self.count = rule, factor, count
        self.size = rule["factors"][factor]["size"]
        self.step = -(-self.size // count)

    def sizes(self, dim, own):
        """A neighbouring factor has what is left of a dim."""
        factors = self.rule["factors"]
        return [own if f == self.factor else -1 if factors[f]["kind"] == "neighbouring" else factors[f]["size"] for f in dim]

    def bounds(self, i):
        return min(i * self.step, self.size), min((i + 1) * self.step, self.size)

    def cut(self, tensor, dims, i):
        begin, end = self.bounds(i)
        for d, dim in enumerate(dims):
            if self.factor in dim:
                split = tensor.unflatten(d, self.sizes(dim, self.size))
                tensor = split.narrow(d + dim.index(self.factor), begin, end - begin).flatten(
                    d, d + len(dim) - 1)
                tensor.starts = {d: begin}
        return tensor

    def join(self, parts, dims):
        for d, dim in enumerate(dims):
            if self.factor in dim:
                split = [p.unflatten(d, self.sizes(dim, b - a))
                         for p, (a, b) in zip(parts, map(self.bounds, range(self.count)))]
                return torch.cat(split, d + dim.index(self.factor)).flatten(d, d + len(dim) - 1)
        kind = self.rule["factors"][self.factor]
        if kind["kind"] != "reducing":
            raise AssertionError("a result lacks a factor that is not reducing")
        stacked = torch.stack(parts)
        if stacked.dtype == torch.bool:
            return stacked.any(0) if kind["reduction"] == "max" else stacked.all(0)
        return REDUCE[kind["reduction"]](stacked)


def same(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{tuple(a.shape)} {a.dtype} against {tuple(b.shape)} {b.dtype}"
    return None if torch.allclose(a.double(), b.double(), equal_nan=True, rtol=1e-6, atol=1e-6) else "values"


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def check(op, rule, inputs, call, more):
    whole = as_list(call(*inputs))
    problems, checked = [], 0
    for f, factor in enumerate(rule["factors"]):
        if factor["kind"] not in ("parallel", "reducing"):
            continue
        count = random.choice([2, 3])
        if any(other["kind"] == "neighbouring" for other in rule["factors"]):
            count = max(1, min(count, factor["size"]))  # of an empty chunk its size does not follow
        chunks = Chunks(rule, f, count)
        reducing = factor["kind"] == "reducing"
        parts = []
        for i in range(chunks.count):
            begin, end = chunks.bounds(i)
            if reducing and op.startswith("aten.am") and begin == end:
                continue  # PyTorch has no identity for these
            local = [chunks.cut(x, d, i) for x, d in zip(inputs, rule["operands"])]
            for a in rule["additive"] if reducing and i else []:
                if not any(f in d for d in rule["operands"][a]):
                    local[a] = torch.zeros_like(local[a])
            shapes = [[n // max(chunks.size, 1) * (end - begin) if f in d else n for n, d in zip(r.shape, dims)]
                      for r, dims in zip(whole, rule["results"])]
            parts.append(as_list(more["local"](local, shapes) if "local" in more else call(*local)))
        for r, dims in enumerate(rule["results"]):
            error = same(whole[r], chunks.join([p[r] for p in parts], dims))
            checked += 1
            if error:
                problems.append(f"factor {f} cut in {chunks.count}: {error}")
    for operands in rule["linearIn"]:
        if any(inputs[o].dtype == torch.bool for o in operands):
            continue
        other = [values(x.shape, x.dtype, None) if o in operands else x for o, x in enumerate(inputs)]
        total = [x + y if o in operands else x for o, (x, y) in enumerate(zip(inputs, other))]
        checked += 1
        for a, b, c in zip(whole, as_list(call(*other)), as_list(call(*total))):
            if error := same(a + b if a.dtype != torch.bool else a, c):
                problems.append(f"not linear in {operands}: {error}")
    return checked, problems


def main(count, seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    cases, text = {}, []
    while len(cases) < count:
        operands, op, call, *more = random.choice(FAMILIES)()
        more = more[0] if more else {}
        if " to f16" in op or " to bf16" in op or " to f32" in op or op.startswith(("aten.arange", "aten.random")):
            continue  # rounding, or not from operands alone
        bounds = more.get("bounds", {})
        if 0 in bounds.values():
            continue
        operands = [(s, torch.float64 if t.is_floating_point else t) for s, t in operands]
        inputs = [values(s, t, bounds.get(i)) for i, (s, t) in enumerate(operands)]
        try:
            results = as_list(call(*inputs))
        except Exception:
            continue
        name = f"c{len(cases)}"
        cases[name] = (op, operands, inputs, call, more)
        text.append(function(name, [mlir_type(*o) for o in operands], op,
                             [mlir_type(r.shape, r.dtype) for r in results]))
    done = shard_opt("".join(text), "--test-print-sharding-rules=json", "-o", "/dev/null")
    if done.returncode:
        print(done.stderr[:4000])
        return 1
    total, bad, ops = 0, 0, set()
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        op, operands, inputs, call, more = cases[entry["function"]]
        try:
            checked, problems = check(op, entry["rules"][0], inputs, call, more)
        except Exception as e:
            checked, problems = 0, [f"{type(e).__name__}: {e}"]
        total += checked
        if checked:
            ops.add(op.split()[0])
        for problem in problems:
            bad += 1
            print(op, [tuple(s) for s, _ in operands], problem)
    print(f"{total} shardings of at least {len(ops)} ops checked" if not bad else f"{bad} failures")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
