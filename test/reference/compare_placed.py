# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every function of a program with layouts, or with layouts in a part of it, on one device; then for all
ranks after some passes, which place it, and localisation; and holds the results against each other.

    compare_placed.py SHARD_OPT FILE.mlir [--tolerance T] -- PASS...

Each rank's replicas must agree, and what the ranks hold together must be the value of the one device. Prints
the collectives of each function, by kind."""
import argparse
import collections
import pathlib
import re
import sys

import torch

import program
from compare_local import random
from dist_ops import bind_symbols
from interpreter import InterpretationError, run_global, run_local
from layout import difference, parse_layout


def compare(whole, local, tolerance):
    """Why the two differ, or None."""
    generator = torch.Generator().manual_seed(7)
    # A dim that is not known is one of five elements: an odd number.
    inputs = [random([5 if n is None else n for n in type_.shape], type_.dtype, generator)
              for type_ in whole.arg_types]
    layouts = [parse_layout(attrs["dist.layout"]["attr"]) for attrs in local.arg_attrs]
    shards = [layout.scatter(value, generator) for layout, value in zip(layouts, inputs, strict=True)]
    try:
        expected = run_global(whole, inputs)
        results = run_local(local, layouts[0].mesh, shards, bind_symbols(local, inputs))
    except InterpretationError as error:
        return str(error)
    for i, (want, got) in enumerate(zip(expected, results, strict=True)):
        layout = parse_layout(local.result_attrs[i]["dist.layout"]["attr"])
        value, spread = layout.gather(got, list(want.shape))
        scale = max(1.0, float(want.double().abs().max())) if want.numel() else 1.0
        error = max(difference(value, want), spread) / scale
        if not error <= (tolerance if want.dtype.is_floating_point else 0):
            return f"result {i} is {error:.3g} off (of its scale)"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=2e-6)
    parser.add_argument("passes", nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    compared = failures = 0
    # A file may be several modules, as for --split-input-file.
    for source in re.split(r"^// -----.*$", args.file.read_text(), flags=re.M):
        before, why = program.load(args.shard_opt, source)
        after, why_after = (program.load(args.shard_opt, source, *args.passes, "--shardc-localize")
                            if before else (None, why))
        if after is None:
            print(why_after)
            return 1
        for name, function in before.items():
            compared += 1
            kinds = collections.Counter(op.name[5:] for op in after[name].ops if op.name.startswith("dist.") and
                                        op.name not in ("dist.extent", "dist.axis_index"))
            print(f"{name}:", ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())) or "no collectives")
            if problem := compare(function, after[name], args.tolerance):
                failures += 1
                print(f"{name}: {problem}")
    print(f"{compared} functions, {failures} failures")
    return 1 if failures or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
