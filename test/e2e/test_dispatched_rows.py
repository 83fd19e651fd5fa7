# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of products by index of other shapes than the experts of models: by two indices in turns, with other numbers of matrices, regions that
overlap or follow each other, intermediates that others read, parameters that all rows share, derivatives that are infinite where there is no
row. Values and gradients are PyTorch's whether rows are dispatched or not."""
import pytest
import torch

from exported import Exported
from plans import places

EXPERTS, WIDTH, INNER = 8, 16, 32


class Matrices(torch.nn.Module):
    def __init__(self, inputs, outputs, count=EXPERTS):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(count, inputs, outputs) * 0.3)

    def forward(self, x, index):
        return torch.bmm(x.unsqueeze(1), self.w[index]).squeeze(1)


class Chain(torch.nn.Module):
    """`body(self, x, i, j)`, with the first and the second choice of a router."""

    def __init__(self, body):
        super().__init__()
        self.body = body
        self.router = torch.nn.Parameter(torch.randn(WIDTH, EXPERTS))
        self.up, self.down, self.up2, self.down2 = (Matrices(*s) for s in [(WIDTH, INNER), (INNER, WIDTH)] * 2)
        self.wide = Matrices(INNER, WIDTH, 2 * EXPERTS)
        self.other = Matrices(INNER, INNER)
        self.scale, self.bias = torch.nn.Parameter(torch.rand(INNER) + 0.5), torch.nn.Parameter(torch.zeros(EXPERTS, INNER))
        self.shared = torch.nn.Linear(INNER, INNER)

    def forward(self, x):
        # Each parameter has a gradient.
        chosen = (x @ self.router).topk(2, -1)
        i, j = chosen.indices.unbind(-1)
        y = self.body(self, x, i, j) * chosen.values.sigmoid()[:, :1]
        unused = sum(p.sum() for p in self.parameters()) * 0.01
        return (y * y).mean() + unused, y


BODIES = {
    "foreign": lambda m, x, i, j: m.down(torch.relu(m.other(m.up(x, i), j)), i),
    "counts": lambda m, x, i, j: m.wide(torch.relu(m.up(x, i)), i),
    "overlap": lambda m, x, i, j: (lambda c: m.down(c, i) + m.down2(c, j))(torch.relu(m.up(x, i) + m.up2(x, j))),
    "chained": lambda m, x, i, j: m.down2(torch.relu(m.up2(m.down(torch.relu(m.up(x, i)), i), j)), j),
    "parallel": lambda m, x, i, j: m.down(torch.nn.functional.silu(m.up(x, i)) * m.up2(x, i), i),
    "read": lambda m, x, i, j: (lambda h: m.down(h, i) + h[:, :WIDTH] * h.mean(0)[:WIDTH])(torch.relu(m.up(x, i))),
    "scale": lambda m, x, i, j: m.down(torch.sqrt(m.up(x, i).abs() * m.scale), i),
    "norm": lambda m, x, i, j: (lambda h: m.down(h / h.norm(dim=-1, keepdim=True) * m.scale, i))(m.up(x, i)),
    "bias": lambda m, x, i, j: m.down(torch.sqrt((m.up(x, i) + m.bias[i]).abs()), i),
    "linear": lambda m, x, i, j: m.down(torch.relu(m.shared(m.up(x, i))), i),
    "bools": lambda m, x, i, j: (lambda h: m.down(torch.where((x[:, :1] > 0) & (h > 0), h, -h), i))(m.up(x, i)),
}
OWNED = ["module:{up,down,up2,down2,wide}=grouped_gemm"]


@pytest.mark.parametrize("body", BODIES)
def test_chains(tmp_path, body):
    torch.manual_seed(3)
    model = Exported(tmp_path, Chain(BODIES[body]), dict(x=torch.randn(26, WIDTH)))
    plan = places("input:x=ep:S(0)", *OWNED, "output:1=ep:S(0)")
    model.run("ep=4", *plan)
    if body not in ("linear", "foreign"):
        assert "all_to_all" in model.moved("ep=4", *plan)


@pytest.mark.parametrize("tokens, mesh, layout", [(1, "ep=4", "ep:S(0)"), (3, "ep=4", "ep:S(0)"), (30, "dp=2,ep=2", "dp:S(0),ep:S(0)"), (9, "dp=3,ep=2", "dp:S(0),ep:S(0)"),
                                                  (12, "ep=2,dp=3", "dp:S(0),ep:S(0)")])
def test_numbers_of_rows(tmp_path, tokens, mesh, layout):
    torch.manual_seed(4)
    model = Exported(tmp_path, Chain(BODIES["bools"]), dict(x=torch.randn(tokens, WIDTH)))
    model.run(mesh, *places(f"input:x={layout}", *OWNED, f"output:1={layout}"))
