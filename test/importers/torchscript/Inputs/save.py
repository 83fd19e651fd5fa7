# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one small model as TorchScript archives: traced.pt knows its input, scripted.pt does not.

  save.py FOLDER
"""
import pathlib
import sys

import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(6, 10, bias=False)
        self.register_buffer("scale", torch.linspace(0, 1, 10))

    def forward(self, x):
        y = self.up(x)
        for _ in range(2):
            y = torch.relu(y) * self.scale
        return y


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
torch.jit.trace(Gated().eval(), (torch.zeros(3, 6),)).save(str(folder / "traced.pt"))
torch.jit.script(Gated().eval()).save(str(folder / "scripted.pt"))
