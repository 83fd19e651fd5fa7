# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model tells autograd beside its operators: `shardc export` says what of it the program does not have, and keeps checkpoints."""
import sys

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))


class Reversed(Weighted):
    def forward(self, x):
        return Reverse.apply(x * self.w)


class Hooked(Weighted):
    def forward(self, x):
        y = x * self.w
        y.register_hook(lambda gradient: gradient * 0.1)
        return y


class OnFrozen(nn.Module):
    def forward(self, x):
        return Reverse.apply(x)


class Checkpointed(Weighted):
    def forward(self, x):
        y = checkpoint(lambda z: torch.sin(z * self.w), x * self.w, use_reentrant=True) + x * self.w
        with torch.no_grad():
            scale = y.abs().mean()
        return (y / scale).square().sum()


class Data(Weighted):
    def forward(self, x):
        return (self.w.data * x).sum()


class WrittenData(Weighted):
    def forward(self, x):
        y = (x * self.w).clone()
        y.data.clamp_(-0.5, 0.5)
        return y.sum()


@pytest.mark.parametrize("kind, says", [(Reversed, "note: Reverse (test_export_autograd.py:16) has a backward of its own"),
                                        (Hooked, "the hooks on gradients (test_export_autograd.py:40)"), (OnFrozen, "")])
def test_notes(kind, says, capsys):
    shardc_export.export(kind(), (torch.ones(2),))
    error = capsys.readouterr().err
    assert says in error and (says or "note" not in error)


def test_a_reentrant_checkpoint_is_a_plain_call():
    model, x = Checkpointed(), torch.tensor([0.5, 3.0])
    program = shardc_export.export(model, (x,))
    model(x).backward()
    want, model.w.grad = model.w.grad, None
    program.module()(x).backward()
    got = dict(program.module().named_parameters())["w"].grad
    # The program's own module has the parameters of the model, or copies of them.
    assert torch.allclose(model.w.grad if got is None else got, want)


@pytest.mark.parametrize("kind", [Data, WrittenData])
def test_lost_values_are_said(kind):
    with pytest.raises(ValueError, match=r"(?s)lost the values.*x.detach\(\) in place of x.data"):
        shardc_export.export(kind(), (torch.ones(2),))
