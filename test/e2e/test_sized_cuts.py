# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a dim that a plan cuts at given sizes, wherever the cuts are, against PyTorch: values and gradients."""
import pytest
import torch

from exported import Exported


class Parts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(16))

    def forward(self, x):
        y = x * self.weight
        parts = (y[:2], y[4:6], y[14:], y[3:7], y[8:], *y.split(4), *y.chunk(2), y[1::3])
        return (sum((part * part * (i + 1)).sum() for i, part in enumerate(parts)), *parts)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    torch.manual_seed(0)
    return Exported(tmp_path_factory.mktemp("parts"), Parts(), {"x": torch.randn(16)})


@pytest.mark.parametrize("what", ["input:x", "param:weight"])
@pytest.mark.parametrize("sizes", [[10, 6], [1, 15], [0, 16], [7, 1, 8], [3, 0, 12, 1]], ids=str)
def test_parts(parts, sizes, what):
    parts.run(f"tp={len(sizes)}", "--place", f"{what}=tp:S(0, sizes={sizes})")
