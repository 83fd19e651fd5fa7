# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All losses of torch.nn.functional in one model, each with weights of its own: their values and the gradients of the weights are
PyTorch's, sharded over the batch and over the classes, with uneven shards."""
import copy

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from conftest import run, tool
from plans import places
from training import difference, shardc_export

CLASSES, ROWS = 7, 5
SCALES = torch.linspace(0.5, 1.5, CLASSES, dtype=torch.float64)
LOSSES = {
    "mean": lambda x, t, p: F.cross_entropy(x, t),
    "sum": lambda x, t, p: F.cross_entropy(x, t, SCALES, reduction="sum", ignore_index=1),
    "none": lambda x, t, p: (F.cross_entropy(x, t, reduction="none") * torch.arange(ROWS)).sum(),
    "smooth": lambda x, t, p: F.cross_entropy(x, t, label_smoothing=0.1),
    "smooth_weighted": lambda x, t, p: F.cross_entropy(x, t, SCALES, label_smoothing=0.3, ignore_index=2),
    "smooth_none": lambda x, t, p: (F.cross_entropy(x, t, SCALES, label_smoothing=0.3, ignore_index=2, reduction="none") * torch.arange(ROWS)).sum(),
    "smooth_sum": lambda x, t, p: F.cross_entropy(x, t, label_smoothing=0.2, reduction="sum"),
    "ignored": lambda x, t, p: F.cross_entropy(x, t * 0 - 100, label_smoothing=0.1),
    "pixels": lambda x, t, p: F.cross_entropy(x.reshape(ROWS, CLASSES, 1, 1).expand(-1, -1, 2, 3), t.reshape(ROWS, 1, 1).expand(-1, 2, 3), SCALES),
    "vector": lambda x, t, p: F.cross_entropy(x.sum(0), t.sum() % CLASSES),
    "probabilities": lambda x, t, p: F.cross_entropy(x, p.softmax(1)),
    "probabilities_weighted": lambda x, t, p: F.cross_entropy(x, p.softmax(1), SCALES, label_smoothing=0.2),
    "probabilities_none": lambda x, t, p: (F.cross_entropy(x, p.softmax(1), SCALES, reduction="none") * torch.arange(ROWS)).sum(),
    "likelihood": lambda x, t, p: F.nll_loss(x.log_softmax(1), t, SCALES, ignore_index=3),
    "binary": lambda x, t, p: F.binary_cross_entropy(x.sigmoid(), p.sigmoid()),
    "binary_saturated": lambda x, t, p: F.binary_cross_entropy((x * 1e4).sigmoid(), (p > 0).double(), SCALES, reduction="sum"),
    "logits": lambda x, t, p: F.binary_cross_entropy_with_logits(x * 9, p.sigmoid()),
    "logits_weighted": lambda x, t, p: F.binary_cross_entropy_with_logits(x, p.sigmoid(), SCALES, pos_weight=SCALES * 2, reduction="sum"),
    "square": lambda x, t, p: F.mse_loss(x, p),
    "absolute": lambda x, t, p: F.l1_loss(x, p, reduction="sum"),
    "smooth_absolute": lambda x, t, p: F.smooth_l1_loss(x, p, beta=0.5),
    "smooth_absolute_0": lambda x, t, p: F.smooth_l1_loss(x, p, beta=0.0),
    "huber": lambda x, t, p: F.huber_loss(x, p, delta=0.7),
    "divergence": lambda x, t, p: F.kl_div(x.log_softmax(1), p.clamp_min(0), reduction="batchmean"),
    "divergence_log": lambda x, t, p: F.kl_div(x.log_softmax(1), p.log_softmax(1), log_target=True),
}


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(4, CLASSES, bias=False) for name in LOSSES})

    def forward(self, x, t, p):
        values = [LOSSES[name](head(x), t, p) for name, head in self.heads.items()]
        return (sum(values), *values)


@pytest.fixture(scope="module")
def reference():
    torch.manual_seed(5)
    module = All().double()
    inputs = {"x": torch.randn(ROWS, 4).double(), "t": torch.tensor([0, 6, 2, 1, 2]), "p": torch.randn(ROWS, CLASSES).double()}
    stepped = copy.deepcopy(module)
    values = stepped(**inputs)
    values[0].backward()
    torch.optim.SGD(stepped.parameters(), lr=1.0).step()
    return module, inputs, stepped, values


@pytest.mark.parametrize("form", ["composite", "training"])
def test_losses(reference, tmp_path, form):
    module, inputs, stepped, values = reference
    source = tmp_path / "losses.pt2"
    torch.export.save(shardc_export.export(copy.deepcopy(module), (), inputs, form=form), source)
    save_file({k: v.unsqueeze(0) for k, v in inputs.items()}, tmp_path / "batches")
    save_file(inputs, tmp_path / "in")
    # Both forms become the same ops.
    meshes = {"dp=1": ()} if form == "training" else {"dp=3": places("input:*=dp:S(0)"), "dp=2,tp=2": places("input:*=dp:S(0)", "module:heads.*=colwise")}
    for mesh, plan in meshes.items():
        program = tmp_path / "losses.so"
        run(tool("shardc"), "compile", source, "--mesh", mesh, *plan, "--place", "output:*=R", "--train", "loss=0", "--train", "optimizer=sgd",
            "-o", program)
        run(tool("shard-run"), program, "--weights", source, "--entry", "forward", "--inputs", tmp_path / "in", "--outputs", tmp_path / "out")
        got = list(load_file(tmp_path / "out").values())
        run(tool("shard-run"), program, "--weights", source, "--batches", tmp_path / "batches", "--lr", 1, "--steps", 1, "--save", tmp_path / "c",
            "--log", tmp_path / "log")
        saved = load_file(tmp_path / "c")
        wanted = torch.stack([v.detach() for v in values]).sort().values
        torch.testing.assert_close(torch.stack(got).sort().values, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)
        for name, parameter in stepped.named_parameters():
            assert difference(saved[name], parameter) <= 1e-9, f"{name} on {mesh}"
