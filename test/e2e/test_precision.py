# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps in bf16 and f16: as PyTorch under autocast, with torch.amp.GradScaler, and with masters in f32 of a module that is bf16."""
import copy
import functools

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from plans import places
from test_model_gradients import BUILDER
from training import Trainee, difference


class Towers(nn.Module):
    """Odd sizes, a parameter that is used twice, and one that meets both types."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 11), nn.Linear(11, 3)
        self.norm, self.scale = nn.LayerNorm(11), nn.Linear(11, 11, bias=False)
        self.factor = nn.Parameter(torch.randn(11))

    def forward(self, x, target):
        h = F.gelu(self.first(x)) * self.factor
        h = self.scale(self.norm(self.scale(h)))
        return F.mse_loss(self.second(h).float(), target)


DP, TP = places("input:*=dp:S(0)"), places("module:first=colwise", "module:second=rowwise")
MESHES = {"one": ("--mesh", "dp=1"), "dp2": ("--mesh", "dp=2", *DP), "tp2": ("--mesh", "tp=2", *TP), "dp2-tp2": ("--mesh", "dp=2,tp=2", *DP, *TP)}


def train(*settings):
    return [option for setting in settings for option in ("--train", setting)]


def autocast(one, dtype, steps=5, lr=1e-2, micro_batches=1, clip=None, scaler=None):
    """Losses, scales, skipped steps and the module after steps of AdamW under torch.autocast."""
    module = copy.deepcopy(one.module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cpu", **scaler) if scaler is not None else torch.amp.GradScaler("cpu", enabled=False)
    count = len(next(iter(one.batches.values())))
    losses, scales, skipped = [], [], []
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(micro_batches):
            batch = {k: v[(step * micro_batches + micro) % count] for k, v in one.batches.items()}
            with torch.autocast("cpu", dtype=dtype):
                result = module(**batch)
            loss = (result[0] if isinstance(result, tuple) else result) / micro_batches
            scaler.scale(loss).backward()
            total += float(loss.detach())
        scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        losses.append(total)
        scales.append(scaler.get_scale())
        skipped.append(scaler.get_scale() < before)
    return module, losses, scales, skipped


@functools.cache
def towers():
    torch.manual_seed(3)
    return Towers(), {"x": torch.randn(9, 7), "target": torch.randn(9, 3)}
