# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes TorchScript models: NAME.pt, NAME.inputs.safetensors and NAME.output.safetensors with PyTorch's own answer.

  python export_torchscript.py -o DIR [NAME...]
"""
import argparse
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
from safetensors.torch import save_file

import builders

MODELS = {
    "mlp": (builders.mlp, {}),
    "block": (builders.block, {}),
    "resnet": (builders.resnet, {}),
    "images": (builders.images, {}),
    "gpt": (builders.gpt, {}),
    "gpt2": (builders.gpt2, {}),  # only traced: its own code is beyond TorchScript's compiler
}


class FirstOutput(torch.nn.Module):
    """Models that return a structure: its first tensor."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids)[0]


def names():
    return [f"{name}_{form}" for name in MODELS for form in ("traced", "scripted") if (name, form) != ("gpt2", "scripted")]


def save(name, folder):
    base, form = name.rsplit("_", 1)
    builder, options = MODELS[base]
    model, kwargs = builder(**options)
    if base == "gpt2":
        model = FirstOutput(model).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model(**{k: v.clone() for k, v in kwargs.items()})
        scripted = (torch.jit.trace(model, tuple(kwargs.values()), check_trace=False) if form == "traced"
                    else torch.jit.script(model))
    scripted.save(str(folder / f"{name}.pt"))
    save_file(kwargs, folder / f"{name}.inputs.safetensors")
    save_file({"output": expected.contiguous()}, folder / f"{name}.output.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or names():
        save(name, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
