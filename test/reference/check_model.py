# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A real exported model, placed and localised by the compiler, run by the reference interpreter for all
ranks and held against PyTorch's own outputs. No code is generated.

    check_model.py SHARD_OPT MODEL.pt2 --mesh dp=2,tp=2 [--place SPEC]... [--plan FILE]

Beside MODEL.pt2 lie MODEL.inputs.safetensors and MODEL.outputs.safetensors (test/models)."""
import argparse
import collections
import pathlib
import subprocess
import sys

import safetensors.torch
import torch
import transformers.modeling_outputs  # noqa: F401  (registers the types that models return)

import program
from dist_ops import bind_symbols
from interpreter import run_global, run_local
from layout import difference, parse_layout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--mesh", default="tp=2")
    parser.add_argument("--place", action="append", default=[])
    parser.add_argument("--plan", default="")
    args = parser.parse_args()

    exported = torch.export.load(str(args.model))
    state = dict(exported.state_dict) | dict(exported.constants)
    given = safetensors.torch.load_file(args.model.with_suffix(".inputs.safetensors"))
    expected = safetensors.torch.load_file(args.model.with_suffix(".outputs.safetensors"))

    def value(attrs):
        name = attrs["dist.name"]
        name = name if isinstance(name, str) else name[0]
        return (given if attrs["dist.kind"] == "input" else state)[name].detach()

    imported = functions(args.shard_opt, args.model)
    inputs = [value(a) for a in imported.arg_attrs]
    whole = run_global(imported, inputs)
    report("imported, one device", imported, whole, expected)

    options = [f"mesh={args.mesh}"] + [f"place={p}" for p in args.place] + ([f"plan={args.plan}"] if args.plan else [])
    local = functions(args.shard_opt, args.model, f"--shardc-place={' '.join(options)}", "--shardc-localize")
    layouts = [parse_layout(a["dist.layout"]["attr"]) for a in local.arg_attrs]
    shards = [layout.scatter(x) for layout, x in zip(layouts, inputs)]
    results = run_local(local, layouts[0].mesh, shards, bind_symbols(local, inputs))
    merged = []
    for attrs, blocks, reference in zip(local.result_attrs, results, whole):
        merged.append(parse_layout(attrs["dist.layout"]["attr"]).gather(blocks, list(reference.shape))[0])
    worst = report(f"localised for {args.mesh}", imported, merged, expected)
    kinds = collections.Counter(op.name for op in local.ops if op.name.startswith("dist.") and
                                op.name not in ("dist.extent", "dist.axis_index"))
    print("collectives:", dict(kinds))
    return 0 if worst < 1e-4 else 1


def functions(shard_opt, model, *passes):
    run = subprocess.run([shard_opt, str(model), *passes, "--test-print-program-json", "-o", "/dev/null"],
                         text=True, capture_output=True)
    if run.returncode:
        sys.exit(run.stderr)
    return next(iter(program.parse(run.stdout).values()))


def report(what, function, results, expected):
    """Prints and returns the largest difference from PyTorch, as a part of the output's scale."""
    outputs = list(expected.values())
    worst = 0.0
    for value, reference in zip(results, outputs):
        worst = max(worst, difference(value, reference) / max(1e-30, float(reference.abs().max())))
    print(f"{what}: {worst:.2g} of the output's scale")
    return worst


if __name__ == "__main__":
    sys.exit(main())
