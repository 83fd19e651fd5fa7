# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the test models: NAME.pt2, NAME.inputs.safetensors, and NAME.outputs.safetensors with
PyTorch's own answers.

  python export_models.py -o DIR [NAME...]        all models of VARIANTS, or those named
  python export_models.py --list
"""
import argparse
import os
import pathlib
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "export")]

import torch
from safetensors.torch import save_file

import builders
import shardc_export

BATCH_SEQUENCE = ("input_ids:0=batch:1:64", "input_ids:1=sequence:2:64")
MINILM_DYNAMIC = tuple(f"{name}:{dim}={symbol}" for name in ("input_ids", "attention_mask")
                       for dim, symbol in ((0, "batch:1:256"), (1, "sequence:2:512")))

# name -> (builder, its arguments, dynamic dims, form). The `odd` ones divide by nothing: six heads,
# vocabulary 1003, batch 3.
VARIANTS = {
    "mlp": (builders.mlp, {}, (), "composite"),
    "mlp_odd": (builders.mlp, dict(batch=3, width=10, hidden=37), (), "composite"),
    "mlp_dynamic": (builders.mlp, {}, ("x:0=batch:1:64",), "composite"),
    "mixed": (builders.mixed, {}, ("x:0=batch:2:64",), "composite"),
    "mixed_training": (builders.mixed, {}, ("x:0=batch:2:64",), "training"),
    "minilm": (builders.minilm, {}, (), "composite"),
    "minilm_dynamic": (builders.minilm, {}, MINILM_DYNAMIC, "composite"),
    "gpt2": (builders.gpt2, {}, (), "composite"),
    "gpt2_odd": (builders.gpt2, dict(batch=3, sequence=7, heads=6, width=96, vocabulary=1003), (), "composite"),
    "gpt2_dynamic": (builders.gpt2, {}, BATCH_SEQUENCE, "composite"),
    "gpt2_training": (builders.gpt2, {}, (), "training"),
    "gpt2_124m": (builders.gpt2_124m, {}, (), "composite"),
    "llama": (builders.llama, {}, (), "composite"),
    "llama_odd": (builders.llama, dict(batch=3, sequence=7, heads=6, kv_heads=2, width=96, hidden=250,
                                       vocabulary=1003), (), "composite"),
    "llama_dynamic": (builders.llama, {}, BATCH_SEQUENCE, "composite"),
    "resnet": (builders.resnet, {}, (), "composite"),
    "resnet_odd": (builders.resnet, dict(batch=3, size=29, widths=(6, 10), depth=2, classes=7), (), "training"),
    "resnet_dynamic": (builders.resnet, {}, ("x:0=batch:1:64",), "composite"),
    "images": (builders.images, {}, (), "composite"),
    "image_cases": (builders.image_cases, {}, (), "composite"),
    "llama_training": (builders.llama, {}, (), "training"),
}


def flat_outputs(result):
    """Outputs in the order of the exported signature."""
    leaves = torch.utils._pytree.tree_leaves(result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def flat_inputs(program, kwargs):
    """Tensors by the names of the exported signature."""
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(kwargs) if isinstance(leaf, torch.Tensor)]
    return {str(n): v.contiguous() for n, v in zip(program.graph_signature.user_inputs, leaves)}


def save(name, folder):
    builder, options, dynamic, form = VARIANTS[name]
    model, kwargs = builder(**options)
    program = shardc_export.export(model, (), kwargs, dynamic, form)
    names = [str(n) for n in program.graph_signature.user_outputs]
    # Before the model runs: it may update its buffers, which the program shares.
    torch.export.save(program, folder / f"{name}.pt2")
    with torch.no_grad():
        outputs = flat_outputs(model(**kwargs))
    save_file(flat_inputs(program, kwargs), folder / f"{name}.inputs.safetensors")
    save_file({n: v.contiguous() for n, v in zip(names, outputs, strict=True)},
              folder / f"{name}.outputs.safetensors")
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or not options.output:
        print("\n".join(VARIANTS))
        return 0
    unknown = [name for name in options.names if name not in VARIANTS]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(VARIANTS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or VARIANTS:
        program = save(name, options.output)
        print(f"{name}: {len(program.graph.nodes)} nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
