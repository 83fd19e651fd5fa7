# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models full of ops, with every input sharded over each of its dims in turn, and all parameters too: sizes that
divide over no mesh here, all against PyTorch. What nobody thought of shows here first."""
import copy
import json
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export

MESHES = ("tp=2", "tp=3", "dp=2,tp=2")


class Language(nn.Module):
    """A tied embedding and head, a loss over the vocabulary, and lookups of every kind in between."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(13, 6)
        self.head = nn.Linear(6, 13, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids, picks):
        hidden = self.table(ids)
        logits = self.head(hidden)
        loss = F.nll_loss(logits.log_softmax(-1).flatten(0, 1), ids.flatten())
        values, places = logits.max(-1)
        return (loss, values, places, logits.gather(-1, picks), hidden.cumsum(1), torch.where(logits > 0, logits, 0.5),
                logits[:, 1:-1:2], hidden.index_select(1, torch.tensor([0, 2])), logits.log_softmax(1))


class Grouped(nn.Module):
    """Six heads of queries over two of keys and values, with a mask and without."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(30, 30), nn.Linear(30, 10), nn.Linear(30, 10)
        self.out = nn.Linear(30, 30)

    def forward(self, x, mask):
        q, k, v = (linear(x).unflatten(-1, (-1, 5)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        k, v = (t.repeat_interleave(3, 1) for t in (k, v))
        masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k).masked_fill(~mask, -1e4).softmax(-1)
        return self.out(causal.transpose(1, 2).flatten(2)), masked, scores


class Running(nn.Module):
    """Buffers that change: a counter and a mean over all calls."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        y = x @ self.weight.t()
        self.calls += 1
        self.mean.mul_(0.9).add_(y.mean(0) * 0.1)
        return y * self.mean, self.calls * 2, x[0, 0]


class Reductions(nn.Module):
    def forward(self, x, w):
        return (x.mean(-1), x.std(0), x.norm(dim=-1), torch.einsum("bij,kj->bik", x, w), F.layer_norm(x, x.shape[-1:]),
                F.log_softmax(x, 1), x.prod(0), x.amin((0, 1)), F.normalize(x, dim=1), x.clamp(-0.5, 0.5),
                torch.maximum(x, x.mean()), x.permute(2, 0, 1).flatten(0, 1), x.cumsum(2), x.argmax(1), x.logsumexp((0, 2)))


class Integers(nn.Module):
    def forward(self, x, y):
        return (x // y, x % y, x.sum(0), x.prod(1), (x * y).cumsum(1), x.max(1).values, x.max(1).indices, x & y, x.float() / y,
                (x > 0).all(0), (x > 3).any(1), x ^ y, x.min(), x.double().mean())


class Pieces(nn.Module):
    """Parts of tensors, put together otherwise; one of them has no elements."""

    def forward(self, x, none):
        return (torch.cat([x, none]), none.sum(0), x[2:2], torch.cat([x[1:], x[:1]]), x.flip(0), torch.stack([x, x * 2], 1),
                F.pad(x, (1, 2, 0, 1)), x.triu(), x.chunk(2, 1)[1], x.unbind(0)[0], x[:, [2, 0, 0]], none @ x.t())


class Chosen(nn.Module):
    """Rows and columns at an index that is the one element of a tensor, which may count from the end."""

    def forward(self, x, row, column):
        middle = x[row.clamp(-2, 2)]
        return middle, x[..., column] * 2, x.select(1, row), x[row, column]


class Mixture(nn.Module):
    """Experts weighted by a gate, in bfloat16."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(10, 3)
        self.up, self.down = nn.Parameter(torch.randn(3, 10, 14) / 4), nn.Parameter(torch.randn(3, 14, 10) / 4)
        self.norm = nn.RMSNorm(10)
        self.bfloat16()

    def forward(self, x):
        x = self.norm(x)
        experts = torch.einsum("besh,ehd->besd", F.silu(torch.einsum("bsd,edh->besh", x, self.up)), self.down)
        return torch.einsum("bse,besd->bsd", self.gate(x).softmax(-1), experts), x.float().logsumexp(-1)


class Twice(nn.Module):
    """An output twice, an input as it came, and a parameter."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(7))

    def forward(self, x):
        y = x * self.scale
        return y, y, x, self.scale


def cases():
    torch.manual_seed(9)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    return {
        "language": (Language(), torch.randint(0, 13, (3, 7)), torch.randint(0, 13, (3, 7, 2))),
        "grouped": (Grouped(), torch.randn(3, 7, 30), causal),
        "running": (Running(), torch.randn(3, 4)),
        "reductions": (Reductions(), torch.randn(3, 5, 7), torch.randn(4, 7)),
        "integers": (Integers(), torch.randint(-9, 9, (5, 7)), torch.randint(1, 5, (5, 7))),
        "pieces": (Pieces(), torch.randn(5, 3), torch.empty(0, 3)),
        "chosen": (Chosen(), torch.randn(5, 3), torch.tensor(-1), torch.tensor(2)),
        "mixture": (Mixture(), torch.randn(3, 5, 10).bfloat16()),
        "twice": (Twice(), torch.randn(5, 7)),
    }


@pytest.fixture(scope="module", params=cases())
def model(request, tmp_path_factory):
    """An exported model, its inputs and their dims, how many parameters it has, and PyTorch's outputs."""
    module, *inputs = cases()[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    program = shardc_export.export(module.eval(), tuple(inputs))
    torch.export.save(program, folder / "model.pt2")
    names = program.graph_signature.user_inputs
    save_file(dict(zip(names, inputs)), folder / "in.safetensors")
    with torch.no_grad():
        want = copy.deepcopy(module)(*inputs)
    return folder, [(n, x.dim()) for n, x in zip(names, inputs)], len(list(module.parameters())), want


def plans(inputs, parameters):
    for name, rank in inputs:
        for dim in range(rank):
            yield places(f"input:{name}=tp:S({dim})")
    if parameters:
        yield places("param:*=tp:S(0)")


@pytest.mark.parametrize("mesh", MESHES)
def test_every_sharding_of_inputs_and_parameters(model, mesh):
    check(model, mesh, plans(*model[1:3]))


def check(model, mesh, plans):
    folder, _, _, want = model
    artifact, outputs = folder / "model.so", folder / "out.safetensors"
    for plan in plans:
        run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, *plan, "-o", artifact)
        manifest = json.loads(run(tool("shard-run"), artifact, "--manifest").stdout)
        run(tool("shard-run"), artifact, "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors",
            "--outputs", outputs, "--timeout", 30)
        got = load_file(outputs)
        names = [o["name"] for o in manifest["entries"][0]["outputs"] if o["kind"] == "user"]
        assert len(names) == len(want)
        # What is rounded to bfloat16 on the way differs by a few of its steps of 2^-8.
        close = 2e-2 if any(v.dtype == torch.bfloat16 for v in want) else 1e-4
        for i, (name, value) in enumerate(zip(names, want)):
            torch.testing.assert_close(got[name], value.detach(), rtol=close, atol=close,
                                       msg=lambda text: f"output {i} with {' '.join(plan)}: {text}")
