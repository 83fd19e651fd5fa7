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


class Model:
    """An exported model with example inputs and PyTorch's outputs."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        exported = torch.export.load(str(path))
        self.state = dict(exported.state_dict) | dict(exported.constants)
        self.given = safetensors.torch.load_file(self.path.with_suffix(".inputs.safetensors"))
        self.expected = list(safetensors.torch.load_file(self.path.with_suffix(".outputs.safetensors")).values())

    def value(self, attrs):
        name = attrs["dist.name"]
        name = name if isinstance(name, str) else name[0]
        return (self.given if attrs["dist.kind"] == "input" else self.state)[name].detach()

    def error(self, results):
        """Largest difference from PyTorch, as a part of the output's scale."""
        return max(difference(value, reference) / max(1e-30, float(reference.abs().max()))
                   for value, reference in zip(results, self.expected, strict=True))


def check(shard_opt, model, options):
    """(error of the imported function, error of the localised one, its collectives by kind). `options` are
    those of --shardc-place."""
    imported = functions(shard_opt, model.path)
    inputs = [model.value(a) for a in imported.arg_attrs]
    whole = run_global(imported, inputs)
    local = functions(shard_opt, model.path, f"--shardc-place={options}", "--shardc-localize")
    layouts = [parse_layout(a["dist.layout"]["attr"]) for a in local.arg_attrs]
    shards = [layout.scatter(x) for layout, x in zip(layouts, inputs)]
    results = run_local(local, layouts[0].mesh, shards, bind_symbols(local, inputs))
    merged = [parse_layout(attrs["dist.layout"]["attr"]).gather(blocks, list(reference.shape))[0]
              for attrs, blocks, reference in zip(local.result_attrs, results, whole)]
    kinds = collections.Counter(op.name for op in local.ops if op.name.startswith("dist.") and
                                op.name not in ("dist.extent", "dist.axis_index"))
    return model.error(whole), model.error(merged), kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--mesh", default="tp=2")
    parser.add_argument("--place", action="append", default=[])
    parser.add_argument("--plan", default="")
    args = parser.parse_args()
    options = [f"mesh={args.mesh}"] + [f"place={p}" for p in args.place] + ([f"plan={args.plan}"] if args.plan else [])
    imported, local, kinds = check(args.shard_opt, Model(args.model), " ".join(options))
    print(f"imported, one device: {imported:.2g} of the output's scale")
    print(f"localised for {args.mesh}: {local:.2g} of the output's scale")
    print("collectives:", dict(kinds))
    return 0 if max(imported, local) < 1e-4 else 1


def functions(shard_opt, model, *passes):
    run = subprocess.run([shard_opt, str(model), *passes, "--test-print-program-json", "-o", "/dev/null"],
                         text=True, capture_output=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return next(iter(program.parse(run.stdout).values()))


if __name__ == "__main__":
    sys.exit(main())
