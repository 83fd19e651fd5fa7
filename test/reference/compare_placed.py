# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every function of a program with layouts, or with layouts in a part of it, on one device; then for all
ranks after some passes, which place it, and localisation; and holds the results against each other.

    compare_placed.py SHARD_OPT FILE.mlir [--tolerance T] -- PASS...

With several meshes, ranks are those of all of them, and a rank has nothing of a tensor on a mesh that it is outside of.
Each rank's replicas must agree, and what the ranks hold together must be the value of the one device. Prints
the collectives of each function, by kind."""
import collections
import sys

import torch

import compare_local
from compare_local import random
from dist_ops import bind_symbols
from interpreter import Absent, InterpretationError, run_global, run_local, world_of
from layout import difference, parse_layout


def compare(whole, local, tolerance):
    """Why the two differ, or None."""
    generator = torch.Generator().manual_seed(7)
    # A dim that is not known is one of five elements: an odd number.
    inputs = [random([5 if n is None else n for n in type_.shape], type_.dtype, generator)
              for type_ in whole.arg_types]
    layouts = [parse_layout(attrs["dist.layout"]["attr"]) for attrs in local.arg_attrs]
    world = world_of(local)
    several = any(layout.mesh != world for layout in layouts)
    shards = [layout.spread(layout.scatter(value, generator), world)
              for layout, value in zip(layouts, inputs, strict=True)]
    try:
        expected = run_global(whole, inputs)
        results = run_local(local, world, shards, bind_symbols(local, inputs), several)
    except InterpretationError as error:
        return str(error)
    for i, (want, got) in enumerate(zip(expected, results, strict=True)):
        layout = parse_layout(local.result_attrs[i]["dist.layout"]["attr"])
        held = layout.collect(got, world)
        if absent := next((v for v in held if isinstance(v, Absent)), None):
            return f"a rank does not have result {i}: {absent.why}"
        value, spread = layout.gather(held, list(want.shape))
        scale = max(1.0, float(want.double().abs().max())) if want.numel() else 1.0
        error = max(difference(value, want), spread) / scale
        if not error <= (tolerance if want.dtype.is_floating_point else 0):
            return f"result {i} is {error:.3g} off (of its scale)"
    return None


def report_and_compare(whole, local, tolerance):
    kinds = collections.Counter(op.name[5:] for op in local.ops if op.name.startswith("dist.") and
                                op.name not in ("dist.extent", "dist.axis_index"))
    print(f"{local.name}:", ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())) or "no collectives")
    return compare(whole, local, tolerance)


if __name__ == "__main__":
    sys.exit(compare_local.main(__doc__, report_and_compare, "--shardc-localize"))
