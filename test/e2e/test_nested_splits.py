# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of nothing, and parts within parts: sums over dims of no elements whose tensors are sharded, and gradients of tensors whose dim
several axes split, one of them in blocks."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exported import F64, Exported
from plans import places


class SumsOfNothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(5, 0, dtype=F64)), nn.Parameter(torch.randn(0, 10, dtype=F64))
        self.c, self.batch = nn.Parameter(torch.randn(5, 10, dtype=F64)), nn.Parameter(torch.randn(5, 0, 0, dtype=F64))

    def forward(self, x):
        y = torch.addmm(self.c, self.a, self.b) + self.a @ self.b + x @ self.b
        return y.sum() + (self.batch @ self.batch).sum(), y


PLACES = [("dp:S(1)", "dp:S(0)"), ("dp:S(1),tp:S(0)", "tp:S(1)"), ("tp:S(1)", "dp:S(0),tp:S(1)"), ("dp:S(1),tp:S(1)", "dp:S(0),tp:S(0)")]


@pytest.fixture(scope="module")
def nothing(tmp_path_factory):
    return Exported(tmp_path_factory.mktemp("nothing"), SumsOfNothing(), {"x": torch.randn(5, 0, dtype=F64)})


@pytest.mark.parametrize("a,b", PLACES)
def test_sums_of_nothing(nothing, a, b):
    nothing.run("dp=2,tp=2", *places(f"param:a={a}", f"param:b={b}", f"input:x={a}", "param:c=tp:S(0)", "param:batch=dp:S(1),tp:S(2)"))


class InstanceNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.randn(5, 5, 5, dtype=F64))
        self.weight, self.bias = nn.Parameter(torch.randn(5, dtype=F64)), nn.Parameter(torch.randn(5, dtype=F64))

    def forward(self, scale):
        y = F.instance_norm(self.x, weight=self.weight, bias=self.bias) * scale
        return y.square().mean(), y


@pytest.fixture(scope="module")
def norm(tmp_path_factory):
    return Exported(tmp_path_factory.mktemp("norm"), InstanceNorm(), {"scale": torch.randn(5, 1, 5, dtype=F64)})


NESTED = ["dp:S(1, blocks = 5),tp:S(0)", "dp:S(0),tp:S(1, blocks = 5)", "dp:S(2, blocks = 5),tp:S(1)"]


@pytest.mark.parametrize("layout", NESTED)
def test_blocks_within_parts(norm, layout):
    """Batch and channels become one dim, which has parts within blocks of another number."""
    norm.run("dp=2,tp=2", *places(f"param:x={layout}", "param:weight=dp:S(0),tp:S(0)"))
