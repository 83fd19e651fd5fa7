# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every function of a local or scheduled program, before and after some passes, for all ranks on random
values, and holds the results of every rank against each other.

    compare_local.py SHARD_OPT FILE.mlir [--tolerance T] -- PASS...

An argument with `dist.layout` is one global tensor, scattered; any other differs from rank to rank. Tensors of
whole numbers, and with --tolerance 0 all, must agree exactly."""
import argparse
import pathlib
import re
import sys

import torch

import program
from dist_ops import _parsed, _read_groups
from interpreter import InterpretationError, run_local
from layout import Mesh, difference, parse_layout


def mesh_of(function):
    """That of a layout or of mesh axes, else a line of all ranks that groups mention."""
    for attrs in function.arg_attrs:
        if "dist.layout" in attrs:
            return parse_layout(attrs["dist.layout"]["attr"]).mesh
    ranks = 0
    for op in function.ops:
        if "group" in op.attrs:
            mesh, groups = _parsed(op.attrs["group"], _read_groups)
            if mesh:
                return mesh
            ranks = max([ranks] + [p + 1 for group in groups for p in group])
    return Mesh([("rank", max(1, ranks))])


def random(shape, dtype, generator):
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 50, shape, generator=generator).to(dtype)


def inputs_of(function, mesh, generator):
    values = []
    for type_, attrs in zip(function.arg_types, function.arg_attrs):
        if "dist.layout" in attrs:
            shape = attrs["dist.global_type"]["shape"]
            whole = random(shape, type_.dtype, generator)
            values.append(parse_layout(attrs["dist.layout"]["attr"]).scatter(whole, generator))
        else:
            values.append([random(type_.shape, type_.dtype, generator) for _ in range(mesh.size)])
    return values


def compare(before, after, tolerance):
    """Why two functions differ, or None."""
    mesh = mesh_of(before)
    inputs = inputs_of(before, mesh, torch.Generator().manual_seed(7))
    try:
        expected, results = run_local(before, mesh, inputs), run_local(after, mesh, inputs)
    except InterpretationError as error:
        return str(error)
    for i, (want, got) in enumerate(zip(expected, results, strict=True)):
        for p in range(mesh.size):
            if want[p].shape != got[p].shape or want[p].dtype != got[p].dtype:
                return f"result {i} at position {p} has another type"
            scale = max(1.0, float(want[p].double().abs().max())) if want[p].numel() else 1.0
            error = difference(got[p], want[p]) / scale
            if not error <= (tolerance if want[p].dtype.is_floating_point else 0):
                return f"result {i} at position {p} is {error:.3g} off (of its scale)"
    return None


def main(description, compare, *more_passes):
    """The command line of a comparison: `compare(before, after, tolerance)` is called for every function of a file, as it
    is and after the passes, and prints or returns what it has to say. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=2e-6)
    parser.add_argument("passes", nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    # A file may be several modules, as for --split-input-file.
    compared = failures = 0
    for source in re.split(r"^// -----.*$", args.file.read_text(), flags=re.M):
        before, why = program.load(args.shard_opt, source)
        after, why_after = program.load(args.shard_opt, source, *args.passes, *more_passes) if before else (None, why)
        if after is None:
            print(why_after)
            return 1
        for name, function in before.items():
            compared += 1
            if problem := compare(function, after[name], args.tolerance):
                failures += 1
                print(f"{name}: {problem}")
    print(f"{compared} functions, {failures} failures")
    return 1 if failures or not compared else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, compare))
