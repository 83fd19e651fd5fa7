# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random placed programs through the compiler's localisation, every rank's result against the unsharded
run. Fixed seeds: the same programs every time.

    fuzz_localize.py SHARD_OPT [--seeds FIRST:LAST] [--then=--PASS]... [--show]"""
import argparse
import collections
import pathlib
import sys
import time

import torch

import placed_attention  # noqa: F401  (adds templates)
import placed_grouped  # noqa: F401  (likewise)
import placed_ops
import placed_reductions  # noqa: F401  (likewise)
import placed_scatters  # noqa: F401  (likewise)
import program
from interpreter import InterpretationError, run_global, run_local
from layout import parse_layout
from placed_programs import Program


def generate(seed):
    p = Program(seed)
    for _ in range(p.rng.randint(2, 6) if p.float == "f64" else 2):
        spec = p.rng.choice(placed_ops.TEMPLATES)(p)
        if spec:
            p.add(spec)
    if not p.values:
        p.arg(p.dims(2))
    p.finish()
    return p


def inputs_of(p, generator):
    values = []
    for v in p.args:
        if v.high is not None:
            values.append(torch.randint(0, v.high, v.shape, generator=generator))
        else:
            exact = torch.randn(v.shape, generator=generator, dtype=torch.float64)
            values.append(exact.to(program.DTYPES[v.dtype]))
    return values


TOLERANCE = {"f64": 1e-9, "f32": 2e-4, "bf16": 0.1}


def check(p, placed, local):
    """Why the local program is not the placed one, or None."""
    generator = torch.Generator().manual_seed(1)
    inputs = inputs_of(p, generator)
    expected = run_global(placed, inputs)
    shards = [v.layout.scatter(x, generator) for v, x in zip(p.args, inputs)]
    results = run_local(local, p.mesh, shards, p.symbols)
    for i, (want, got) in enumerate(zip(expected, results)):
        layout = parse_layout(local.result_attrs[i]["dist.layout"]["attr"])
        whole, spread = layout.gather(got, list(want.shape))
        scale = max(1.0, float(want.double().abs().nan_to_num(0, 0, 0).max()) if want.numel() else 1.0)
        error = difference(whole, want) / scale
        if not error < TOLERANCE[p.float]:
            return f"result {i} is {error:.3g} off (of its scale)"
        if not spread / scale < TOLERANCE[p.float]:
            return f"replicas of result {i} differ by {spread:.3g}"
    return None


def difference(a, b):
    from layout import difference as measure
    return measure(a, b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt", type=pathlib.Path)
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--batch", type=int, default=200, help="functions in one run of the compiler")
    parser.add_argument("--then", action="append", default=[], help="a pass to run on the local program")
    parser.add_argument("--show", action="store_true", help="print programs that fail")
    args = parser.parse_args()
    torch.set_num_threads(1)
    first, last = map(int, args.seeds.split(":"))
    ops, failures, began = collections.Counter(), 0, time.time()
    for begin in range(first, last, args.batch):
        batch = [generate(seed) for seed in range(begin, min(last, begin + args.batch))]
        failures += run_batch(args, batch, ops)
    print(f"{last - first} programs, {sum(ops.values())} placed ops of {len(ops)} kinds, {failures} failures, "
          f"{time.time() - began:.0f} s")
    return 1 if failures else 0


# By bytes alone the planner takes exchanges and reductions in parts, which tensors as small as these would not be worth.
PASSES = ("--dist-plan-redistributions=latency=0", "--shardc-localize")


def run_batch(args, batch, ops):
    source = "\n".join(p.text() for p in batch)
    placed, why = program.load(args.shard_opt, source)
    local, why_local = program.load(args.shard_opt, source, *PASSES, *args.then) if placed else (None, why)
    if local is None:
        if len(batch) == 1:
            print(f"{batch[0].name}: {why_local.strip()}" + (f"\n{source}" if args.show else ""))
            return 1
        half = len(batch) // 2
        return run_batch(args, batch[:half], ops) + run_batch(args, batch[half:], ops)
    failures = 0
    for p in batch:
        ops.update(p.ops)
        try:
            problem = check(p, placed[p.name], local[p.name])
        except (InterpretationError, ValueError) as error:
            problem = str(error)
        if problem:
            failures += 1
            print(f"{p.name}: {problem}" + (f"\n{p.text()}" if args.show else ""))
    return failures


if __name__ == "__main__":
    sys.exit(main())
